#!/usr/bin/env python3
"""Writes text with a GPT of fresh weights in plain PyTorch, a sequence at a time with cached keys and values, and prints
JSON: seconds a token of each run. The model is that of bench/generation_bench.cc."""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, VOCAB, CONTEXT = 6, 6, 384, 65, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.inner, self.outer = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cache):
        n, t, _ = x.shape
        q, k, v = (h.view(n, t, HEADS, -1).transpose(1, 2) for h in self.qkv(self.norm1(x)).split(WIDTH, dim=2))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.proj(heads.transpose(1, 2).reshape(n, t, WIDTH))
        return x + self.outer(F.gelu(self.inner(self.norm2(x)))), (k, v)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, offset, caches):
        x = self.token(tokens) + self.position(torch.arange(offset, offset + tokens.shape[1]))
        new = []
        for block, cache in zip(self.blocks, caches):
            x, cache = block(x, cache)
            new.append(cache)
        return F.linear(self.norm(x[:, -1]), self.token.weight), new


@torch.inference_mode()
def write(model, tokens):
    """Seconds a token."""
    start = time.perf_counter()
    last, text, caches = torch.zeros(1, 1, dtype=torch.long), [0], [None] * LAYERS
    for n in range(tokens):
        logits, caches = model(last, n, caches)
        last = torch.multinomial(logits.softmax(-1), 1)
        text.append(last.item())
    return (time.perf_counter() - start) / tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = Gpt().eval()
    write(model, 32)  # threads and memory start
    print(json.dumps({"cached": [write(model, args.tokens) for _ in range(args.runs)]}))


if __name__ == "__main__":
    main()

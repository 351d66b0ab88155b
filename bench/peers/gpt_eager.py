#!/usr/bin/env python3
"""Trains the small character GPT in plain PyTorch, and prints JSON: tokens a second of training, loss in nats a token
over the whole validation part in windows of the context. The setting is that of `regard train text --preset shakespeare`."""

import argparse
import json
import math
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 4, 4, 128, 64, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.inner, self.outer = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (h.view(n, t, HEADS, -1).transpose(1, 2) for h in self.qkv(self.norm1(x)).split(WIDTH, dim=2))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(heads.transpose(1, 2).reshape(n, t, WIDTH))
        return x + self.outer(F.gelu(self.inner(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                back = name.endswith(("proj.weight", "outer.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if back else 0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        logits = F.linear(self.norm(self.blocks(x)), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def rate(step, steps, warmup=100, most=1e-3, least=1e-4):
    if step < warmup:
        return most * (step + 1) / warmup
    done = (step - warmup) / max(steps - warmup, 1)
    return least + (most - least) * (1 + math.cos(math.pi * done)) / 2


@torch.no_grad()
def measure(model, ids):
    whole = (len(ids) - 1) // CONTEXT * CONTEXT
    inputs, targets = ids[:whole].view(-1, CONTEXT), ids[1 : whole + 1].view(-1, CONTEXT)
    nats = sum(model(x, y).item() * y.numel() for x, y in zip(inputs.split(64), targets.split(64)))
    return nats / whole


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--validate", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)

    text = Path(args.data).read_text(encoding="utf-8")
    number = {c: n for n, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[c] for c in text])
    split = len(ids) * 9 // 10
    training = ids[:split]
    model = Gpt(len(number))
    step_model = torch.compile(model) if args.compile else model
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    adam = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], betas=(0.9, 0.99))

    warm = 20  # steps that are not timed: threads and memory start, the model is compiled
    for step in range(args.steps):
        if step == warm:
            start = time.perf_counter()
        places = torch.randint(len(training) - CONTEXT, (BATCH,))
        x = torch.stack([training[p : p + CONTEXT] for p in places])
        y = torch.stack([training[p + 1 : p + 1 + CONTEXT] for p in places])
        for group in adam.param_groups:
            group["lr"] = rate(step, args.steps)
        loss = step_model(x, y)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    seconds = time.perf_counter() - start
    result = {"tokens_per_second": (args.steps - warm) * BATCH * CONTEXT / seconds}
    if args.validate:
        result["loss"] = measure(model, ids[split:])
    print(json.dumps(result))


if __name__ == "__main__":
    main()

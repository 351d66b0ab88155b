#!/usr/bin/env python3
"""Compares sliding windows and ALiBi with FlexAttention, compiled for this machine.

    bench/peers/flex_attention.py
    bench/peers/flex_attention.py window --runs 11 --json

B, H, L, D = 1, 8, 4096, 64, float32; window: 256 keys on each side; ALiBi: slopes 2^-1 .. 2^-8, both directions.
FlexAttention has no backward pass on the CPU: only the forward pass is compared.
"""

import common
import regard
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

B, H, L, D = 1, 8, 4096, 64
WINDOW = 256


def tensors():
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(B, H, L, D, generator=generator) for _ in range(3)]


def exact(q, k, v, change):
    """The formula in float64, head by head; change(scores, head, distance) gives scores."""
    distance = torch.arange(L)[None, :] - torch.arange(L)[:, None]
    out = torch.empty(B, H, L, D, dtype=torch.float64)
    for h in range(H):
        s = q[0, h].double() @ k[0, h].double().T / D**0.5
        out[0, h] = torch.softmax(change(s, h, distance), -1) @ v[0, h].double()
    return out


def make(name, ours, flex, change, pairs, wanted):
    compile_seconds = common.compiled(flex)
    return common.Row(name, f"{B}, {H}, {L}, {D}; {name}; forward", "FlexAttention, compiled", ours, flex, change,
                      work=H * pairs * 4 * D, wanted=wanted, compile_seconds=compile_seconds)


def window():
    q, k, v = tensors()
    near = lambda b, h, i, j: (i - j).abs() <= WINDOW
    mask = create_block_mask(near, None, None, L, L, device="cpu")
    flex = torch.compile(flex_attention)
    change = lambda s, h, distance: s.masked_fill(distance.abs() > WINDOW, -torch.inf)
    pairs = sum(min(L, i + WINDOW + 1) - max(0, i - WINDOW) for i in range(L))
    return make("window-256", lambda: regard.attend(q, k, v, window=(WINDOW, WINDOW)),
                lambda: flex(q, k, v, block_mask=mask), lambda: exact(q, k, v, change), pairs, 2)


def alibi():
    q, k, v = tensors()
    slopes = 2.0 ** -torch.arange(1, H + 1)
    bias = lambda score, b, h, i, j: score - slopes[h] * (i - j).abs()
    flex = torch.compile(flex_attention)
    change = lambda s, h, distance: s - slopes[h].double() * distance.abs()
    return make("alibi", lambda: regard.attend(q, k, v, alibi_slopes=slopes),
                lambda: flex(q, k, v, score_mod=bias), lambda: exact(q, k, v, change), L * L, 2.5)


ROWS = {"window-256": window, "alibi": alibi}

if __name__ == "__main__":
    args = common.parse(__doc__, ROWS)
    with torch.no_grad():
        common.run([ROWS[name] for name in args.wanted], args)

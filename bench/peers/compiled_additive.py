#!/usr/bin/env python3
"""Compares additive attention, w·tanh(q + k), with the formula in PyTorch, compiled by torch.compile and eager.

    bench/peers/compiled_additive.py
    bench/peers/compiled_additive.py additive-compiled --json

B 8, L = S = 256, hidden width 128, values 128 wide, float32.
"""

import common
import regard
import torch

B, L, WIDTH = 8, 256, 128


def formula(q, k, v, w):
    scores = (torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) * w).sum(-1)
    return torch.softmax(scores, -1) @ v


def make(compile, both):
    generator = torch.Generator().manual_seed(4)
    draw = lambda *shape: torch.randn(*shape, generator=generator)
    q, k, v = (draw(B, L, WIDTH).requires_grad_(both) for _ in range(3))
    w = (draw(WIDTH) / WIDTH**0.5).requires_grad_(both)
    leaves, dout = [q, k, v, w], draw(B, L, WIDTH)
    function = torch.compile(formula) if compile else formula

    def side(function, leaves, dout):
        call = lambda: function(*leaves)
        return common.gradients(call, leaves, dout) if both else call

    def exact():
        doubles = [t.detach().double().requires_grad_(both) for t in leaves]
        return side(formula, doubles, dout.double())()

    ours = side(lambda q, k, v, w: regard.attend(q, k, v, score="additive", additive_weight=w), leaves, dout)
    peer = side(function, leaves, dout)
    name = f"additive-{'compiled' if compile else 'eager'}-{'both' if both else 'forward'}"
    return common.Row(
        name,
        f"{B}, 1, {L}, {WIDTH}; additive; {'forward and backward' if both else 'forward'}",
        f"PyTorch, {'torch.compile' if compile else 'eager'}",
        ours,
        peer,
        exact,
        work=B * L * L * WIDTH * (18 if both else 6),
        wanted={(True, False): 10, (False, False): 50, (False, True): 30}.get((compile, both), 0),
        compile_seconds=common.compiled(peer) if compile else None,
    )


ROWS = {
    "additive-compiled-forward": lambda: make(True, False),
    "additive-compiled-both": lambda: make(True, True),
    "additive-eager-forward": lambda: make(False, False),
    "additive-eager-both": lambda: make(False, True),
}

if __name__ == "__main__":
    args = common.parse(__doc__, ROWS)
    common.run([ROWS[name] for name in args.wanted], args)

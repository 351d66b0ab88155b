#!/usr/bin/env python3
"""Compares Gaussian attention with the same kernel sum in KeOps: sum_j K(x_i, y_j) v_j / sum_j K(x_i, y_j).

    .venv/bin/python -m pip install -r bench/peers/requirements.txt
    bench/peers/keops.py
    bench/peers/keops.py gaussian-3 --runs 3 --json

20,000 points against 20,000 in 1, 3 and 16 dimensions, evenly drawn from the unit cube, one value each, float32;
K(x, y) = exp(-1/2 (10 / sqrt(D))² |x - y|²). KeOps compiles each formula at its first use and keeps it in ~/.cache:
the time shown for compiling is then that of loading it.
"""

import contextlib
import os
import sys

import common
import regard
import torch

os.environ.setdefault("PYKEOPS_VERBOSE", "0")
try:
    with contextlib.redirect_stdout(sys.stderr):  # where it says what it misses
        from pykeops.torch import LazyTensor
except ImportError as missing:
    sys.exit(f"keops.py: {missing}; install it with: {sys.executable} -m pip install -r bench/peers/requirements.txt")

POINTS = 20_000
WANTED = {1: 60, 3: 40, 16: 60}


def exact(x, y, v, dout, precision):
    """The formula in float64, a block of queries at a time; with dout its gradients, dx and dy."""
    x, y, v = (t.detach().double() for t in (x, y, v))
    out, dx, dy = torch.empty(POINTS, 1, dtype=torch.float64), torch.empty_like(x), torch.zeros_like(y)
    for first in range(0, POINTS, common.SUMS // POINTS):
        rows = slice(first, first + common.SUMS // POINTS)
        leaves = [x[rows].clone().requires_grad_(dout is not None), y.clone().requires_grad_(dout is not None)]
        squares = [(t * t).sum(1) for t in leaves]
        distances = squares[0][:, None] + squares[1][None, :] - 2 * leaves[0] @ leaves[1].T
        part = torch.softmax(-0.5 * precision**2 * distances, 1) @ v
        out[rows] = part.detach()
        if dout is not None:
            dx[rows], one = torch.autograd.grad(part, leaves, dout[rows].double())
            dy += one
    return (dx, dy) if dout is not None else out


def make(dimensions, is_backward):
    generator = torch.Generator().manual_seed(4)
    draw = lambda *shape: torch.rand(*shape, generator=generator)
    x, y = (draw(POINTS, dimensions).requires_grad_(is_backward) for _ in range(2))
    v, dout = draw(POINTS, 1), draw(POINTS, 1)
    precision = 10 / dimensions**0.5

    def kernel_sum():
        distances = ((LazyTensor(x[:, None, :]) - LazyTensor(y[None, :, :])) ** 2).sum(-1)
        sums = (-0.5 * precision**2 * distances).exp() @ torch.cat([v, torch.ones_like(v)], 1)
        return sums[:, :1] / sums[:, 1:]

    width = torch.tensor([precision])
    attend = lambda: regard.attend(x, y, v, score="gaussian", precision=width)
    if is_backward:
        common.say(f"gaussian-{dimensions}-backward: compiling")
    compile_seconds = common.compiled(kernel_sum)
    ours, peer = attend, kernel_sum
    if is_backward:
        ours, peer = (common.backward(f, [x, y], dout) for f in (attend, kernel_sum))
        compile_seconds += common.compiled(peer)
    return common.Row(
        f"gaussian-{dimensions}-{'backward' if is_backward else 'forward'}",
        f"1, 1, {POINTS}, {dimensions}; values 1 wide; Gaussian; {'backward' if is_backward else 'forward'}",
        "KeOps",
        ours,
        peer,
        lambda: exact(x, y, v, dout if is_backward else None, precision),
        work=POINTS**2 * (8 * dimensions + 4 if is_backward else 3 * dimensions + 2),
        wanted=0 if is_backward else WANTED[dimensions],
        compile_seconds=compile_seconds,
    )


ROWS = {
    f"gaussian-{d}-{'backward' if b else 'forward'}": lambda d=d, b=b: make(d, b) for d in WANTED for b in (False, True)
}

if __name__ == "__main__":
    args = common.parse(__doc__, ROWS)
    common.run([ROWS[name] for name in args.wanted], args)

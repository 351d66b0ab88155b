"""What the comparisons in this folder share: alternating runs, errors, and the table or JSON of `regard bench`.

Both sides run in one process, on the same tensors and threads; this project is called through its registered operator.
"""

import argparse
import json
import math
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Callable

import regard
import torch

REST = 0.03  # s between runs: OpenMP's threads wait actively for some ms after a call, on the cores the next one needs
SHORT = 0.02  # s: a shorter call is repeated within a run
SUMS = 2**24  # elements of a block of the formula written out


@dataclass
class Row:
    """One attention call beside a peer. A call returns a tensor or several: the output, or gradients."""

    name: str
    what: str
    peer_name: str
    ours: Callable
    peer: Callable
    exact: Callable | None = None  # the same in float64
    work: float = 0  # operations a call, as bench/spec.h counts them
    wanted: float = 0  # ratio aimed at; 0: measured and reported
    compile_seconds: float | None = None
    results: dict = field(default_factory=dict)


def parse(description, names):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"by name or its beginning: {', '.join(names)}")
    parser.add_argument("--runs", type=int, default=7, help="of each side [7]")
    parser.add_argument("--threads", type=int, default=0, help="0: one a core [0]")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for row in args.rows:
        if not any(name.startswith(row) for name in names):
            parser.error(f"no row '{row}'; there are {', '.join(names)}")
    if args.runs < 1:
        parser.error(f"--runs {args.runs}: expected at least 1")
    if args.threads > 0:
        torch.set_num_threads(args.threads)
    args.wanted = [n for n in names if not args.rows or any(n.startswith(row) for row in args.rows)]
    return args


def say(text):
    print(text, file=sys.stderr, flush=True)


def seconds(call, times=1):
    start = time.perf_counter()
    for _ in range(times):
        result = call()
    return (time.perf_counter() - start) / times, result


def compiled(call):
    """Seconds that the first call takes beyond the third: compiling."""
    first, _ = seconds(call)
    call()
    return max(0.0, first - seconds(call)[0])


def compare(row, runs):
    """Medians and quartiles of alternating runs, as `regard bench` takes them."""
    sides = []
    for call in (row.ours, row.peer):
        call()
        once, _ = seconds(call)
        sides.append((call, max(1, math.ceil(SHORT / once))))
    times = ([], [])
    for run in range(runs):
        say(f"{row.name}: run {run + 1} of {runs}")
        for (call, repeats), out in zip(sides, times):
            time.sleep(REST)
            if repeats > 1:
                call()
            out.append(seconds(call, repeats)[0])
    ratios = [theirs / mine for mine, theirs in zip(*times)]
    row.results = {
        "seconds": statistics.median(times[0]),
        "peer_seconds": statistics.median(times[1]),
        "ratio": statistics.median(ratios),
        "seconds_quartiles": quartiles(times[0]),
        "peer_seconds_quartiles": quartiles(times[1]),
        "ratio_quartiles": quartiles(ratios),
    }


def quartiles(values):
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def listed(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def error(got, exact):
    """Largest difference of a tensor, by its largest value; of the tensors the largest."""
    return max(
        ((g.detach().double() - e).abs().max() / e.abs().max()).item() for g, e in zip(listed(got), listed(exact))
    )


def report(row):
    out = {"name": row.name, "what": row.what, "through": "op", "peer": row.peer_name, **row.results}
    if row.work:
        out["gflops"] = row.work / out["seconds"] / 1e9
    if row.compile_seconds is not None:
        out["compile_seconds"] = row.compile_seconds
    if row.wanted:
        out |= {"wanted": {"ratio": row.wanted}, "reached": out["ratio"] >= row.wanted}
    return out


def run(rows, args):
    """Measures the rows, in turn made by their functions, and prints them."""
    machine = {
        "threads": torch.get_num_threads(),
        "pytorch": torch.__version__,
        "pytorch_instruction_set": torch.backends.cpu.get_cpu_capability(),
        "regard": regard.__version__,
    }
    if not args.json:
        print(
            f"{machine['threads']} threads; regard {machine['regard']} through its operator, "
            f"PyTorch {machine['pytorch']} on {machine['pytorch_instruction_set']}\n"
        )
        print(f"{'row':<28} {'regard':>9} {'peer':>9} {'ratio':>6} {'(quartiles)':>13} {'wanted':>6} "
              f"{'error':>8} {'peer':>8} {'compiling':>9}  peer")
    reports = []
    for make in rows:
        row = make()
        compare(row, args.runs)
        if row.exact is not None:
            say(f"{row.name}: error against float64")
            exact = row.exact()
            row.results["error"] = error(row.ours(), exact)
            row.results["peer_error"] = error(row.peer(), exact)
        reports.append(report(row))
        if not args.json:
            print(line(reports[-1]), flush=True)
    if args.json:
        print(json.dumps({"machine": machine, "rows": reports}, indent=2))


def line(r):
    low, _, high = r["ratio_quartiles"]
    wanted = f"{r['wanted']['ratio']:g}" if "wanted" in r else ""
    errors = [f"{r[key]:.1e}" if key in r else "" for key in ("error", "peer_error")]
    compiling = f"{r['compile_seconds']:.1f} s" if "compile_seconds" in r else ""
    return (
        f"{r['name']:<28} {duration(r['seconds']):>9} {duration(r['peer_seconds']):>9} {digits(r['ratio']):>6} "
        f"{f'({digits(low)}-{digits(high)})':>13} {wanted:>6} {errors[0]:>8} {errors[1]:>8} {compiling:>9}  {r['peer']}"
    )


def digits(x):
    return f"{x:.{2 if x < 10 else 1 if x < 100 else 0}f}"


def duration(s):
    value, unit = (s * 1e6, "µs") if s < 1e-3 else (s * 1e3, "ms") if s < 1 else (s, "s ")
    return f"{digits(value)} {unit}"


def gradients(function, leaves, dout):
    """A call of function and its backward pass: (out, gradients of the leaves...)."""

    def call():
        out = function()
        return (out.detach(), *torch.autograd.grad(out, leaves, dout))

    return call


def backward(function, leaves, dout):
    """The backward pass alone, of a graph made once."""
    out = function()
    return lambda: torch.autograd.grad(out, leaves, dout, retain_graph=True)

#!/usr/bin/env python3
"""Compares writing text a token at a time (a GPT of 6 layers, width 384; one sequence) with and without cached keys and
values, and with a plain PyTorch loop that has a cache.

The programs run alternately with the same threads; medians and ratios are printed. Build the first one before:

    ninja -C build generation_bench && .venv/bin/python bench/generation.py
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def output(*command):
    return json.loads(subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "bench" / "generation_bench"))
    parser.add_argument("--runs", type=int, default=5, help="of each program")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    seconds = {"regard": [], "without_cache": [], "pytorch": []}
    for _ in range(args.runs):
        own = output(args.program, args.tokens, 2, args.threads)
        seconds["regard"] += own["cached"]
        seconds["without_cache"] += own["uncached"]
        peer = ROOT / "bench" / "peers" / "gpt_generate.py"
        seconds["pytorch"] += output(sys.executable, peer, "--tokens", args.tokens, "--runs", 2, "--threads",
                                     args.threads)["cached"]
    report = {name: statistics.median(values) for name, values in seconds.items()}
    report["ratio"] = {name: report[name] / report["regard"] for name in ("without_cache", "pytorch")}
    text = (f"{1e3 * report['regard']:.2f} ms a token; without the cache {1e3 * report['without_cache']:.1f}: "
            f"{report['ratio']['without_cache']:.1f} times; plain PyTorch {1e3 * report['pytorch']:.2f}: "
            f"{report['ratio']['pytorch']:.2f} times (medians of {args.runs} processes, {args.tokens} tokens, "
            f"{args.threads} threads)")
    print(json.dumps(report) if args.json else text)


if __name__ == "__main__":
    main()

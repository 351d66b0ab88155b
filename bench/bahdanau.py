#!/usr/bin/env python3
"""Compares training of the small Bahdanau translator with the same model in plain eager PyTorch.

Both programs run alternately, one after the other, with the same threads; the medians of their target tokens per
second and the ratio are printed. With --quality, only this project's program runs, for as many epochs and seeds as
published (250 and 5): the loss per target token and BLEU-2 of four sentences.

    bench/bahdanau.py ../shared/data/fra-eng.tsv
    bench/bahdanau.py ../shared/data/fra-eng.tsv --quality
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCES = ["va !", "j'ai perdu .", "il est calme .", "je suis chez moi ."]


def run(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def bleu(prediction, reference, k=2):
    """Sentence BLEU with n-grams to k, weights 1/2^n and a brevity penalty, as the book defines it."""
    found, wanted = prediction.split(), reference.split()
    if not found:
        return 0.0
    score = math.exp(min(0, 1 - len(wanted) / len(found)))
    for n in range(1, min(k, len(found)) + 1):
        grams = lambda tokens: Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
        matches = sum((grams(found) & grams(wanted)).values())
        score *= (matches / (len(found) - n + 1)) ** (0.5**n)
    return score


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="sentence pairs, the published ones in fra-eng.tsv")
    parser.add_argument("--program", default=str(ROOT / "build" / "bench" / "bahdanau_bench"))
    parser.add_argument("--runs", type=int, default=5, help="of each program")
    parser.add_argument("--epochs", type=int, default=10, help="of a run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quality", action="store_true", help="train as long as published and judge the result")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    common = ["--threads", str(args.threads)]
    if args.quality:
        results = [run([args.program, args.data, *common, "--epochs", "250", "--seed", str(s)]) for s in range(5)]
        scores = [statistics.mean(map(bleu, r["translations"], REFERENCES)) for r in results]
        report = {
            "loss": [r["loss"] for r in results],
            "bleu2": scores,
            "mean_bleu2": statistics.mean(scores),
            "tokens_per_second": statistics.median(r["tokens_per_second"] for r in results),
        }
        text = (
            f"nats per target token {' '.join(f'{x:.3f}' for x in report['loss'])}\n"
            f"BLEU-2 {' '.join(f'{x:.3f}' for x in scores)}, mean {report['mean_bleu2']:.3f}\n"
            f"{report['tokens_per_second']:,.0f} target tokens/s"
        )
    else:
        peer = [sys.executable, str(ROOT / "bench" / "peers" / "bahdanau_eager.py")]
        speeds = {"regard": [], "eager": []}
        for seed in range(args.runs):
            options = [args.data, *common, "--epochs", str(args.epochs), "--seed", str(seed)]
            for name, command in (("eager", peer), ("regard", [args.program])):
                speeds[name].append(run(command + options)["tokens_per_second"])
        report = {name: statistics.median(values) for name, values in speeds.items()}
        report["ratio"] = report["regard"] / report["eager"]
        text = (
            f"regard {report['regard']:,.0f} target tokens/s, plain eager PyTorch {report['eager']:,.0f}: "
            f"{report['ratio']:.1f} times (medians of {args.runs}, {args.threads} threads)"
        )
    print(json.dumps(report) if args.json else text)


if __name__ == "__main__":
    main()

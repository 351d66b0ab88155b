#!/usr/bin/env python3
"""Compares training of the small character GPT (`regard train text --preset shakespeare`) with the same model in plain
PyTorch, eager or compiled.

Both programs run alternately, one after the other, with the same threads; the medians of their tokens per second and the
ratio are printed. With --quality, only this project's program runs, for the published 2,000 steps and three seeds: the
loss over the whole validation part, in windows of the context.

    bench/gpt.py ../shared/data/tinyshakespeare.txt
    bench/gpt.py ../shared/data/tinyshakespeare.txt --quality
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def metrics(run):
    return [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]


def train(args, seed, steps, validate):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [args.program, "train", "text", args.data, "-o", run, "--preset", "shakespeare", "--quiet",
                   "--max-steps", steps, "--seed", seed, "--threads", args.threads]
        if not validate:
            command += ["--valid-fraction", "0"]
        subprocess.run([str(word) for word in command], check=True)
        lines = metrics(run)
    # The first lines hold the start of threads and memory, which the peer leaves out too.
    speeds = [line["tokens_per_second"] for line in lines if "lr" in line and line["step"] > 20]
    losses = [line["validation"]["loss"] for line in lines if "validation" in line]
    return {"tokens_per_second": statistics.harmonic_mean(speeds), "loss": min(losses) if losses else None}


def peer(args, seed, *options):
    command = [sys.executable, ROOT / "bench" / "peers" / "gpt_eager.py", args.data, "--steps", args.steps, "--seed", seed,
               "--threads", args.threads, *options]
    result = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="the text, published as tinyshakespeare")
    parser.add_argument("--program", default=str(ROOT / "build" / "regard"))
    parser.add_argument("--runs", type=int, default=5, help="of each program")
    parser.add_argument("--steps", type=int, default=200, help="of a run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="compare with torch.compile, too")
    parser.add_argument("--quality", action="store_true", help="train as long as published and judge the result")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    if args.quality:
        results = [train(args, seed, 2000, True) for seed in (1, 2, 3)]
        losses = [r["loss"] for r in results]
        report = {"loss": losses, "mean_loss": statistics.mean(losses)}
        text = f"validation loss {' '.join(f'{x:.4f}' for x in losses)}, mean {report['mean_loss']:.4f} nats per token"
    else:
        sides = {"eager": []} | ({"compiled": ["--compile"]} if args.compile else {})
        speeds = {"regard": [], **{name: [] for name in sides}}
        for seed in range(args.runs):
            for name, options in sides.items():
                speeds[name].append(peer(args, seed, *options)["tokens_per_second"])
            speeds["regard"].append(train(args, seed, args.steps, False)["tokens_per_second"])
        report = {name: statistics.median(values) for name, values in speeds.items()}
        report["ratio"] = {name: report["regard"] / report[name] for name in sides}
        text = f"regard {report['regard']:,.0f} tokens/s; " + "; ".join(
            f"{name} PyTorch {report[name]:,.0f}: {report['ratio'][name]:.2f} times" for name in sides)
        text += f" (medians of {args.runs}, {args.threads} threads)"
    print(json.dumps(report) if args.json else text)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trains the published small transformer with several seeds, and judges it as bench/bahdanau.py --quality does:
nats per target token in the last epoch, and BLEU-2 of four sentences.

    bench/transformer.py ../shared/data/fra-eng.tsv
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from bahdanau import REFERENCES, ROOT, bleu

SENTENCES = ["go .", "i lost .", "he's calm .", "i'm home ."]


def judge(command, data, seed, threads):
    """Loss in training, and mean BLEU-2, of one seed."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        subprocess.run([command, "train", "pairs", data, "-o", run, "--preset", "book-transformer", "--limit", "600",
                        "--seed", str(seed), "--threads", str(threads), "--quiet"], check=True)
        steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        epoch = max(step["epoch"] for step in steps)
        losses = [step["loss"] for step in steps if step["epoch"] == epoch and "loss" in step]
        found = subprocess.run([command, "translate", run], check=True, stdout=subprocess.PIPE, text=True,
                               input="".join(sentence + "\n" for sentence in SENTENCES)).stdout.splitlines()
    return statistics.mean(losses), statistics.mean(map(bleu, found, REFERENCES))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="sentence pairs, the published ones in fra-eng.tsv")
    parser.add_argument("--command", default=str(ROOT / "build" / "regard"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    results = [judge(args.command, args.data, seed, args.threads) for seed in range(args.seeds)]
    print("nats per target token", " ".join(f"{loss:.3f}" for loss, _ in results))
    print("BLEU-2", " ".join(f"{score:.3f}" for _, score in results),
          f"mean {statistics.mean(score for _, score in results):.3f}")


if __name__ == "__main__":
    main()

"""Compares regard's ROUGE and its stemmer with the rouge-score package on random, awkward and real text.

Usage: rouge_peer_test.py PROGRAM, the program built from rouge_peer.cc.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
WORDS = (
    "the a cat cats sat sitting on mat The CAT happy happily library libraries package packages provides providing "
    "Le été ÉTÉ c'est 3.14 1,000 x86_64 don't e-mail İstanbul \u212Aelvin ΟΔΟΣ 中文 ½ ² ١٢ . , -- \" ( ) ... dying skies news "
    "abbey additionally 😀 e\u0301 ﬁ ß"
).split(" ")
SPACES = [" "] * 20 + ["  ", "\t", "\u00a0", "\u2028", "\n", ""]
ENDINGS = (
    "s es ies sses ss ed ied eed ing ying ating bling izing y ational tional enci anci izer bli abli alli entli eli ousli "
    "ization ation ator alism iveness fulness ousness aliti iviti biliti fulli logi logy icate ative alize iciti ical ful "
    "ness al ance ence er ic able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ll le ly ally"
).split(" ")


def words(rng):
    """Words of real text, and made-up ones whose endings meet every rule."""
    found = set("sky skies dying lying tying news inning innings outing outings canning cannings howe proceed exceed "
                "succeed yyyy yy y a is aed bled feed agreed".split())
    for name in ("debian-descriptions.tsv", "tinyshakespeare.txt"):
        if (SHARED / name).exists():
            found.update(re.findall("[a-z0-9]+", (SHARED / name).read_text(encoding="utf-8").lower()))
    for _ in range(40000):
        stem = "".join(rng.choice("aeiouyybcdflnrstwxz1") for _ in range(rng.randint(0, 5)))
        found.add(stem + "".join(rng.choice(ENDINGS) for _ in range(rng.randint(1, 3))))
    return sorted(found)


def line(rng, longest):
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randint(0, longest)))


def near(rng, text):
    """text with some words dropped, changed or doubled."""
    parts = text.split(" ")
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(parts))
        parts[at : at + 1] = rng.choice([[], [rng.choice(WORDS)], [parts[at]] * 2]) or ["."]
    return " ".join(parts)


def cases(rng):
    for number in range(400):
        hypotheses = [line(rng, rng.choice([1, 3, 12, 40])) for _ in range(rng.choice([1, 1, 2, 10]))]
        references = [
            [near(rng, text) if rng.random() < 0.8 else line(rng, 12) for _ in range(rng.choice([1, 1, 3]))]
            for text in hypotheses
        ]
        yield {"stem": number % 2 == 0, "hypotheses": hypotheses, "references": references}
    if (SHARED / "debian-descriptions.tsv").exists():
        lines = (SHARED / "debian-descriptions.tsv").read_text(encoding="utf-8").splitlines()[-1000:]
        pairs = [text.split("\t") for text in lines]
        for stem in (False, True):
            yield {"stem": stem, "hypotheses": [s for s, _ in pairs], "references": [[t] for _, t in pairs]}


def expected(case, scorer):
    kinds = ("rouge1", "rouge2", "rougeL")
    scores = [scorer.score_multi(r, h) for h, r in zip(case["hypotheses"], case["references"], strict=True)]
    return {kind: [sum(score[kind][i] for score in scores) / len(scores) for i in range(3)] for kind in kinds}


def main():
    try:
        from nltk.stem.porter import PorterStemmer
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        print("skipped because the rouge-score package is not installed")
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
    rng = random.Random(1)
    request = {"words": words(rng), "cases": list(cases(rng))}
    run = subprocess.run([sys.argv[1]], input=json.dumps(request).encode(), stdout=subprocess.PIPE, check=True)
    result = json.loads(run.stdout)

    stem = PorterStemmer().stem
    wrong = [(w, got, stem(w)) for w, got in zip(request["words"], result["stems"], strict=True) if stem(w) != got]
    for word, got, want in wrong[:20]:
        print(f"stem of {word}: got {got}, want {want}")

    scorers = {stem: RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stem) for stem in (False, True)}
    failed = scored = 0
    for number, (case, got) in enumerate(zip(request["cases"], result["scores"], strict=True)):
        want = expected(case, scorers[case["stem"]])
        scored += want["rouge2"][2] > 0
        if any(abs(a - b) > 1e-12 for kind in want for a, b in zip(got[kind], want[kind], strict=True)):
            failed += 1
            print(f"case {number}\n  got  {got}\n  want {want}")
    assert scored > len(request["cases"]) // 2, "most cases should have a score above 0"
    print(f"{len(request['words']) - len(wrong)} of {len(request['words'])} stems and "
          f"{len(request['cases']) - failed} of {len(request['cases'])} corpora are the package's")
    sys.exit(1 if failed or wrong else 0)


if __name__ == "__main__":
    main()

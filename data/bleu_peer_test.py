"""Compares regard's BLEU with the sacrebleu package on random and awkward corpora.

Usage: bleu_peer_test.py PROGRAM, the program built from bleu_peer.cc.
"""

import json
import os
import random
import subprocess
import sys

WORDS = (
    "the a cat sat on mat The CAT Le été ÉTÉ c'est l'homme 3.14 1,000 2027-03-03 1-2 . , ! ? ; : - -- ... ' \" « » “ ” "
    "( ) [x] {y} &amp; &quot; &lt;b&gt; & < > <skipped> # $5 €5 5% a_b a/b a.b a,b .5 5. ,5 5, -5 5- e-mail İstanbul "
    "ΟΔΟΣ Σ 中文 字。 日本、 ½ Ⅷ ² ١٢ ´ ` ^ ~ + = | \\ * @ 😀 e\u0301 ﬁ ß ẞ"
).split(" ")
SPACES = [" "] * 20 + ["  ", "\t", "\u00a0", "\u2028", "\u3000", "\u0085", "\x1c", "\x0c", "", "\n"]


def line(rng, longest):
    words = [rng.choice(WORDS) for _ in range(rng.randint(0, longest))]
    return "".join(word + rng.choice(SPACES) for word in words)


def near(rng, text):
    """text with some words dropped, changed or moved: matches of every order."""
    words = text.split(" ")
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(words))
        words[at : at + 1] = rng.choice([[], [rng.choice(WORDS)], [words[at]] * 2]) or ["."]
    return " ".join(words)


def cases():
    rng = random.Random(1)
    for number in range(600):
        size = rng.choice([1, 1, 2, 5, 20])
        hypotheses = [line(rng, rng.choice([1, 3, 12, 30])) for _ in range(size)]
        same = rng.randint(1, 3)
        references = []
        for hypothesis in hypotheses:
            count = rng.randint(1, 3) if number % 5 == 0 else same
            references.append([near(rng, hypothesis) if rng.random() < 0.8 else line(rng, 12) for _ in range(count)])
        yield {
            "tokenize": ["13a", "13a", "intl", "char", "none"][number % 5],
            "lowercase": rng.random() < 0.3,
            "smooth": rng.choice(["exp", "exp", "none", "floor", "add-k"]),
            "effective_order": rng.random() < 0.3,
            "max_order": rng.choice([4, 4, 4, 2, 1]),
            "hypotheses": hypotheses,
            "references": references,
        }


def expected(case, bleu_class):
    bleu = bleu_class(
        lowercase=case["lowercase"],
        force=True,
        tokenize=case["tokenize"],
        smooth_method=case["smooth"],
        max_ngram_order=case["max_order"],
        effective_order=case["effective_order"],
    )
    most = max(len(references) for references in case["references"])
    streams = [[r[i] if i < len(r) else None for r in case["references"]] for i in range(most)]
    score = bleu.corpus_score(case["hypotheses"], streams)
    tokens = [" ".join(bleu.tokenizer(h.rstrip()).split()) for h in case["hypotheses"]]
    return score, bleu.get_signature().format(), tokens


def compare(case, result, bleu_class):
    score, signature, tokens = expected(case, bleu_class)
    problems = []
    if result["tokens"] != tokens:
        problems.append(("tokens", result["tokens"], tokens))
    if abs(result["score"] - score.score) > 1e-8:
        problems.append(("score", result["score"], score.score))
    if any(abs(a - b) > 1e-8 for a, b in zip(result["precisions"], score.precisions, strict=True)):
        problems.append(("precisions", result["precisions"], score.precisions))
    if result["line"] != score.format():
        problems.append(("line", result["line"], score.format()))
    if result["signature"].split("|")[:-1] != signature.split("|")[:-1]:
        problems.append(("signature", result["signature"], signature))
    return problems


def main():
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        print("skipped because the sacrebleu package is not installed")
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
    all_cases = list(cases())
    run = subprocess.run([sys.argv[1]], input=json.dumps(all_cases).encode(), stdout=subprocess.PIPE, check=True)
    results = json.loads(run.stdout)
    failed = 0
    scored = 0
    for number, (case, result) in enumerate(zip(all_cases, results, strict=True)):
        scored += result["score"] > 0
        problems = compare(case, result, BLEU)
        failed += bool(problems)
        for what, got, want in problems:
            print(f"case {number} ({case['tokenize']}, {case['smooth']}): {what}\n  got  {got!r}\n  want {want!r}")
    assert scored > len(all_cases) // 2, "most cases should have a score above 0"
    print(f"{len(all_cases) - failed} of {len(all_cases)} corpora have sacrebleu's score")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

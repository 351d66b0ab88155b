"""regard evaluate: its figures against sacrebleu's, rouge-score's and the definitions."""
import json

import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer
from .conftest import LESSON, fail, succeed, write_pairs


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """The lesson with further right answers, and some wrong ones."""
    pairs = LESSON + [("go .", "allez-y !"), ("he ran .", "il courait ."), ("i see .", "je vois , je comprends ."),
                      ("wow !", "oh là là !"), ("go home .", "rentre chez toi ."), ("he sees .", "il voit .")]
    return write_pairs(tmp_path_factory.mktemp("references") / "test.tsv", pairs)


def test_corpus_bleu_is_sacrebleus(learned, references, tmp_path):
    hypotheses = tmp_path / "hypotheses.txt"
    result = json.loads(succeed("evaluate", learned, references, "--json", "--output", hypotheses).stdout)
    pairs = [line.split("\t") for line in references.read_text(encoding="utf-8").splitlines()]
    lines = hypotheses.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(pairs) == result["pairs"]
    one = sacrebleu.corpus_bleu(lines, [[target for _, target in pairs]])

    translated, grouped = {}, {}
    for (source, target), line in zip(pairs, lines):
        assert translated.setdefault(source, line) == line
        grouped.setdefault(source, []).append(target)
    assert result["sources"] == len(grouped) < len(pairs)
    most = max(map(len, grouped.values()))
    streams = [[targets[n] if n < len(targets) else None for targets in grouped.values()] for n in range(most)]
    every = sacrebleu.corpus_bleu(list(translated.values()), streams)
    assert result["bleu"]["score"] == pytest.approx(one.score, abs=0.005)
    assert result["bleu_all"]["score"] == pytest.approx(every.score, abs=0.005)
    assert result["bleu"]["precisions"] == pytest.approx(one.precisions, abs=1e-6)
    assert 0 < result["bleu"]["score"] < 100
    assert result["bleu"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert result["bleu_all"]["signature"].startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:")


@pytest.mark.parametrize("stem", [False, True])
def test_rouge_is_the_packages(learned, references, tmp_path, stem):
    hypotheses = tmp_path / "hypotheses.txt"
    result = json.loads(succeed("evaluate", learned, references, "--json", "-o", hypotheses,
                                *(["--stem"] if stem else [])).stdout)
    pairs = [line.split("\t") for line in references.read_text(encoding="utf-8").splitlines()]
    translated, grouped = {}, {}
    for (source, target), line in zip(pairs, hypotheses.read_text(encoding="utf-8").splitlines(), strict=True):
        translated[source] = line
        grouped.setdefault(source, []).append(target)
    kinds = ["rouge1", "rouge2", "rougeL"]
    scorer = RougeScorer(kinds, use_stemmer=stem)
    one = [scorer.score(target, translated[source]) for source, target in pairs]
    every = [scorer.score_multi(targets, translated[source]) for source, targets in grouped.items()]
    assert result["rouge_stems"] is stem
    for name, scores in (("rouge", one), ("rouge_all", every)):
        for kind in kinds:
            for n, figure in enumerate(("precision", "recall", "f")):
                mean = sum(score[kind][n] for score in scores) / len(scores)
                assert result[name][kind][figure] == pytest.approx(mean, abs=1e-9)
    assert 0 < result["rouge"]["rougeL"]["f"] < result["rouge_all"]["rougeL"]["f"] < 1


def test_what_is_known_by_heart_is_perfect(learned, lesson):
    result = json.loads(succeed("evaluate", learned, lesson, "--json").stdout)
    assert result["pairs"] == result["sources"] == 10
    assert result["exact_match"] == 1
    assert result["sentence_bleu"] == result["rouge"]["rouge1"]["f"] == 1
    assert 0 < result["loss"] < 0.1
    assert result["tokens"] == sum(len(target.split()) + 1 for _, target in LESSON)


def test_sentence_bleu_and_exact_match_by_hand(learned, tmp_path):
    test = write_pairs(tmp_path / "t.tsv", [("he's calm .", "il est paresseux ."), ("go .", "va !")])
    result = json.loads(succeed("evaluate", learned, test, "--json").stdout)
    # "il est calme ." against "il est paresseux .": (3/4)^(1/2) (1/3)^(1/4) = .658
    assert result["sentence_bleu"] == pytest.approx((1 + 0.658037) / 2, abs=1e-4)
    assert result["sentence_bleu_order"] == 2
    assert result["exact_match"] == 0.5


def test_figures_for_people_and_a_limit(learned, lesson):
    shown = succeed("evaluate", learned, lesson, "--limit", "4").stdout
    assert "100.00" in shown and "nrefs:1|" in shown
    assert json.loads(succeed("evaluate", learned, lesson, "--limit", "4", "--json").stdout)["pairs"] == 4


def test_bad_data_is_named(learned, tmp_path):
    empty = tmp_path / "empty.tsv"
    empty.write_bytes(b"")
    assert "empty.tsv" in fail(1, "evaluate", learned, empty)
    assert "missing.tsv" in fail(1, "evaluate", learned, tmp_path / "missing.tsv")

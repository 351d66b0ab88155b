"""regard train pairs --model transformer: the same commands on the other network."""
import json

import pytest

from .conftest import LESSON, content, succeed, write_pairs

SMALL = ["--model", "transformer", "--hidden-dim", "32", "--heads", "4", "--ffn-dim", "64", "--layers", "1", "--dropout", "0",
         "--splitting", "book", "--learning-rate", "0.003", "--valid-fraction", "0", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory, lesson):
    """A transformer that knows the lesson by heart."""
    folder = tmp_path_factory.mktemp("runs") / "transformer"
    succeed("train", "pairs", lesson, "-o", folder, *SMALL, "--epochs", "150")
    return folder


def test_it_learns_the_lesson_greedy_and_by_beam(run):
    sources = "".join(source + "\n" for source, _ in LESSON)
    targets = "".join(target + "\n" for _, target in LESSON)
    assert succeed("translate", run, data=sources).stdout == targets
    assert succeed("translate", run, "--beam", "4", "--batch-size", "3", data=sources).stdout == targets


def test_each_head_can_be_seen(run, tmp_path):
    view = ["view", run, "--text", "he's calm .", "--page", "a.html"]
    succeed(*view, cwd=tmp_path)
    assert "(head 1)" not in (tmp_path / "a.html").read_text(encoding="utf-8")
    succeed(*view, "--heads", cwd=tmp_path)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert all(f"he's calm . (head {head})" in page for head in range(1, 5)) and "(head 5)" not in page


# Text case 18.
def test_resume_goes_on_bit_for_bit(lesson, tmp_path):
    common = [*SMALL, "--dropout", "0.1", "--batch-size", "4"]
    succeed("train", "pairs", lesson, "-o", tmp_path / "whole", *common, "--epochs", "5")
    succeed("train", "pairs", lesson, "-o", tmp_path / "run", *common, "--epochs", "2")
    succeed("train", "pairs", "-o", tmp_path / "run", "--resume", "--epochs", "5", "--threads", "1")
    assert content(tmp_path / "run")["model.safetensors"] == content(tmp_path / "whole")["model.safetensors"]


def test_one_vocabulary_for_both_sides(tmp_path):
    pairs = [(f"the tool {n % 40} that counts {n} {'files ' * (n % 9)}", f"counts {n}") for n in range(120)]
    folder = tmp_path / "run"
    succeed("train", "pairs", write_pairs(tmp_path / "d.tsv", pairs), "-o", folder, "--preset", "summary",
            "--vocab-size", "90", "--hidden-dim", "16", "--ffn-dim", "32", "--epochs", "1")
    model = json.loads((folder / "config.json").read_text())["model"]
    assert model["shared"] and model["tied"] and model["source_vocab"] == model["target_vocab"]
    assert succeed("translate", folder, "--text", "counts 3", "--text", "the tool").stdout.count("\n") == 2

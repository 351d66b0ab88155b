"""regard train pairs: bad input, interruption, resumption."""
import json
import os
import signal
import subprocess
import time

import pytest
from .conftest import COMMAND, LESSON, TINY, content, fail, succeed, write_pairs

SHORT = [*TINY, "--valid-fraction", "0"]


def train(data, run, *options):
    return succeed("train", "pairs", data, "-o", run, *SHORT, *options)


def test_it_says_what_it_reads_and_makes(lesson, tmp_path):
    process = train(lesson, tmp_path / "run", "--epochs", "2")
    assert process.stdout == ""
    for word in ("10 pairs", "vocabulary", "parameters", "2 steps", f"regard translate {tmp_path / 'run'}"):
        assert word in process.stderr
    assert train(lesson, tmp_path / "quiet", "--epochs", "1", "--quiet").stderr == ""
    for name in ("config.json", "model.safetensors", "optimizer.pt", "metrics.jsonl"):
        assert (tmp_path / "run" / name).stat().st_size > 0


@pytest.mark.parametrize("name, data, named", [
    ("empty.tsv", b"", ["empty"]),
    ("one_column.tsv", b"go .\nrun !\n", ["tab"]),
    ("blank.tsv", b"\t\n \t \n", []),
    ("latin1.tsv", "go .\tva !\nsummer\tété\n".encode("latin-1"), ["UTF-8", "line 2", "byte"]),
    ("utf16.tsv", "go .\tva !\n".encode("utf-16"), ["UTF-8"]),
])
def test_data_that_is_no_pairs_is_named(tmp_path, name, data, named):
    (tmp_path / name).write_bytes(data)
    message = fail(1, "train", "pairs", tmp_path / name, "-o", tmp_path / "run", *SHORT)
    for word in [name, *named]:
        assert word in message
    assert not (tmp_path / "run").exists()


def test_missing_data_and_folders_are_named(tmp_path):
    assert "missing.tsv" in fail(1, "train", "pairs", tmp_path / "missing.tsv", "-o", tmp_path / "run")
    (tmp_path / "folder").mkdir()
    assert "folder" in fail(1, "train", "pairs", tmp_path / "folder", "-o", tmp_path / "run")
    assert "gone.txt" in fail(1, "train", "pairs", tmp_path / "gone.txt", tmp_path / "g.txt", "-o", tmp_path / "run")


# Text case 10.
def test_lines_with_one_column_are_skipped_counted_and_said(tmp_path):
    data = tmp_path / "some.tsv"
    data.write_text("go .\tva !\tCC-BY\nalone\nrun !\tcours !\n\tempty\n")
    process = train(data, tmp_path / "run", "--epochs", "1")
    assert "2 pairs" in process.stderr
    assert "1 line with one column skipped" in process.stderr and "line 2" in process.stderr
    assert "line 4" in process.stderr


def test_two_parallel_files(tmp_path):
    (tmp_path / "en.txt").write_text("go .\nrun !\n")
    (tmp_path / "fr.txt").write_text("va !\ncours !\n")
    assert "2 pairs" in succeed("train", "pairs", tmp_path / "en.txt", tmp_path / "fr.txt", "-o", tmp_path / "run",
                                *SHORT, "--epochs", "1").stderr
    (tmp_path / "fr.txt").write_text("va !\n")
    message = fail(1, "train", "pairs", tmp_path / "en.txt", tmp_path / "fr.txt", "-o", tmp_path / "other", *SHORT)
    assert "2" in message and "1" in message and "fr.txt" in message


# Text case 5.
def test_600_lines_asked_are_600(tmp_path):
    data = write_pairs(tmp_path / "many.tsv", [(f"word {n}", f"mot {n}") for n in range(601)])
    process = train(data, tmp_path / "run", "--limit", "600", "--max-steps", "1")
    assert "600 pairs" in process.stderr


@pytest.mark.parametrize("place, named", [("/proc/nowhere/run", "/proc/nowhere"), ("/dev/null/run", "/dev/null"),
                                          ("/sys/run", "/sys/run")])
def test_a_run_directory_that_cannot_be_written_is_named(lesson, place, named):
    assert named in fail(1, "train", "pairs", lesson, "-o", place, *SHORT)


def test_what_is_there_is_not_replaced_unasked(lesson, learned, tmp_path):
    before = content(learned)
    message = fail(2, "train", "pairs", lesson, "-o", learned, *SHORT)
    assert str(learned) in message and "--force" in message
    assert content(learned) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for force in ([], ["--force"]):
        assert "mine" in fail(2, "train", "pairs", lesson, "-o", tmp_path / "mine", *SHORT, *force)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_force_replaces_a_run(lesson, tmp_path):
    train(lesson, tmp_path / "run", "--epochs", "1")
    before = content(tmp_path / "run")
    train(lesson, tmp_path / "run", "--epochs", "1", "--seed", "5", "--force")
    assert content(tmp_path / "run")["model.safetensors"] != before["model.safetensors"]


def test_the_same_seed_gives_the_same_weights(lesson, tmp_path):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        train(lesson, tmp_path / name, "--epochs", "3", "--dropout", "0.2", "--seed", seed)
    weights = {name: content(tmp_path / name)["model.safetensors"] for name in "abc"}
    assert weights["a"] == weights["b"] != weights["c"]


def damaged(learned, tmp_path, name, change):
    run = tmp_path / "damaged"
    run.mkdir()
    for file, data in content(learned).items():
        (run / file).parent.mkdir(exist_ok=True)
        (run / file).write_bytes(change(data) if file == name else data)
    return run


def test_a_run_of_another_version_is_refused(learned, tmp_path):
    run = damaged(learned, tmp_path, "config.json",
                  lambda data: json.dumps({**json.loads(data), "format": 999}).encode())
    message = fail(1, "translate", run, data="go .\n")
    assert "damaged" in message and "999" in message


@pytest.mark.parametrize("command", [["translate"], ["evaluate"], ["view"], ["train"]])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_run_cut_short_is_refused(learned, lesson, tmp_path, name, command):
    run = damaged(learned, tmp_path, name, lambda data: data[:len(data) // 2])
    words = {"translate": ["translate", run, "--text", "go ."], "evaluate": ["evaluate", run, lesson],
             "view": ["view", run, "--text", "go ."], "train": ["train", "pairs", "-o", run, "--resume"]}[command[0]]
    before = content(run)
    assert name in fail(1, *words)
    assert content(run) == before


def test_a_vocabulary_that_does_not_match_is_refused(learned, tmp_path):
    vocabulary = next(name for name in content(learned) if name.startswith("source") and name.endswith(".json"))
    run = damaged(learned, tmp_path, vocabulary, lambda data: data.replace(b"calm", b"warm"))
    assert vocabulary in fail(1, "translate", run, data="go .\n")


def test_a_folder_that_is_no_run_is_named(tmp_path):
    assert str(tmp_path) in fail(1, "translate", tmp_path, data="go .\n")
    assert "nowhere" in fail(1, "translate", tmp_path / "nowhere", data="go .\n")


def test_an_unknown_model_in_a_run_is_named(learned, tmp_path):
    run = damaged(learned, tmp_path, "config.json", lambda data: data.replace(b'"bahdanau"', b'"luong"'))
    assert "luong" in fail(1, "translate", run, data="go .\n")


# The lesson, long enough to be interrupted.
LONG = ["--epochs", "0", "--max-steps", "400", "--dropout", "0.1", "--learning-rate", "0.003", "--batch-size", "4"]


def finished(lesson, run):
    train(lesson, run, *LONG)
    return content(run)["model.safetensors"]


def started(lesson, run):
    """A training that has begun; comes back when the run directory is there."""
    process = subprocess.Popen([COMMAND, "train", "pairs", lesson, "-o", run, *SHORT, *LONG, "--max-steps", "1000000"],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (run / "config.json").exists():
        time.sleep(0.02)
    return process


# Text case 18.
def test_ctrl_c_saves_and_resume_goes_on_bit_for_bit(lesson, tmp_path):
    process = started(lesson, tmp_path / "run")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 1
    assert f"regard train pairs -o {tmp_path / 'run'} --resume" in message
    steps = max(json.loads(line)["step"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    goal = str(steps + 100)
    succeed("train", "pairs", "-o", tmp_path / "run", "--resume", "--max-steps", goal, "--threads", "2")
    train(lesson, tmp_path / "whole", *LONG, "--max-steps", goal)
    assert content(tmp_path / "run")["model.safetensors"] == content(tmp_path / "whole")["model.safetensors"]


def test_kill_leaves_the_last_good_run(lesson, tmp_path):
    process = started(lesson, tmp_path / "run")
    time.sleep(0.3)
    process.kill()
    process.communicate(timeout=60)
    succeed("translate", tmp_path / "run", "--text", "go .")


def test_resume_needs_the_same_data_and_settings(lesson, tmp_path):
    data = write_pairs(tmp_path / "data.tsv", LESSON)
    train(data, tmp_path / "run", "--max-steps", "2", "--epochs", "0")
    before = content(tmp_path / "run")
    message = fail(2, "train", "pairs", "-o", tmp_path / "run", "--resume", "--hidden-dim", "17")
    assert "--hidden-dim" in message and "16" in message
    write_pairs(data, LESSON[:-1])
    assert "data.tsv" in fail(1, "train", "pairs", "-o", tmp_path / "run", "--resume", "--max-steps", "3")
    assert content(tmp_path / "run") == before
    assert "nowhere" in fail(1, "train", "pairs", "-o", tmp_path / "nowhere", "--resume")


# Text case 6.
def test_a_source_longer_than_the_model_is_shortened_with_one_warning(lesson, tmp_path):
    data = write_pairs(tmp_path / "long.tsv", LESSON + [("a b c d e f g h i j k l", "x")])
    process = train(data, tmp_path / "run", "--max-source", "10", "--epochs", "1", "--splitting", "spaces")
    assert process.stderr.count("warning:") == 1
    assert "10 tokens" in process.stderr


def test_validation_keeps_a_source_on_one_side(tmp_path):
    pairs = [(f"word {n % 50}", f"mot {n}") for n in range(200)]
    process = succeed("train", "pairs", write_pairs(tmp_path / "d.tsv", pairs), "-o", tmp_path / "run", *TINY,
                      "--valid-fraction", "0.3", "--epochs", "2", "--metric", "exact")
    held = int(process.stderr.split(" to validate on")[0].rsplit(" ", 1)[1])
    assert 0 < held < 120 and held % 4 == 0
    assert "best" in process.stderr


@pytest.mark.parametrize("tokenizer", ["word", "characters", "bytes", "sentencepiece", "bpe"])
def test_every_tokenizer(lesson, tmp_path, tokenizer):
    run = tmp_path / "run"
    train(lesson, run, "--tokenizer", tokenizer, "--vocab-size", "60", "--epochs", "1")
    assert succeed("translate", run, data="go .\nhe's calm .\n").stdout.count("\n") == 2


def test_bytes_are_learnt_and_give_one_line_each(lesson, tmp_path):
    run, options = tmp_path / "run", ["--tokenizer", "bytes", *TINY, "--valid-fraction", "0"]
    succeed("train", "pairs", lesson, "-o", run, *options, "--hidden-dim", "64", "--learning-rate", ".01", "--epochs", "150")
    lines = "".join(f"{source}\n" for source, _ in LESSON)
    assert succeed("translate", run, data=lines).stdout == "".join(f"{target}\n" for _, target in LESSON)
    fresh = tmp_path / "fresh"  # any byte may come
    succeed("train", "pairs", lesson, "-o", fresh, *options, "--max-steps", "1")
    out = succeed("translate", fresh, "--beam", "4", data=lines + "\U0001f642\n" * 50).stdout
    assert out.count("\n") == len(LESSON) + 50
    message = fail(2, "train", "pairs", lesson, "-o", fresh, "--force", *options, "--lower-case")
    assert "--lower-case" in message and "bytes" in message


def test_the_published_setting(lesson, tmp_path):
    data = write_pairs(tmp_path / "twice.tsv", LESSON * 2)
    succeed("train", "pairs", data, "-o", tmp_path / "run", "--preset", "book", "--max-steps", "1", "--epochs", "0")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    kept = config["training"]["arguments"]
    assert (kept["embed-dim"], kept["hidden-dim"], kept["layers"], kept["dropout"]) == ("32", "32", "2", "0.1")
    assert (kept["batch-size"], kept["learning-rate"], kept["max-source"]) == ("64", "0.005", "10")
    assert kept["epochs"] == "0"  # what is typed holds

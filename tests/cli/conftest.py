"""Runs the built command as a person would. REGARD_COMMAND names another build than build/regard."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = Path(os.environ.get("REGARD_COMMAND", ROOT / "build" / "regard"))

# A lesson small enough to be learnt by heart in seconds.
LESSON = [
    ("go .", "va !"),
    ("run !", "cours !"),
    ("i lost .", "j'ai perdu ."),
    ("he's calm .", "il est calme ."),
    ("i'm home .", "je suis chez moi ."),
    ("wow !", "ça alors !"),
    ("fire !", "au feu !"),
    ("help !", "à l'aide !"),
    ("i see .", "je comprends ."),
    ("he ran .", "il a couru ."),
]
TINY = ["--embed-dim", "16", "--hidden-dim", "16", "--layers", "1", "--dropout", "0", "--threads", "2"]


def regard(*args, data=None, env=None, **kwargs):
    """Runs the command; stdout and stderr come back as text."""
    process = subprocess.run(
        [COMMAND, *map(str, args)],
        input=data.encode() if isinstance(data, str) else data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=kwargs.pop("timeout", 90),
        **kwargs,
    )
    process.stdout = process.stdout.decode()
    process.stderr = process.stderr.decode()
    return process


def succeed(*args, **kwargs):
    process = regard(*args, **kwargs)
    assert process.returncode == 0, process.stderr
    return process


def fail(code, *args, **kwargs):
    """The command fails with `code` and says why in one line (two where it points to --help). Gives that line."""
    process = regard(*args, **kwargs)
    assert process.returncode == code, (process.returncode, process.stderr)
    lines = [line for line in process.stderr.splitlines() if line.startswith("regard")]
    assert len(lines) == 1, process.stderr
    assert process.stderr.splitlines()[-1] == (
        lines[0] if code == 1 else f"Type '{lines[0].split(':')[0]} --help' for what it takes.")
    for trace in ("terminate called", "Exception raised", "what():", "c10::", "frame #"):
        assert trace not in process.stderr
    return lines[0]


def write_pairs(path, pairs):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def content(folder):
    """Every file of a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="session")
def lesson(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("lesson") / "lesson.tsv", LESSON)


@pytest.fixture(scope="session")
def learned(tmp_path_factory, lesson):
    """A run that knows the lesson by heart."""
    run = tmp_path_factory.mktemp("runs") / "learned"
    succeed("train", "pairs", lesson, "-o", run, *TINY, "--hidden-dim", "32", "--epochs", "150",
            "--learning-rate", "0.01", "--valid-fraction", "0", "--lower-case", "--splitting", "spaces")
    return run

"""The textbook's kernel regression, as its program prints and draws it."""

import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "build" / "examples" / "textbook" / "kernel_regression"


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def test_a_learned_width_reaches_the_published_error():
    errors = [float(re.search(r"after step 5: ([\d.]+)", run(seed))[1]) for seed in range(1, 6)]
    assert sum(error <= 20 for error in errors) >= 4, errors


def test_five_steps_and_the_picture(tmp_path):
    picture = tmp_path / "regression.svg"
    text = run(1, picture)
    losses = [float(loss) for loss in re.findall(r"step \d  sum of squared errors ([\d.]+)", text)]
    assert len(losses) == 5
    assert losses[4] < losses[0]
    svg = picture.read_text()
    for name in ("Average", "Width 1", "Learned width", "truth", "prediction", "data", "Weights"):
        assert f">{name}<" in svg


def test_a_picture_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as error:
        run(1, tmp_path / "missing" / "regression.svg")
    assert "cannot write" in error.value.stderr

"""The weights of every attention module, as the textbook's programs draw them, and sinusoidal positions."""

import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "build" / "examples" / "textbook"


def run(program, *arguments):
    return subprocess.run([FOLDER / program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def test_every_module_draws_its_weights(tmp_path):
    run("attention", tmp_path)
    panels = {
        "without_parameters": ["average", "dot", "scaled dot", "cosine"],
        "trainable": ["matrices", "linear layers", "with biases"],
        "restricted": ["all", "causal", "local, 1 each side"],
        "side_by_side": ["head 0", "head 1"],
        "multi_head": ["all, dot 0", "all, additive 1", "causal, dot 0", "causal, additive 1"],
        "soft_and_hard": ["soft", "hard: the likeliest"],
    }
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(panels)
    for name, titles in panels.items():
        svg = (tmp_path / f"{name}.svg").read_text()
        for title in titles:
            assert f">{title}<" in svg, (name, title)


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as error:
        run("attention", tmp_path / "missing")
    assert "cannot write" in error.value.stderr


def test_the_sinusoid_has_its_periods_and_its_rotation(tmp_path):
    text = run("positions", tmp_path / "positions.svg")
    assert "columns  0 and  1: period 6.3\n" in text
    assert "columns  8 and  9: period 62.8\n" in text
    assert float(re.search(r"within (\S+) of", text)[1]) < 1e-5
    svg = (tmp_path / "positions.svg").read_text()
    for title in ("Positions", "Each pair of columns has its period", "A shift by 7 is one rotation"):
        assert f">{title}<" in svg

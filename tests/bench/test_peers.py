"""The comparisons with peers in Python, bench/peers: that they compute the same, not how fast the machine is."""
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"


def run(script, *args):
    return subprocess.run([sys.executable, PEERS / script, *args], capture_output=True, text=True, timeout=120)


def test_a_row_as_json():
    process = run("compiled_additive.py", "additive-eager-both", "--runs", "1", "--threads", "1", "--json")
    assert process.returncode == 0, process.stderr
    (row,) = json.loads(process.stdout)["rows"]
    assert row["name"] == "additive-eager-both"
    assert row["ratio"] == row["peer_seconds"] / row["seconds"]
    assert row["wanted"] == {"ratio": 30}
    # the output and every gradient, both sides against float64
    assert 0 < row["error"] < 1e-5
    assert 0 < row["peer_error"] < 1e-5


@pytest.mark.parametrize("script", ["flex_attention.py", "compiled_additive.py"])
def test_an_unknown_row_is_named_beside_the_known(script):
    process = run(script, "nonsense")
    assert process.returncode == 2
    assert "no row 'nonsense'; there are " in process.stderr


@pytest.mark.skipif(importlib.util.find_spec("pykeops") is not None, reason="KeOps is installed")
def test_a_missing_package_is_said_with_its_remedy():
    process = run("keops.py")
    assert process.returncode == 1
    assert process.stderr.count("\n") == 1
    assert "pip install -r bench/peers/requirements.txt" in process.stderr

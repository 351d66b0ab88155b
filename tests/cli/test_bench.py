"""regard bench: what it prints, not how fast the machine is."""
import json

import pytest
from .conftest import fail, succeed


def test_rows_are_listed_with_what_they_measure():
    lines = dict(line.split(None, 1) for line in succeed("bench", "--list").stdout.splitlines())
    assert lines["causal-4096-backward"] == "1, 8, 4096, 64; causal; backward; beside PyTorch"
    assert lines["decode"] == "1, 32, 1, 128; 4096 keys of 8 heads; forward; beside PyTorch"


@pytest.mark.parametrize("pattern, names", [
    ("small", ["small-op", "small-engine"]),
    ("small-op", ["small-op"]),
    ("*-1024-forw?rd", ["causal-1024-forward"]),
])
def test_rows_are_chosen_by_beginning_or_pattern(pattern, names):
    listed = succeed("bench", "--list", pattern).stdout.splitlines()
    assert [line.split()[0] for line in listed] == names


def test_an_unknown_row_is_named_beside_the_known():
    said = fail(2, "bench", "small", "tiny")
    assert said.startswith("regard bench: no row 'tiny'; there are dense-4096-64-forward, ")
    assert "small-engine" in said


def test_a_row_as_json():
    result = json.loads(succeed("bench", "small-engine", "--runs", "3", "--json", "--threads", "2").stdout)
    machine, (row,) = result["machine"], result["rows"]
    assert machine["threads"] == 2
    assert machine["fma_peak_gflops"] > 1
    assert machine["read_bandwidth_gbytes"] > 0.1
    assert row["name"] == "small-engine"
    assert row["wanted"] == {"ratio": 5}
    assert row["reached"] == (row["ratio"] >= 5)
    low, median, high = row["ratio_quartiles"]
    assert 0 < low <= median == row["ratio"] <= high
    # 64 x 4 heads of 10 x 10 pairs, 2 (8 + 8) operations each
    assert row["gflops"] * row["seconds"] == pytest.approx(64 * 4 * 100 * 32 / 1e9)
    assert row["share"] == pytest.approx(row["gflops"] / row["fma_peak_gflops"])
    assert 0 < row["error"] < 1e-6
    assert 0 < row["peer_error"] < 1e-6
    assert row["within_contract"] and row["same_bits"]


def test_a_row_for_people():
    head, peaks, _, titles, row, _, summary = succeed("bench", "small-op", "--runs", "1", "-q").stdout.splitlines()
    assert "PyTorch 2.13.0" in head
    assert "GFLOP/s" in peaks
    assert titles.split()[:3] == ["row", "regard", "peer"]
    assert row.split()[0] == "small-op" and row.split()[-1] == "same"
    assert summary in ("0 of 1 row reach what is wanted", "1 of 1 row reach what is wanted")

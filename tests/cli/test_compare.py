"""regard compare layers: what it prints and draws, not how fast the machine is."""
import json

from .conftest import fail, succeed

SMALL = ["--lengths", "64", "128", "256", "--widths", "16", "32", "64", "--length", "64", "--width", "16",
         "--runs", "1", "--threads", "1"]


def test_every_layer_with_fitted_exponents_beside_those_of_theory():
    layers = json.loads(succeed("compare", "layers", *SMALL, "--json").stdout)
    assert [layer["layer"] for layer in layers] == ["self-attention", "convolution", "recurrence"]
    attention, convolution, recurrence = layers
    assert attention["time_by_length"]["theory"] == 2
    assert convolution["time_by_width"]["theory"] == 2
    assert recurrence["sequential_steps"] == recurrence["longest_path"] == "n"
    for layer in layers:
        assert [point["length"] for point in layer["by_length"]] == [64, 128, 256]
        assert [point["width"] for point in layer["by_width"]] == [16, 32, 64]
        assert isinstance(layer["time_by_length"]["fitted"], float)


def test_a_table_and_a_plot(tmp_path):
    picture = tmp_path / "costs.svg"
    table = succeed("compare", "layers", *SMALL, "--svg", picture).stdout
    for text in ("self-attention", "n²d", "knd²", "longest path", "256"):
        assert text in table
    svg = picture.read_text()
    for text in ("Time by length", "Memory by width", "recurrence"):
        assert f">{text}<" in svg


def test_too_few_sizes_are_refused():
    assert "--lengths: expected at least three" in fail(2, "compare", "layers", "--lengths", "64", "64", "128")
    said = fail(2, "compare", "layers", "--widths", "8", "many", "32")
    assert "--widths many: expected a whole number from 1 to 65536" in said

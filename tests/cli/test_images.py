"""regard train images, classify and evaluate: a classifier of images from data to pictures."""
import gzip
import json
import random
import struct
import subprocess
import xml.etree.ElementTree
import zlib

import pytest
from .conftest import COMMAND, content, fail, succeed

SMALL = ["--layers", "1", "--heads", "2", "--embed-dim", "16", "--dropout", "0", "--threads", "2",
         "--batch-size", "16", "--learning-rate", "0.01", "--warmup", "5"]


def line_images(count, seed):
    """Grey images of 6 x 6 pixels up to 255, and whether they show a bright row or a column."""
    draw = random.Random(seed)
    images = []
    for i in range(count):
        pixels = [[draw.randrange(60) for _ in range(6)] for _ in range(6)]
        label, at = ("row", "column")[i % 2], draw.randrange(6)
        for k in range(6):
            if label == "row":
                pixels[at][k] = 255
            else:
                pixels[k][at] = 255
        images.append((sum(pixels, []), label))
    return images


def write_csv(path, images):
    path.write_text("".join(",".join(map(str, pixels)) + f",{label}\n" for pixels, label in images))
    return path


def write_png(path, pixels, size=6):
    lines = b"".join(b"\0" + bytes(pixels[r * size:(r + 1) * size]) for r in range(size))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


@pytest.fixture(scope="session")
def lines(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("lines") / "lines.csv", line_images(160, 1))


@pytest.fixture(scope="session")
def soft(tmp_path_factory, lines):
    run = tmp_path_factory.mktemp("runs") / "soft"
    succeed("train", "images", lines, "-o", run, *SMALL, "--patch", "3", "--epochs", "30", "--test-rows", "40")
    return run


@pytest.fixture(scope="session")
def hard(tmp_path_factory, lines):
    run = tmp_path_factory.mktemp("runs") / "hard"
    succeed("train", "images", lines, "-o", run, *SMALL, "--patch", "2", "--epochs", "3", "--attention", "hard")
    return run


def test_learns_and_keeps_the_last_rows_for_the_test(tmp_path, lines, soft):
    result = json.loads(succeed("evaluate", soft, lines, "--last", "40", "--json", "--confusion").stdout)
    assert result["images"] == 40 and result["accuracy"] >= 0.95
    assert result["classes"] == ["column", "row"] and sum(map(sum, result["confusion"])) == 40
    assert result["correct"] == result["confusion"][0][0] + result["confusion"][1][1]
    text = succeed("evaluate", soft, lines, "--last", "40", "--confusion").stdout
    assert f"accuracy          {100 * result['accuracy']:.1f} %" in text and "true \\ told" in text

    # What the last rows are does not matter to the training.
    changed = write_csv(tmp_path / "changed.csv", line_images(160, 1)[:-40] + line_images(40, 2))
    said = succeed("train", "images", changed, "-o", tmp_path / "run", *SMALL, "--patch", "3", "--epochs", "1",
                   "--test-rows", "40").stderr
    succeed("train", "images", lines, "-o", tmp_path / "same", *SMALL, "--patch", "3", "--epochs", "1",
            "--test-rows", "40")
    assert (tmp_path / "run/model.safetensors").read_bytes() == (tmp_path / "same/model.safetensors").read_bytes()
    assert "of the last 40 images right" in said and "108 images of 6 x 6 pixels in 2 classes" in said


def test_classifies_csv_png_and_idx_alike(tmp_path, lines, soft):
    images = line_images(6, 3)
    write_csv(tmp_path / "some.csv", images)
    (tmp_path / "png").mkdir()
    for i, (pixels, _) in enumerate(images):
        write_png(tmp_path / "png" / f"{i}.png", pixels)
    (tmp_path / "some-images-idx3-ubyte.gz").write_bytes(gzip.compress(
        struct.pack(">IIII", 0x803, 6, 6, 6) + b"".join(bytes(pixels) for pixels, _ in images)))
    csv = [line.split("\t") for line in succeed("classify", soft, tmp_path / "some.csv", "--labelled")
           .stdout.splitlines()]
    assert [line[0] for line in csv] == list("123456")
    assert [line[1] for line in csv] == [line[3] for line in csv] == [label for _, label in images]
    assert all(0.5 <= float(line[2]) <= 1 for line in csv)
    png = [line.split("\t") for line in succeed("classify", soft, tmp_path / "png").stdout.splitlines()]
    assert [line[0] for line in png] == [f"{i}.png" for i in range(6)]
    assert [line[1:] for line in png] == [line[1:3] for line in csv]
    idx = succeed("classify", soft, tmp_path / "some-images-idx3-ubyte.gz").stdout.splitlines()
    assert [line.split("\t") for line in idx] == [line[:3] for line in csv]
    assert succeed("classify", soft, tmp_path / "png" / "3.png").stdout.split("\t")[1:] == png[3][1:2] + [
        png[3][2] + "\n"]
    wrong = json.loads(succeed("classify", soft, lines, "--wrong", "--json").stdout)
    assert all(entry["class"] != entry["true"] for entry in wrong) and len(wrong) <= 8


def test_soft_weights_and_probabilities_sum_to_one(lines, soft):
    entry = json.loads(succeed("classify", soft, lines, "--labelled", "--limit", "1", "--json").stdout)[0]
    assert entry["image"] == "1" and entry["true"] == "row" and "glimpses" not in entry
    assert sum(entry["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert len(entry["weights"]) == 4 and sum(entry["weights"]) == pytest.approx(1, abs=1e-5)


def test_hard_attention_looks_at_a_quarter_and_nothing_else_matters(tmp_path, lines, hard):
    pixels, label = line_images(1, 5)[0]
    image = write_csv(tmp_path / "one.csv", [(pixels, label)])
    before = json.loads(succeed("classify", hard, image, "--labelled", "--json").stdout)[0]
    assert len(set(before["glimpses"])) == 2  # of 9
    seen = {6 * (2 * (patch // 3) + r) + 2 * (patch % 3) + c
            for patch in before["glimpses"] for r in (0, 1) for c in (0, 1)}
    write_csv(image, [([p if i in seen else 255 - p for i, p in enumerate(pixels)], label)])
    assert json.loads(succeed("classify", hard, image, "--labelled", "--json").stdout)[0] == before


@pytest.mark.parametrize("run, marks", [("soft", 'class="weight"'), ("hard", 'class="glimpse"')])
def test_pictures_show_where_it_looked(tmp_path, lines, run, marks, request):
    folder = request.getfixturevalue(run)
    said = succeed("classify", folder, lines, "--labelled", "--limit", "9", "--pictures", "5", "--picture",
                   tmp_path / "looked.svg", "-o", tmp_path / "classes.tsv", "--title", "Rows & columns")
    assert "first 5 of 9 images" in said.stderr and said.stdout == ""
    assert len((tmp_path / "classes.tsv").read_text().splitlines()) == 9
    svg = (tmp_path / "looked.svg").read_text()
    assert svg.count("<image") == 5 and marks in svg and "Rows &amp; columns" in svg
    xml.etree.ElementTree.fromstring(svg)
    succeed("classify", folder, lines, "--labelled", "--limit", "2", "--picture", tmp_path / "looked.html")
    assert (tmp_path / "looked.html").read_text().startswith("<!DOCTYPE html>")


def test_folders_of_png_files_are_trained_on(tmp_path):
    for i, (pixels, label) in enumerate(line_images(24, 7)):
        (tmp_path / "data" / label).mkdir(parents=True, exist_ok=True)
        write_png(tmp_path / "data" / label / f"{i:02}.png", pixels)
    said = succeed("train", "images", tmp_path / "data", "-o", tmp_path / "run", *SMALL, "--patch", "3",
                   "--epochs", "2", "--valid-fraction", "0.25").stderr
    assert "18 images of 6 x 6 pixels in 2 classes to train on, 6 to validate on" in said
    result = json.loads(succeed("evaluate", tmp_path / "run", tmp_path / "data", "--json").stdout)
    assert result["images"] == 24
    assert "--test-rows is for files" in fail(2, "train", "images", tmp_path / "data", "-o", tmp_path / "other",
                                              "--test-rows", "3")


def test_an_interrupted_training_goes_on_to_the_same_bits(tmp_path, lines):
    options = [*SMALL, "--patch", "2", "--attention", "hard", "--shift", "0.5", "--seed", "4"]
    succeed("train", "images", lines, "-o", tmp_path / "whole", *options, "--epochs", "4", "--schedule", "constant")
    succeed("train", "images", lines, "-o", tmp_path / "parts", *options, "--epochs", "2", "--schedule", "constant")
    succeed("train", "images", "-o", tmp_path / "parts", "--resume", "--epochs", "4")
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (
        tmp_path / "parts/model.safetensors").read_bytes()
    write_csv(tmp_path / "other.csv", line_images(160, 8))
    before = content(tmp_path / "parts")
    assert "--resume goes on with the run's own DATA" in fail(2, "train", "images", tmp_path / "other.csv", "-o",
                                                              tmp_path / "parts", "--resume")
    assert content(tmp_path / "parts") == before


@pytest.mark.parametrize("code, args, message", [
    (2, ["--patch", "4"], "--patch 4: expected a divisor of both sizes of images of 6 x 6 pixels"),
    (2, ["--attention", "hard", "--glimpses", "37", "--patch", "1"], "--glimpses 37: expected at most the 36 patches"),
    (2, ["--glimpses", "3"], "--glimpses needs --attention hard"),
    (2, ["--test-rows", "160"], "--test-rows 160: "),
    (2, ["--rows", "5"], "36 pixels a line do not make"),
    (2, ["--label", "weight"], "no column \"weight\" for the label"),
    (2, ["--attention", "loud"], "--attention"),
    (2, ["--heads", "3"], "--embed-dim 64: expected a multiple of the 3 heads"),
])
def test_wrong_settings_are_named(tmp_path, lines, code, args, message):
    assert message in fail(code, "train", "images", lines, "-o", tmp_path / "run", *SMALL[:2], *args)
    assert not (tmp_path / "run").exists()


def test_view_says_which_command_draws_images(soft):
    assert f"classify {soft} IMAGES --picture" in fail(2, "view", soft, "--text", "a")


def test_wrong_input_is_named(tmp_path, lines, soft, learned):
    bad = tmp_path / "bad.csv"
    bad.write_text("1,2,3,4\n")
    assert f"{bad}: 4 pixels a line do not make 6 x 6" in fail(2, "classify", soft, bad)
    assert "37 pixels a line do not make 6 x 6" in fail(2, "classify", soft, lines)
    write_png(tmp_path / "small.png", [0] * 16, size=4)
    assert "small.png: images of 4 x 4 pixels, grey; " in fail(1, "classify", soft, tmp_path / "small.png")
    bad.write_text(",".join(["300"] * 36) + "\n")
    assert "a pixel of 300; " in fail(1, "classify", soft, bad)
    bad.write_text(",".join(["1"] * 36) + ",diagonal\n")
    assert "is of class \"diagonal\"; expected one of column, row" in fail(1, "evaluate", soft, bad)
    assert "none.csv" in fail(1, "classify", soft, tmp_path / "none.csv")
    assert "--last 161: there are 160 images" in fail(2, "evaluate", soft, lines, "--last", "161")
    assert "expected a name that ends in .svg or .html" in fail(2, "classify", soft, lines, "--labelled",
                                                                "--picture", tmp_path / "looked.png")
    assert "--beam does not apply: RUN is a classifier" in fail(2, "evaluate", soft, lines, "--beam", "2")
    assert "--confusion does not apply: RUN is a translator" in fail(2, "evaluate", learned, lines, "--confusion")
    assert "classify" in fail(1, "classify", learned, lines)


def test_a_closed_pipe_ends_it(soft, lines):
    process = subprocess.run(f"'{COMMAND}' classify '{soft}' '{lines}' --labelled --json | head -c 1 > /dev/null",
                             shell=True, capture_output=True, timeout=60)
    assert b"terminate" not in process.stderr

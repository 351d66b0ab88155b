import json
import os

from .conftest import succeed


def test_info_as_json():
    info = json.loads(succeed("info", "--json").stdout)
    assert info["cores"] == os.cpu_count()
    assert info["instruction_set"]
    assert {"libtorch", "Highway", "ICU", "SentencePiece"} <= info["libraries"].keys()


def test_threads_can_be_chosen():
    assert json.loads(succeed("info", "--json", "--threads", "1").stdout)["threads"] == 1


def test_info_for_people_has_the_same_content():
    info = json.loads(succeed("info", "--json").stdout)
    shown = dict(line.rsplit(None, 1) for line in succeed("info").stdout.splitlines() if len(line.split()) == 2)
    assert shown["regard"] == info["version"]
    assert shown["ICU"] == info["libraries"]["ICU"]

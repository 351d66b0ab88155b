"""regard quickstart keeps its promise: dates read right, and attention where it belongs."""
import json

from .conftest import succeed


def test_a_minute_from_nothing_to_a_reader_of_dates(tmp_path):
    result = json.loads(succeed("quickstart", "--json", "-o", "run", cwd=tmp_path, timeout=300).stdout)
    assert result["dates"] == 1000
    assert result["styles"] >= 25
    assert result["exact"] >= 995
    # more than half of the weight on the year for the year's digits, and so for month and day
    assert result["attention_mostly_right"] >= 900
    assert all(share > 0.5 for share in result["attention_share"].values())
    page = (tmp_path / result["page"]).read_text(encoding="utf-8")
    assert "What a reader of dates attends to" in page


def test_what_it_prints(tmp_path):
    shown = succeed("quickstart", "--max-steps", "3", cwd=tmp_path)
    assert "dates never seen in training are read exactly right" in shown.stdout
    assert "file://" in shown.stdout and "runs/quickstart/attention/dates.html" in shown.stdout
    assert "written" in shown.stdout and "read as" in shown.stdout
    assert (tmp_path / "runs/quickstart/attention/date.svg").read_text().startswith("<svg")
    succeed("quickstart", "--max-steps", "1", "--quiet", cwd=tmp_path)  # its own folder is its to replace
    assert succeed("translate", "runs/quickstart", "--text", "le 3 mars 2027", cwd=tmp_path).stdout.endswith("\n")

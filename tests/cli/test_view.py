"""regard view: what was attended to, on the terminal, as a page, as SVG."""
import xml.etree.ElementTree as ElementTree

from .conftest import fail, succeed


def test_terminal_shows_source_and_target(learned):
    shown = succeed("view", learned, "--text", "he's calm .").stdout
    for token in ("he's", "calm", "il", "est", "calme"):
        assert token in shown


def test_page_and_svg_are_written(learned, tmp_path):
    process = succeed("view", learned, "--text", "go .", "--text", "wow !", "--page", "a.html", "--svg", "a.svg",
                      cwd=tmp_path)
    assert process.stdout == ""
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "alors" in page
    svg = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert svg.tag.endswith("svg")
    texts = ["".join(element.itertext()) for element in svg.iter() if element.tag.endswith("text")]
    assert any("alors" in text for text in texts)


def test_odd_text_is_shown(learned):
    for text in ("", " ", "</script><script>alert(1)</script>", "\u202e", "🙂"):
        succeed("view", learned, "--text", text)


def test_misuse_is_named(learned):
    assert "--text" in fail(2, "view", learned)
    assert "/nowhere/a.html" in fail(1, "view", learned, "--text", "go .", "--page", "/nowhere/a.html")

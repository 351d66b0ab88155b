"""regard translate: lines in, lines out."""
import os
import pty
import subprocess
import time

import pytest
from .conftest import COMMAND, LESSON, fail, succeed


def test_it_says_what_it_has_learnt(learned):
    sources = "".join(f"{source}\n" for source, _ in LESSON)
    process = succeed("translate", learned, data=sources)
    assert process.stdout.splitlines() == [target for _, target in LESSON]
    assert process.stderr == ""


def test_a_beam_says_the_same_where_the_model_is_sure(learned):
    sources = "".join(f"{source}\n" for source, _ in LESSON)
    assert succeed("translate", learned, "--beam", "4", data=sources).stdout.splitlines() == [
        target for _, target in LESSON]


def odd_lines():
    odd = ["", " ", "\t", "go .", "x", "wow ! " * 60, "\u2028", "a\u0085b", "\x0c", "go .\r", "a\rb", "\u00a0",
           "\u202e", "日本語", "🙂" * 30, "e\u0301", "\x00", "<unk>", "</s>", "<pad> <bos>", "--beam", "-"]
    lines = []
    for number in range(3000):
        lines.append(odd[number % len(odd)] if number % 3 else f"{LESSON[number % 10][0]} {number}")
    return lines


# Text cases 6, 7 and 8.
def test_3000_lines_in_are_3000_out_in_order_and_do_not_depend_on_their_neighbours(learned):
    lines = odd_lines()
    process = succeed("translate", learned, data="".join(line + "\n" for line in lines))
    out = process.stdout.split("\n")
    assert out.pop() == ""
    assert len(out) == 3000
    first_seen = {}
    for line, translated in zip(lines, out):
        assert first_seen.setdefault(line, translated) == translated
    for line in ["go .", "", "wow ! " * 60, "日本語"]:
        assert succeed("translate", learned, "--text", line).stdout == first_seen[line] + "\n"
    assert process.stderr.count("warning:") == 1  # of the shortened ones, with their number
    assert str(lines.count("wow ! " * 60)) in process.stderr


# Text case 9.
def test_only_a_line_feed_ends_a_line(learned):
    text = "\ufeffgo .\r\nwow\u2028!\x0c!\u0085!\ngo ."
    out = succeed("translate", learned, data=text).stdout
    assert out.count("\n") == 3
    assert out.split("\n")[0] == out.split("\n")[2] == "va !"


def test_no_line_in_is_none_out(learned):
    assert succeed("translate", learned, data="").stdout == ""


# Text case 11.
def test_text_that_is_not_utf8_is_an_error_with_its_place_or_replaced(learned, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"go .\nwow \xff !\ngo .\n")
    message = fail(1, "translate", learned, bad)
    assert "bad.txt" in message and "line 2" in message and "byte" in message and "UTF-8" in message
    out = succeed("translate", learned, bad, "--replace-invalid")
    assert out.stdout.count("\n") == 3
    assert "warning" in out.stderr


def test_files_in_and_out(learned, tmp_path):
    (tmp_path / "in.txt").write_text("go .\nwow !\n")
    assert succeed("translate", learned, "in.txt", "-o", "out.txt", cwd=tmp_path).stdout == ""
    assert (tmp_path / "out.txt").read_text() == "va !\nça alors !\n"
    assert succeed("translate", learned, "-", data="go .\n").stdout == "va !\n"


def test_attention_page_of_what_was_translated(learned, tmp_path):
    page = tmp_path / "page.html"
    process = succeed("translate", learned, "--attention", page, data="go .\nwow !\n")
    assert process.stdout == "va !\nça alors !\n"
    assert "<html" in page.read_text(encoding="utf-8")


def test_wrong_files_are_named(learned, tmp_path):
    assert "missing.txt" in fail(1, "translate", learned, tmp_path / "missing.txt")
    assert str(tmp_path) in fail(1, "translate", learned, tmp_path)
    assert "/nowhere/out.txt" in fail(1, "translate", learned, "-o", "/nowhere/out.txt", data="go .\n")
    assert "page.html" in fail(1, "translate", learned, "--attention", "/nowhere/page.html", data="go .\n")
    with open("/dev/full", "wb") as full:
        process = subprocess.run([COMMAND, "translate", learned, "--text", "go ."], stdout=full,
                                 stderr=subprocess.PIPE, timeout=60)
    assert process.returncode == 1
    assert process.stderr.decode() == (
        "regard translate: cannot write to standard output: No space left on device\n")


def test_a_reader_that_leaves_ends_it_quietly(learned):
    line = f"yes 'go .' | head -n 20000 | '{COMMAND}' translate '{learned}' | head -n 1"
    process = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60)
    assert process.stdout.decode() == "va !\n"
    assert process.stderr == b""


def test_a_writer_that_waits_gets_its_answer(learned):
    process = subprocess.Popen([COMMAND, "translate", learned], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for source, target in LESSON[:3]:
        process.stdin.write(f"{source}\n".encode())
        process.stdin.flush()
        assert process.stdout.readline().decode() == f"{target}\n"
    process.stdin.close()
    assert process.wait(30) == 0


def test_typed_lines_are_answered(learned):
    main, side = pty.openpty()
    process = subprocess.Popen([COMMAND, "translate", learned], stdin=side, stdout=side, stderr=side,
                               env={**os.environ, "NO_COLOR": "1"})
    os.close(side)
    shown = b""

    def until(wanted):
        nonlocal shown
        deadline = time.monotonic() + 30
        while wanted not in shown and time.monotonic() < deadline:
            try:
                shown += os.read(main, 4096)
            except OSError:
                break
        assert wanted in shown, shown.decode()

    until(b"> ")
    os.write(main, b"go .\n")
    until(b"va !")
    os.write(main, b"\x04")  # Ctrl-D
    assert process.wait(30) == 0
    os.close(main)


@pytest.mark.parametrize("words", [["--text", "go .", "--text", "wow !"]])
def test_texts_on_the_command_line(learned, words):
    assert succeed("translate", learned, *words).stdout == "va !\nça alors !\n"

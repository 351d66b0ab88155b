"""What every command does alike: help, versions, misuse, where output goes."""
import os
import pty
import re
import subprocess

import pytest
from .conftest import COMMAND, ROOT, fail, regard, succeed

COMMANDS = ["quickstart", "train", "train pairs", "train text", "train images", "translate", "generate", "classify", "evaluate",
            "view", "attend", "bench", "compare", "compare layers", "export", "import", "info"]


def test_version_is_that_of_the_project():
    version = re.search(r"project\(regard VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert succeed("--version").stdout == f"regard {version}\n"


def test_help_lists_every_command():
    listed = re.findall(r"^  ([a-z]+)  ", succeed("--help").stdout.split("Options:")[0], re.MULTILINE)
    assert listed == [name for name in COMMANDS if " " not in name]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_with_an_example(name):
    shown = succeed(*name.split(), "--help")
    assert shown.stdout.startswith(f"Usage: regard {name} ")
    example = shown.stdout.split("Examples:\n")[1]
    assert f"regard {name}" in example
    assert shown.stderr == ""
    assert max(map(len, shown.stdout.split("Examples:")[0].splitlines())) <= 100


def test_nothing_typed_shows_help_on_standard_error():
    process = regard()
    assert process.returncode == 2
    assert process.stdout == ""
    assert "Commands:" in process.stderr


@pytest.mark.parametrize("words, message", [
    (["trian"], "regard: no command 'trian' (did you mean train?); there are"),
    (["train", "pars", "x"], "regard train: no command 'pars' (did you mean pairs?)"),
    (["train"], "regard train: expected a command: pairs"),
    (["translate", "--beem", "4", "x"], "regard translate: unknown option --beem (did you mean --beam?)"),
    (["evaluate", "x", "y", "--jsom"], "regard evaluate: unknown option --jsom (did you mean --json?)"),
    (["translate"], "regard translate: RUN is missing"),
    (["evaluate", "x"], "regard evaluate: DATA is missing"),
    (["translate", "x", "y", "z"], "regard translate: unexpected argument 'z'"),
    (["translate", "x", "--beam", "0"], "regard translate: --beam 0: expected a whole number from 1 to"),
    (["translate", "x", "--beam"], "regard translate: --beam"),
    (["info", "--threads", "many"], "regard info: --threads many: expected a whole number from 0 to"),
    (["train", "pairs", "dates", "-o", "x", "--dropout", "1"],
     "regard train pairs: --dropout 1: expected a number, at least 0 and less than 1"),
    (["train", "pairs", "dates", "-o", "x", "--schedule", "cosin"],
     "regard train pairs: --schedule cosin: expected constant, cosine or invsqrt (did you mean cosine?)"),
    (["train", "pairs", "dates", "-o", "x", "--model", "bahdanou"],
     "regard train pairs: --model bahdanou: expected bahdanau or transformer (did you mean bahdanau?)"),
    (["train", "pairs", "dates", "-o", "x", "--model", "transformer", "--bidirectional"],
     "regard train pairs: --bidirectional is an option of --model bahdanau, not of transformer"),
    (["train", "pairs", "dates", "-o", "x", "--model", "transformer", "--hidden-dim", "30", "--heads", "4"],
     "regard train pairs: --hidden-dim 30: expected a multiple of the 4 heads"),
    (["train", "pairs", "dates", "-o", "x", "--shared-vocab", "--target-tokenizer", "characters"],
     "regard train pairs: --shared-vocab and --target-tokenizer exclude each other"),
    (["train", "pairs", "dates"], "regard train pairs: "),
])
def test_misuse_is_named(words, message):
    assert fail(2, *words).startswith(message)


def test_a_full_disk_is_said():
    with open("/dev/full", "wb") as full:
        for words in (["--help"], ["--version"], ["info"]):
            process = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE, timeout=60)
            assert process.returncode == 1
            assert process.stderr.decode().count("\n") == 1
            assert "cannot write to standard output: No space left on device" in process.stderr.decode()


def test_a_closed_pipe_ends_quietly():
    line = f"'{COMMAND}' attend --help | head -n 1"
    process = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60)
    assert process.stderr == b""
    assert process.stdout.startswith(b"Usage: regard attend")


def on_a_terminal(words, **env):
    """What the command writes to a terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen([COMMAND, *words], stdin=subprocess.DEVNULL, stdout=side, stderr=side,
                               env={**os.environ, "TERM": "xterm", **env})
    os.close(side)
    shown = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.wait(60)
    os.close(main)
    return shown


def test_colour_is_for_terminals_that_want_it():
    assert "\x1b[" not in succeed("--help").stdout
    assert b"\x1b[" in on_a_terminal(["--help"], NO_COLOR="")
    assert b"\x1b[" not in on_a_terminal(["--help"], NO_COLOR="1")
    assert b"\x1b[" not in on_a_terminal(["--help"], NO_COLOR="", TERM="dumb")

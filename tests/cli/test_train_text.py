"""regard train text, generate, evaluate, export and import: a language model from text to files and back."""
import json
import math
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from safetensors.torch import load_file
from .conftest import COMMAND, content, fail, succeed

TEXT = "the cat sat on the mat.\nthe dog sat on the log.\n" * 40
SMALL = ["--layers", "2", "--heads", "2", "--embed-dim", "32", "--context", "32", "--threads", "2"]


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def bard(tmp_path_factory, text):
    """A run that knows the text by heart."""
    run = tmp_path_factory.mktemp("runs") / "bard"
    succeed("train", "text", text, "-o", run, *SMALL, "--max-steps", "200", "--warmup", "10",
            "--learning-rate", "0.005", "--validate-every", "100")
    return run


def gpt2(folder, tokens):
    """GPT-2's logits [T, vocab], from its files."""
    config, w = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    heads, width = config["n_head"], config["n_embd"]

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (width,), w[name + ".weight"], w[name + ".bias"],
                                              config["layer_norm_epsilon"])

    def conv1d(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    activation = {"gelu": torch.nn.functional.gelu, "relu": torch.relu,
                  "gelu_new": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))}
    length = len(tokens)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    x = w["wte.weight"][tokens] + w["wpe.weight"][:length]
    for n in range(config["n_layer"]):
        h = f"h.{n}."
        q, k, v = (part.view(length, heads, -1).transpose(0, 1)
                   for part in conv1d(norm(x, h + "ln_1"), h + "attn.c_attn").split(width, dim=1))
        scores = (q @ k.transpose(1, 2) / math.sqrt(width // heads)).masked_fill(future, -math.inf)
        heads_out = (scores.softmax(-1) @ v).transpose(0, 1).reshape(length, width)
        x = x + conv1d(heads_out, h + "attn.c_proj")
        inner = activation[config["activation_function"]](conv1d(norm(x, h + "ln_2"), h + "mlp.c_fc"))
        x = x + conv1d(inner, h + "mlp.c_proj")
    head = w["wte.weight"] if config["tie_word_embeddings"] else w["lm_head.weight"]
    return norm(x, "ln_f") @ head.T


@pytest.mark.parametrize("options", [["--no-bias"], ["--untied", "--activation", "gelu_tanh", "--ffn-dim", "48"]])
def test_exported_files_are_gpt2s_with_its_loss(text, tmp_path, options):
    succeed("train", "text", text, "-o", tmp_path / "run", *SMALL, *options, "--max-steps", "3", "--warmup", "0",
            "--learning-rate", "0.01", "--tokenizer", "bytes")
    succeed("export", tmp_path / "run", "-o", tmp_path / "gpt2")
    (tmp_path / "part.txt").write_text(TEXT[:33])
    result = json.loads(succeed("evaluate", tmp_path / "run", tmp_path / "part.txt", "--json").stdout)
    tokens = torch.tensor([4 + byte for byte in TEXT[:33].encode()])
    expected = torch.nn.functional.cross_entropy(gpt2(tmp_path / "gpt2", tokens[:-1]), tokens[1:]).item()
    assert result["tokens"] == result["characters"] == 32
    assert result["loss"] == pytest.approx(expected, rel=1e-5)
    assert result["perplexity"] == pytest.approx(math.exp(expected), rel=1e-4)
    assert result["bits_per_character"] == pytest.approx(expected / math.log(2), rel=1e-5)

    succeed("import", tmp_path / "gpt2", "-o", tmp_path / "again")
    again = json.loads(succeed("evaluate", tmp_path / "again", tmp_path / "part.txt", "--json").stdout)
    assert again["loss"] == pytest.approx(result["loss"], rel=1e-6)


def test_it_says_what_it_reads_and_makes(text, tmp_path):
    process = succeed("train", "text", text, "-o", tmp_path / "run", *SMALL, "--max-steps", "2")
    assert process.stdout == ""
    for word in ("1,728 tokens", "192", "vocabulary", "parameters", "2 steps", f"regard generate {tmp_path / 'run'}"):
        assert word in process.stderr


def test_what_is_known_by_heart_is_written(bard, text):
    written = succeed("generate", bard, "--prompt", "the cat", "--temperature", "0", "--tokens", "40").stdout
    assert written == "the cat sat on the mat.\nthe dog sat on the log.\n"[:47] + "\n"
    result = succeed("evaluate", bard, text)
    assert "perplexity" in result.stdout and "bits per character" in result.stdout


def test_the_seed_decides_and_samples_differ(bard):
    write = lambda *options: succeed("generate", bard, "--tokens", "30", "--temperature", "3", *options).stdout
    assert write("--seed", "1") == write("--seed", "1") != write("--seed", "2")
    samples = write("--samples", "3").split("---------------\n")
    assert len(set(samples)) == 3
    # k = 1, p = 0 and temperature 0 are the most likely token.
    assert write("--top-k", "1") == write("--top-p", "0") == write("--temperature", "0")


def test_a_stop_string_ends_the_text(bard):
    shown = succeed("generate", bard, "--prompt", "the c", "--temperature", "0", "--stop", "mat", "--stop", "log").stdout
    assert shown == "the cat sat on the \n"


def test_lines_typed_are_answered(bard):
    process = succeed("generate", bard, "--interactive", "--temperature", "0", "--tokens", "24",
                      data="the cat sat on the mat.\nthe Ω\nthe cat sat on the mat.\n")
    assert process.stdout == "the dog sat on the log.\n" * 2
    assert "character 5 of the prompt" in process.stderr and "U+03A9" in process.stderr


# Text case 17.
def test_a_prompt_outside_the_vocabulary_is_named(bard):
    message = fail(1, "generate", bard, "--prompt", "the Ω")
    assert "character 5" in message and "U+03A9" in message
    assert "prompt" in fail(1, "generate", bard, "--prompt", "")
    assert "expected" in fail(2, "generate", bard, "--top-p", "2")


def test_options_of_translators_and_their_runs_are_refused(bard, text, learned):
    assert "--beam does not apply: RUN is a language model" in fail(2, "evaluate", bard, text, "--beam", "2")
    assert "kind" in fail(1, "generate", learned)
    assert "kind" in fail(1, "translate", bard, "--text", "a")


def test_view_draws_what_each_token_sees(bard, tmp_path):
    shown = succeed("view", bard, "--text", "the cat").stdout
    assert "the cat" in shown and "token" in shown and "sees" in shown
    succeed("view", bard, "--text", "the cat", "--heads", "--svg", "a.svg", "--page", "a.html", cwd=tmp_path)
    svg = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = ["".join(element.itertext()) for element in svg.iter() if element.tag.endswith("text")]
    for layer in (1, 2):
        for head in (1, 2):
            assert f"layer {layer}, head {head}" in texts
    assert "layer 2, head 2" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_view_of_texts_that_are_empty_or_too_long(bard):
    assert "an empty text" in succeed("view", bard, "--text", "").stderr
    process = succeed("view", bard, "--text", "x" + "the cat " * 4)
    assert "33 tokens" in process.stderr and "32 at most" in process.stderr
    assert "--beam" in fail(2, "view", bard, "--text", "the cat", "--beam", "2")


def test_heads_that_do_not_divide_the_width_are_named(text, tmp_path):
    assert "--embed-dim 32: expected a multiple of the 3 heads" in fail(
        2, "train", "text", text, "-o", tmp_path / "run", "--embed-dim", "32", "--heads", "3")


@pytest.mark.parametrize("name, data, named", [
    ("empty.txt", b"", "empty"),
    ("short.txt", b"the cat", "more than the context"),
    ("latin1.txt", "été\n".encode("latin-1") * 50, "UTF-8"),
])
def test_a_text_that_cannot_be_used_is_named(tmp_path, name, data, named):
    (tmp_path / name).write_bytes(data)
    assert named in fail(1, "train", "text", tmp_path / name, "-o", tmp_path / "run", *SMALL)


def test_sentencepiece(text, tmp_path):
    run = tmp_path / "run"
    succeed("train", "text", text, "-o", run, *SMALL, "--tokenizer", "bpe", "--vocab-size", "60", "--max-steps", "150",
            "--warmup", "10", "--learning-rate", "0.005")
    shown = succeed("generate", run, "--prompt", "the cat sat", "--temperature", "0", "--tokens", "12").stdout
    assert shown.startswith("the cat sat on the mat.\nthe")


# Text case 18.
def test_interrupted_and_resumed_is_as_if_it_never_was(text, tmp_path):
    options = ["train", "text", text, *SMALL, "--max-steps", "300", "--dropout", "0.1", "--threads", "1"]
    succeed(*options, "-o", tmp_path / "whole")
    process = subprocess.Popen([COMMAND, *map(str, options), "-o", tmp_path / "parts"], stderr=subprocess.PIPE)
    metrics = tmp_path / "parts" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (metrics.exists() and metrics.read_bytes().count(b"\n") > 3):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 1 and b"--resume" in messages
    succeed("train", "text", "-o", tmp_path / "parts", "--resume", "--threads", "1")
    whole, parts = content(tmp_path / "whole"), content(tmp_path / "parts")
    for name in ("model.safetensors", "tokenizer.json"):
        assert whole[name] == parts[name]
    assert "is not the one" in fail_on_other_text(text, tmp_path)


def fail_on_other_text(text, folder):
    kept = text.read_bytes()
    try:
        text.write_bytes(kept + b"more")
        return fail(1, "train", "text", "-o", folder / "parts", "--resume", "--max-steps", "400")
    finally:
        text.write_bytes(kept)

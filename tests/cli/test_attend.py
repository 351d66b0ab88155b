"""regard attend against the formulas in NumPy."""
import numpy as np
import pytest
from .conftest import fail, succeed

B, H, L, S, D, E = 2, 3, 5, 7, 4, 6


@pytest.fixture
def arrays(tmp_path):
    rng = np.random.default_rng(0)
    sizes = {"q": (B, H, L, D), "k": (B, H, S, D), "v": (B, H, S, E)}
    made = {name: rng.standard_normal(size) for name, size in sizes.items()}
    for name, array in made.items():
        np.save(tmp_path / f"{name}.npy", array)
    return made


def attend(folder, *options):
    succeed("attend", "q.npy", "k.npy", "v.npy", "-o", "out.npy", "--weights", "w.npy", *options, cwd=folder)
    return np.load(folder / "out.npy"), np.load(folder / "w.npy")


def expected(scores, v, allowed=True):
    scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e9))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    return weights @ v, weights


KERNELS = {
    "boxcar": lambda u: np.ones_like(u),
    "triangular": lambda u: 1 - u,
    "epanechnikov": lambda u: 1 - u**2,
    "tricube": lambda u: (1 - u**3) ** 3,
}


def scores_of(name, q, k, w):
    q, k = q[..., :, None, :], k[..., None, :, :]
    dot = (q * k).sum(-1)
    if name == "additive":
        return (w * np.tanh(q + k)).sum(-1)
    if name == "gaussian":
        return -0.5 * ((0.5 * (q - k)) ** 2).sum(-1)
    if name in KERNELS:
        u = np.linalg.norm(0.5 * (q - k), axis=-1)
        with np.errstate(divide="ignore"):
            return np.log(np.where(u < 1, KERNELS[name](u), 0.0))
    factor = {
        "scaled-dot": 1 / np.sqrt(D),
        "dot": 1,
        "cosine": 1 / (np.linalg.norm(q, axis=-1) * np.linalg.norm(k, axis=-1)),
    }[name]
    return dot * factor


@pytest.mark.parametrize("score", ["scaled-dot", "dot", "cosine", "additive", "gaussian", *KERNELS])
def test_every_score(tmp_path, arrays, score):
    w = np.linspace(-1, 1, D)
    np.save(tmp_path / "weight.npy", w)
    width = ["--precision", "0.5"]
    extra = {"additive": ["--weight", "weight.npy"], "gaussian": width, **dict.fromkeys(KERNELS, width)}.get(score, [])
    out, weights = attend(tmp_path, "--score", score, *extra)
    want_out, want_weights = expected(scores_of(score, arrays["q"], arrays["k"], w), arrays["v"])
    np.testing.assert_allclose(out, want_out, rtol=1e-10)
    np.testing.assert_allclose(weights, want_weights, rtol=1e-10)


@pytest.mark.parametrize("option, allowed", [
    (["--causal", "top-left"], lambda i, j: j <= i),
    (["--causal", "bottom-right"], lambda i, j: j <= i + S - L),
    (["--window", "1,2"], lambda i, j: (j - i >= -1) & (j - i <= 2)),
    (["--window", "1,"], lambda i, j: j - i >= -1),
    (["--exclude-self"], lambda i, j: j != i),
    (["--lengths", "lengths.npy"], lambda i, j: j < np.array([3, 7]).reshape(2, 1, 1, 1)),
    (["--keep", "keep.npy"], lambda i, j: (i + j) % 2 == 0),
    (["--blocks", "blocks.npy", "--block-size", "5,4"], lambda i, j: j < 4),
    (["--query-segments", "qs.npy", "--key-segments", "ks.npy"], lambda i, j: i // 3 == j // 4),
])
def test_every_mask(tmp_path, arrays, option, allowed):
    i, j = np.arange(L)[:, None], np.arange(S)[None, :]
    np.save(tmp_path / "lengths.npy", np.array([3, 7]))
    np.save(tmp_path / "keep.npy", ((i + j) % 2 == 0).astype(np.int64))
    np.save(tmp_path / "blocks.npy", np.array([[1, 0]]))
    np.save(tmp_path / "qs.npy", np.arange(L) // 3)
    np.save(tmp_path / "ks.npy", np.arange(S) // 4)
    out, weights = attend(tmp_path, *option)
    scores = scores_of("scaled-dot", arrays["q"], arrays["k"], None)
    want_out, want_weights = expected(scores, arrays["v"], allowed(i, j))
    np.testing.assert_allclose(out, want_out, rtol=1e-10)
    np.testing.assert_allclose(weights, want_weights, rtol=1e-10, atol=0)


def test_hard_attention_writes_the_chosen_keys(tmp_path, arrays):
    out, weights = attend(tmp_path, "--normalizer", "argmax", "--index", "index.npy")
    best = scores_of("scaled-dot", arrays["q"], arrays["k"], None).argmax(-1)
    np.testing.assert_array_equal(np.load(tmp_path / "index.npy"), best)
    np.testing.assert_array_equal(weights.argmax(-1), best)
    np.testing.assert_array_equal(out, np.take_along_axis(arrays["v"], best[..., None], -2))


def test_matrices_are_printed_one_query_a_line(tmp_path):
    for name, array in {"q": np.zeros((2, 3)), "k": np.ones((4, 3)), "v": np.arange(8.0).reshape(4, 2)}.items():
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    assert succeed("attend", "q.npy", "k.npy", "v.npy", cwd=tmp_path).stdout == "3\t4\n3\t4\n"


def test_wrong_arrays_are_named(tmp_path, arrays):
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "q.npy").read_bytes()[:200])
    np.save(tmp_path / "five.npy", np.zeros((1, 1, 1, 1, 1)))
    np.save(tmp_path / "wide.npy", np.zeros((B, H, S, D + 1)))
    for name in ("missing.npy", "text.npy", "cut.npy", "five.npy"):
        assert name in fail(1, "attend", name, "k.npy", "v.npy", cwd=tmp_path)
    message = fail(1, "attend", "q.npy", "wide.npy", "v.npy", cwd=tmp_path)
    assert str(D) in message and str(D + 1) in message
    assert "--weight" in fail(2, "attend", "q.npy", "k.npy", "v.npy", "--score", "additive", cwd=tmp_path)
    message = fail(2, "attend", "q.npy", "k.npy", "v.npy", "--precision", "2", cwd=tmp_path)
    assert "--precision goes with --score gaussian or boxcar" in message
    assert "--scale" in fail(2, "attend", "q.npy", "k.npy", "v.npy", "--scale", "2", cwd=tmp_path)


def test_a_query_without_keys_gives_zero(tmp_path, arrays):
    np.save(tmp_path / "none.npy", np.array([0, 7]))
    out, weights = attend(tmp_path, "--lengths", "none.npy")
    assert not out[0].any() and not weights[0].any()
    assert out[1].any()

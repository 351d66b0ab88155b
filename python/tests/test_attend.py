"""regard.attend as PyTorch sees it: gradients, tracing, compiling, errors."""

import math

import pytest
import regard
import torch
from torch.library import opcheck

B, H, G, L, S, D, E = 2, 4, 2, 3, 5, 3, 2


def tensors(requires_grad=True):
    shapes = (B, H, L, D), (B, G, S, D), (B, G, S, E)
    return [randn(*shape, seed=n).requires_grad_(requires_grad) for n, shape in enumerate(shapes)]


def randn(*shape, seed=9):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


SCORES = {
    "scaled_dot": {},
    "dot": {"scale": 0.5},
    "cosine": {"scale": 2.0},
    "additive": {"additive_weight": randn(H, D).requires_grad_()},
    "gaussian": {"precision": randn(D).requires_grad_()},
    "boxcar": {"precision": torch.full((1,), 0.5, dtype=torch.float64, requires_grad=True)},
    "triangular": {"precision": torch.full((1,), 0.5, dtype=torch.float64, requires_grad=True)},
    "epanechnikov": {"precision": torch.full((), 0.5, dtype=torch.float64, requires_grad=True)},
    "tricube": {"precision": torch.tensor([0.5, -0.3, 0.2], dtype=torch.float64, requires_grad=True)},
}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_equal_differences(score, dropout):
    extra = dict(SCORES[score], bias=randn(H, 1, S).requires_grad_())
    lengths = torch.tensor([5, 2])

    def call(q, k, v, *values):
        options = dict(zip(extra, values), score=score, lengths=lengths, softcap=2.0, dropout=dropout, seed=3)
        r = regard.attend(q, k, v, return_lse=True, return_weights=True, **options)
        return r.out, torch.where(r.lse.isfinite(), r.lse, 0), r.weights  # -inf: no key inside a compact kernel

    assert torch.autograd.gradcheck(call, (*tensors(), *extra.values()))


KERNELS = {
    "boxcar": torch.ones_like,
    "triangular": lambda u: 1 - u,
    "epanechnikov": lambda u: 1 - u**2,
    "tricube": lambda u: (1 - u**3) ** 3,
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_compact_kernels_are_kernel_regression(kernel):
    # Nadaraya and Watson's estimator of sin on scattered points, width 1/4; far from all of them it has no answer.
    x = torch.rand(60, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 6
    y = x.sin() + 0.1 * randn(60, 1)
    where = torch.cat([torch.linspace(0, 6, 25, dtype=torch.float64), torch.tensor([20.0])])[:, None].double()
    precision = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)

    u = (precision * (where - x.T)).abs()
    weights = torch.where(u < 1, KERNELS[kernel](torch.where(u < 1, u, 0)), 0)
    expected = weights @ y / weights.sum(-1, keepdim=True).clamp_min(1e-9)
    actual = regard.attend(where, x, y, score=kernel, precision=precision)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)
    assert actual[-1] == 0
    if kernel == "boxcar":
        assert torch.autograd.grad(actual.sum(), precision)[0] == 0
    else:
        torch.testing.assert_close(*(torch.autograd.grad(t.sum(), precision) for t in (actual, expected)))


def test_gradient_of_the_chosen_key_reaches_the_scores():
    def call(q, k, v):
        return regard.attend(q, k, v, normalizer="sample", seed=4, return_choice=True).log_prob

    assert torch.autograd.gradcheck(call, tensors())


OPTIONS = {
    "plain": {},
    "all outputs": {"return_lse": True, "return_weights": True, "normalizer": "argmax"},
    "additive": {"score": "additive", "additive_weight": randn(D).requires_grad_()},
    "gaussian": {"score": "gaussian", "precision": randn(1).requires_grad_(), "dropout": 0.2, "seed": 7},
    "masks": {
        "causal": True,
        "lengths": torch.tensor([2, 5]),
        "bias": randn(L, 1).requires_grad_(),
        "keep": torch.ones(L, S, dtype=torch.bool),
    },
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_operator_is_sound(options):
    opcheck(torch.ops.regard.attend.default, tuple(tensors()), options)


SIXTEEN_BIT_OPTIONS = {
    "plain": {},
    "causal": {"causal": True, "corner": "bottom_right"},
    "lengths": {"lengths": torch.tensor([0, 4]), "dropout": 0.3, "seed": 2},
    "keep": {"keep": torch.tensor([[True, False, True, True, False]] * 2 + [[False] * 5])},
    "window and bias": {"window": (1, 2), "bias": randn(H, 1, S), "softcap": 2.0},
    "argmax": {"normalizer": "argmax", "exclude_self": True},
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("options", SIXTEEN_BIT_OPTIONS.values(), ids=SIXTEEN_BIT_OPTIONS)
def test_sixteen_bits_give_what_float32_gives(options, score, dtype):
    def call(type):
        inputs = [t.to(dtype).to(type).requires_grad_() for t in tensors(requires_grad=False)]
        arguments = {**options, **SCORES[score]}
        for name, value in arguments.items():
            if torch.is_tensor(value) and value.is_floating_point():
                arguments[name] = value.detach().to(dtype).to(type).requires_grad_()
                inputs.append(arguments[name])
        r = regard.attend(*inputs[:3], score=score, return_lse=True, return_weights=True, **arguments)
        outputs = [x for x in (r.out, r.weights, r.lse) if x.requires_grad]
        up = [randn(*x.shape).to(dtype).to(x.dtype) for x in outputs]
        gradients = torch.autograd.grad(outputs, inputs, up, allow_unused=True)
        assert r.lse.dtype == torch.float32
        assert all(x.dtype == type for x in (r.out, r.weights, *(g for g in gradients if g is not None)))
        return r.out, r.weights, r.lse, *gradients

    # One rounding of a result, and what the rounding of `out` adds to a gradient, a difference of such numbers.
    eps = torch.finfo(dtype).eps
    for stored, wide in zip(call(dtype), call(torch.float32)):
        torch.testing.assert_close(stored.float(), wide, rtol=eps, atol=2 * eps)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_into_one_graph(dynamic):
    def loss(q, k, v):
        r = regard.attend(q, k, v, score="cosine", causal=True, return_lse=True)
        return (r.out.square().sum() + r.lse.sum()).sin()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    inputs = tensors()
    expected, actual = loss(*inputs), compiled(*inputs)
    torch.testing.assert_close(actual, expected)
    for a, b in zip(torch.autograd.grad(actual, inputs), torch.autograd.grad(expected, inputs)):
        torch.testing.assert_close(a, b)


def test_meta_tensors_have_shapes():
    q, k, v = (t.to("meta") for t in tensors())
    r = regard.attend(q, k, v, return_weights=True, return_lse=True)
    assert (r.out.shape, r.weights.shape, r.lse.shape) == ((B, H, L, E), (B, H, L, S), (B, H, L))


@pytest.mark.parametrize("score", SCORES)
def test_other_devices_are_given_pytorch_operations(score):
    # What a CUDA tensor is dispatched to, given tensors that are here.
    cuda = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    inputs = tensors(requires_grad=False)
    options = dict(SCORES[score], score=score, causal=True, dropout=0.4, seed=5, return_lse=True)
    with torch.no_grad():
        there = torch.ops.regard.attend.default.redispatch(cuda, *inputs, **options)
        here = torch.ops.regard.attend(*inputs, **options)
    torch.testing.assert_close(there, here)


def test_second_derivative_is_refused():
    q, k, v = tensors()
    (dq,) = torch.autograd.grad(regard.attend(q, k, v).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        dq.sum().backward()


def test_fully_masked_query_is_zero_and_masked_nan_has_no_effect():
    q, k, v = tensors(requires_grad=False)
    k[0, :, 0] = v[0, :, 0] = math.nan
    for t in (q, k, v):
        t.requires_grad_()
    r = regard.attend(q, k, v, lengths=torch.tensor([0, 5]), return_weights=True, return_lse=True)
    assert (r.out[0] == 0).all() and (r.weights[0] == 0).all() and (r.lse[0] == -math.inf).all()
    r.out.sum().backward()
    assert all(t.grad.isfinite().all() and (t.grad[0] == 0).all() for t in (q, k, v))


def test_seed_rules_the_draws():
    q, k, v = tensors()
    draw = lambda **o: regard.attend(q, k, v, dropout=0.5, **o)
    assert draw(seed=1).equal(draw(seed=1)) and not draw(seed=1).equal(draw(seed=2))
    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    assert draw().equal(first) and not second.equal(first)


def test_ranks_without_heads_or_batch():
    q, k, v = (t[:, 0] for t in tensors())
    r = regard.attend(q, k, v, bias=randn(B, L, S), return_weights=True)
    assert (r.out.shape, r.weights.shape) == ((B, L, E), (B, L, S))
    torch.testing.assert_close(r.out, r.weights @ v)
    torch.testing.assert_close(regard.attend(q[0], k[0], v[0], bias=randn(B, L, S)[0]), r.out[0])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"score": "dt"}, 'score is "dt"; expected one of scaled_dot, dot'),
        ({"corner": "left"}, 'corner is "left"; expected one of top_left, bottom_right'),
        ({"score": "additive"}, "additive_weight is not given"),
        ({"precision": torch.ones(1)}, "precision is given with another score"),
        ({"score": "tricube"}, "precision is not given with score gaussian, boxcar"),
        ({"keep": torch.ones(L, S)}, "keep is Float; expected bool"),
        ({"keep": torch.ones(L, S + 1, dtype=torch.bool)}, "keep"),
        ({"lengths": torch.tensor([1, 6])}, "6"),
        ({"dropout": 1.0}, "dropout is 1; expected 0 <= dropout < 1"),
        ({"return_choice": True}, "return_choice"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError) as error:
        regard.attend(*tensors(), **options)
    assert message in str(error.value)


def test_bad_shapes_are_named():
    q, k, v = tensors()
    with pytest.raises(ValueError, match="q has 3 heads and k has 2"):
        regard.attend(q[:, :3], k, v)
    with pytest.raises(ValueError, match="v is Float and q is Double"):
        regard.attend(q, k, v.float())
    with pytest.raises(ValueError, match="4, 3 and 4 dimensions"):
        regard.attend(q, k[0], v)

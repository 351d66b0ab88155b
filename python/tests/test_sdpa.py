"""regard.scaled_dot_product_attention in place of PyTorch's."""

import math

import pytest
import regard
import torch
from torch.nn.functional import scaled_dot_product_attention

Q, K = (2, 4, 9, 8), (2, 4, 11, 8)
TRIANGLE = torch.ones(9, 11).tril().bool()
CASES = {
    "plain": (Q, K, {}),
    "causal": (Q, K, {"is_causal": True}),
    "scale": (Q, K, {"scale": 0.3}),
    "grouped": (Q, (2, 2, 11, 8), {"enable_gqa": True}),
    "no heads": (Q[1:], K[1:], {"attn_mask": TRIANGLE}),
    "no batch": (Q[2:], K[2:], {}),
    "more batches": ((3, *Q), (3, *K), {"attn_mask": TRIANGLE.expand(2, 1, 9, 11)}),
    "one mask for more batches": ((3, *Q), (3, *K), {"attn_mask": torch.zeros(3, 2, 1, 9, 11)}),
    "keep": (Q, K, {"attn_mask": TRIANGLE}),
    "keep that leaves rows empty": (Q, K, {"attn_mask": torch.ones(2, 1, 9, 11).tril(-2).bool()}),
    "bias": (Q, K, {"attn_mask": torch.linspace(-2, 2, 4 * 9 * 11).reshape(4, 9, 11)}),
    "a row of -inf": ((1, 1, 2, 8), (1, 1, 3, 8), {"attn_mask": torch.tensor([[0.0] * 3, [-math.inf] * 3])}),
}


@pytest.mark.parametrize("query, key, options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_results_and_gradients(query, key, options, dtype):
    torch.manual_seed(1)
    inputs = [torch.randn(s, dtype=dtype).requires_grad_() for s in (query, key, (*key[:-1], 5))]
    options = dict(options)
    if "attn_mask" in options and options["attn_mask"].is_floating_point():
        options["attn_mask"] = options["attn_mask"].to(dtype, copy=True).requires_grad_()
        inputs.append(options["attn_mask"])
    mine = regard.scaled_dot_product_attention(*inputs[:3], **options)
    theirs = scaled_dot_product_attention(*inputs[:3], **options)
    torch.testing.assert_close(mine, theirs)
    up = torch.randn_like(mine)
    for a, b in zip(torch.autograd.grad(mine, inputs, up), torch.autograd.grad(theirs, inputs, up)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits(dtype):
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 4, 9, 8, dtype=dtype) for _ in range(3))
    mine = regard.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert mine.dtype == dtype
    wide = scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    torch.testing.assert_close(mine, wide.to(dtype))


def test_misuse_is_named():
    q, k = torch.randn(2, 4, 9, 8), torch.randn(2, 2, 9, 8)
    with pytest.raises(ValueError, match="query has 4 heads and key has 2"):
        regard.scaled_dot_product_attention(q, k, k)
    with pytest.raises(ValueError, match="attn_mask is given with is_causal"):
        regard.scaled_dot_product_attention(q, q, q, attn_mask=TRIANGLE, is_causal=True)

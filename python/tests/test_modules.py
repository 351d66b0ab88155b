"""The attention modules."""

from importlib.metadata import version

import pytest
import regard
import torch


def test_equal_keys_average_the_values_within_the_length():
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    expected = torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]])
    lengths = torch.tensor([2, 6])
    additive, dot = regard.AdditiveAttention(20, 2, 8, dropout=0.1), regard.DotProductAttention(dropout=0.5)
    for attention, width in (additive, 20), (dot, 2):
        attention.eval()
        context, weights = attention(torch.randn(2, 1, width), torch.ones(2, 10, 2), values, lengths, True)
        torch.testing.assert_close(context, expected)
        assert (weights[0, :, 2:] == 0).all()


def test_additive_equals_its_formula():
    torch.manual_seed(1)
    attention = regard.AdditiveAttention(5, 3, 7).double()
    assert sorted(attention.state_dict()) == ["W_k.weight", "W_q.weight", "w_v.weight"]
    q, k = torch.randn(2, 4, 5, dtype=torch.double), torch.randn(2, 6, 3, dtype=torch.double)
    hidden = torch.tanh(attention.W_q(q)[:, :, None] + attention.W_k(k)[:, None])
    written, context = attention.w_v(hidden).squeeze(-1).softmax(-1) @ k, attention(q, k, k)
    torch.testing.assert_close(context, written)
    parameters = list(attention.parameters())
    mine, expected = (torch.autograd.grad(c.square().sum(), parameters) for c in (context, written))
    torch.testing.assert_close(mine, expected)


def test_dropout_acts_in_training_only_and_spares_the_weights():
    q = torch.randn(2, 4, 5)
    attention, plain = regard.DotProductAttention(0.5), regard.DotProductAttention()
    context, weights = attention(q, q, q, return_weights=True)
    assert not torch.equal(context, plain(q, q, q))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4))
    assert torch.equal(attention.eval()(q, q, q), plain(q, q, q))


def test_wrong_dropout_is_named():
    with pytest.raises(ValueError, match="dropout is 1.0; expected 0 <= dropout < 1"):
        regard.DotProductAttention(1.0)


def test_version_is_the_package_version():
    assert regard.__version__ == version("regard")

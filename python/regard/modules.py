"""Attention as modules, over [B, L, D] tensors without a head dimension."""

from torch import Tensor, nn

from regard.functional import attend


class AdditiveAttention(nn.Module):
    """Additive attention with its projections, all without bias::

        s_ij = w_v·tanh(W_q q_i + W_k k_j),  p_i. = softmax of the keys j < n,  c_i = sum_j dropout(p_ij) v_j

    (Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and translate", A.1.2)
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int, dropout: float = 0.0):
        super().__init__()
        self.W_q = nn.Linear(query_size, hidden_size, bias=False)
        self.W_k = nn.Linear(key_size, hidden_size, bias=False)
        self.w_v = nn.Linear(hidden_size, 1, bias=False)
        self.dropout = _checked_dropout(dropout)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        lengths: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The context [B, L, E], and with return_weights also the weights [B, L, S] before dropout.

        queries is [B, L, query_size], keys [B, S, key_size], values [B, S, E]; lengths, integers [B] or [B, L], says
        how many keys are real.
        """
        return _run(
            self,
            self.W_q(queries),
            self.W_k(keys),
            values,
            lengths,
            return_weights,
            score="additive",
            additive_weight=self.w_v.weight,
        )


class DotProductAttention(nn.Module):
    """Scaled dot-product attention, without parameters::

        s_ij = q_i·k_j / sqrt(D),  p_i. = softmax of the keys j < n,  c_i = sum_j dropout(p_ij) v_j

    (Vaswani et al. 2017, "Attention is all you need", section 3.2.1)
    """

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.dropout = _checked_dropout(dropout)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        lengths: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The context [B, L, E], and with return_weights also the weights [B, L, S] before dropout.

        queries is [B, L, D], keys [B, S, D], values [B, S, E]; lengths, integers [B] or [B, L], says how many keys are
        real. A head dimension before L and S is fine too.
        """
        return _run(self, queries, keys, values, lengths, return_weights)


def _run(module, queries, keys, values, lengths, return_weights, **score):
    dropout = module.dropout if module.training else 0.0
    result = attend(
        queries, keys, values, lengths=lengths, dropout=dropout, return_weights=return_weights, **score
    )
    return (result.out, result.weights) if return_weights else result


def _checked_dropout(dropout: float) -> float:
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; expected 0 <= dropout < 1")
    return dropout

"""Attention as functions."""

from typing import NamedTuple

import torch
from torch import Tensor


class AttendResult(NamedTuple):
    """What ``attend`` returns when more than the output is asked for; None for what is not."""

    out: Tensor  #: [B, H, L, E]
    lse: Tensor | None  #: [B, H, L]: log sum_j exp(s_ij); float32 for 16-bit inputs
    weights: Tensor | None  #: [B, H, L, S]: p before dropout
    index: Tensor | None  #: int64 [B, H, L]: the key that "argmax" or "sample" chose, -1 where there is none
    log_prob: Tensor | None  #: [B, H, L]: log softmax of that key, with a gradient


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    score: str = "scaled_dot",
    scale: float | None = None,
    eps: float = 1e-8,
    additive_weight: Tensor | None = None,
    precision: Tensor | None = None,
    softcap: float | None = None,
    bias: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
    corner: str = "top_left",
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    lengths: Tensor | None = None,
    segments: tuple[Tensor, Tensor] | None = None,
    blocks: Tensor | None = None,
    block_size: tuple[int, int] | None = None,
    keep: Tensor | None = None,
    exclude_self: bool = False,
    normalizer: str = "softmax",
    dropout: float = 0.0,
    seed: int | None = None,
    return_lse: bool = False,
    return_weights: bool = False,
    return_choice: bool = False,
) -> Tensor | AttendResult:
    """Attention with any score, mask and normaliser::

        s_ij = score(q_i, k_j), then softcap, then bias, then ALiBi
        p_i. = normalise_j { s_ij : every mask given allows (i, j) }
        o_i  = sum_j dropout(p_ij) v_j

    q is [B, H, L, D], k [B, G, S, D] and v [B, G, S, E], of one floating type and any strides; H is a multiple of G
    (grouped heads: query head h reads key head h // (H // G)). Tensors of rank 3 have no head dimension, those of
    rank 2 no batch either; nor have bias, keep, blocks and the results then. Otherwise bias, keep and blocks broadcast.
    Gradients reach q, k, v, bias, additive_weight and precision.

    Args:
        score: "scaled_dot" (q·k / sqrt(D)), "dot" (scale q·k), "cosine" (scale q·k / max(|q||k|, eps)), "additive"
            (additive_weight·tanh(q + k), with q and k already projected), "gaussian" (-1/2 u², u = |precision (q - k)|)
            or log K(u) of a compact kernel: "boxcar" (1), "triangular" (1 - u), "epanechnikov" (1 - u²) or "tricube"
            ((1 - u³)³), outside of which (u >= 1; u > 1 for "boxcar") a pair does not exist, as if it were masked.
        scale: of the dot-like scores; by default 1 / sqrt(D) for "scaled_dot", else 1.
        eps: of "cosine".
        additive_weight: [D] or [H, D].
        precision: [], [1] or [D], of "gaussian" and the compact kernels.
        softcap: c > 0 makes s c tanh(s / c).
        bias: added to s, [B, H, L, S].
        alibi_slopes: [H]; s loses slope_h |i' - j|.
        corner: the key i' that query i stands at, for causal, window and ALiBi: "top_left" (i) or "bottom_right"
            (i + S - L).
        causal: j <= i'.
        window: (left, right): -left <= j - i' <= right; None for a side without a bound.
        lengths: integers [B] or [B, L]: j < n.
        segments: (query, key) integers [B, L] and [B, S], or [L] and [S]: equal numbers see each other.
        blocks: bool [B, H, ceil(L / m), ceil(S / n)] with block_size (m, n): true takes part.
        keep: bool [B, H, L, S]: true takes part.
        exclude_self: j != i.
        normalizer: "softmax", "argmax" (hard) or "sample" (hard, drawn from the softmax).
        dropout: 0 <= p < 1, of the weights, whether training or not.
        seed: of dropout and "sample": the same seed gives the same draws. By default drawn from torch's generator.
        return_lse, return_weights, return_choice: return an AttendResult with lse, weights, or index and log_prob.

    Raises:
        ValueError: an argument does not fit; the message names it, its value and what was expected.
    """
    rank = q.dim()
    if rank not in (2, 3, 4) or k.dim() != rank or v.dim() != rank:
        raise ValueError(
            f"q, k and v have {rank}, {k.dim()} and {v.dim()} dimensions; expected the same number, 2, 3 or 4"
        )
    if return_choice and normalizer == "softmax":
        raise ValueError('return_choice is given with normalizer "softmax"; expected "argmax" or "sample"')
    if seed is None:
        seed = _draw_seed() if dropout > 0 or normalizer == "sample" else 0
    left, right = window or (None, None)
    query_segments, key_segments = segments or (None, None)
    block_queries, block_keys = block_size or (0, 0)
    out, lse, weights, index, log_prob = torch.ops.regard.attend(
        _with_heads(q, rank),
        _with_heads(k, rank),
        _with_heads(v, rank),
        bias=_with_heads(bias, rank),
        additive_weight=additive_weight,
        precision=precision,
        alibi_slopes=alibi_slopes,
        lengths=lengths,
        query_segments=query_segments,
        key_segments=key_segments,
        blocks=_with_heads(blocks, rank),
        keep=_with_heads(keep, rank),
        score=score,
        scale=scale,
        eps=eps,
        softcap=softcap,
        corner=corner,
        causal=causal,
        window_left=left,
        window_right=right,
        block_queries=block_queries,
        block_keys=block_keys,
        exclude_self=exclude_self,
        normalizer=normalizer,
        dropout=dropout,
        seed=seed,
        return_lse=return_lse,
        return_weights=return_weights,
    )
    out = _without_heads(out, rank)
    if not (return_lse or return_weights or return_choice):
        return out
    return AttendResult(
        out,
        _without_heads(lse, rank) if return_lse else None,
        _without_heads(weights, rank) if return_weights else None,
        _without_heads(index, rank) if return_choice else None,
        _without_heads(log_prob, rank) if return_choice else None,
    )


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Takes the place of ``torch.nn.functional.scaled_dot_product_attention``, with the same arguments and results.

    query is [..., H, L, D], key [..., G, S, D], value [..., G, S, E]; attn_mask is bool (true takes part) or floating
    (added to the scores) and broadcasts to [..., H, L, S]. G differs from H only with enable_gqa.
    """
    if is_causal and attn_mask is not None:
        raise ValueError("attn_mask is given with is_causal; expected one of them")
    heads = query.shape[-3] if query.dim() > 2 else 1
    key_heads = key.shape[-3] if key.dim() > 2 else 1
    if heads != key_heads and not enable_gqa:
        raise ValueError(f"query has {heads} heads and key has {key_heads}; expected the same without enable_gqa")
    batch = query.shape[:-3]
    mask = attn_mask
    if mask is not None and mask.dim() > 3 and query.dim() > 4:
        mask = mask.expand(*batch, *mask.shape[-3:]).flatten(0, -4)
    is_bool = mask is not None and mask.dtype == torch.bool
    out = attend(
        _as_rank_4(query),
        _as_rank_4(key),
        _as_rank_4(value),
        scale=scale,
        keep=mask if is_bool else None,
        bias=None if is_bool else mask,
        causal=is_causal,
        dropout=dropout_p,
    )
    return out.view(*query.shape[:-1], value.shape[-1])


def _with_heads(t: Tensor | None, rank: int) -> Tensor | None:
    """Puts the head dimension (and, for rank 2, the batch) that a tensor leaves out in its place."""
    if t is None or t.dim() != rank or rank == 4:
        return t
    return t.unsqueeze(1) if rank == 3 else t[None, None]


def _without_heads(t: Tensor, rank: int) -> Tensor:
    return t if rank == 4 else t.squeeze(1) if rank == 3 else t[0, 0]


def _as_rank_4(t: Tensor) -> Tensor:
    return t.flatten(0, -4) if t.dim() > 4 else t[(None,) * (4 - t.dim())]


def _draw_seed() -> int:
    return int(torch.randint(2**62, ()))

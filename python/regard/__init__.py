"""Attention as a product: every score, mask and normaliser in one exact, fused operator for PyTorch.

    out = regard.attend(q, k, v, causal=True)

On the CPU a fused engine computes it, forward and backward, without memory in proportion to queries times keys; on
any other device PyTorch's own operations do, by the same contract: a query that may see no key gives 0, and what is
masked has no effect, be it NaN.
"""

from pathlib import Path

import torch

torch.ops.load_library(str(Path(__file__).with_name("libregard_torch.so")))

from regard.functional import AttendResult, attend, scaled_dot_product_attention  # noqa: E402
from regard.modules import AdditiveAttention, DotProductAttention  # noqa: E402

__version__ = torch.ops.regard.version()
__all__ = ["AdditiveAttention", "AttendResult", "DotProductAttention", "attend", "scaled_dot_product_attention"]

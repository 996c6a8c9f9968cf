# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One op through torch's own decompositions, into ops of the table.

Only the call at hand is traced, on fake tensors; the program around it stays as it is. Ops that
eager execution itself runs as others (composite implicit) are taken apart as it does. Of the
decompositions written in Python those alone are used whose values are eager's: the rest are other
algorithms than PyTorch's kernels, so the call declines and PyTorch runs it.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import _core_aten_decompositions_post_autograd, decomposition_table
from torch._subclasses import FakeTensorMode
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from weft.frontend.covariances import correlation, covariance
from weft.frontend.fakes import fakes_completed
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, asks_for_values, first_line
from weft.frontend.pairs import Pair
from weft.frontend.table import TABLE

# Decompositions compared with eager's kernels on the CPU, special values included, in float64,
# float32, bfloat16 and float16: equal but for the rounding of single operations.
_SAME = frozenset(
    (
        *("aminmax", "celu", "count_nonzero", "deg2rad", "dist", "frac"),
        *("floor_divide", "glu", "hardsigmoid", "hardswish", "heaviside", "lerp"),
        *("isin", "isneginf", "isposinf", "log_sigmoid_forward", "logaddexp", "mish", "nan_to_num"),
        *("nansum", "norm", "rad2deg", "renorm", "sgn", "silu", "softplus", "softshrink"),
        *("trace", "vdot", "_euclidean_dist"),
        # losses
        *("binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "mse_loss"),
        *("nll_loss_forward", "nll_loss2d_forward", "smooth_l1_loss", "soft_margin_loss"),
        # moves
        *("alias_copy", "block_diag", "channel_shuffle", "detach", "detach_copy", "diag_embed"),
        *("diagonal_copy", "expand_copy", "im2col", "lift", "lift_fresh", "lift_fresh_copy"),
        *("max_unpool2d", "max_unpool3d", "permute_copy", "pixel_unshuffle", "reflection_pad1d"),
        *("reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d"),
        *("replication_pad3d", "rot90", "select_copy", "slice_copy", "split_copy", "squeeze_copy"),
        *("split_with_sizes_copy", "t_copy", "take", "transpose_copy", "unfold_copy", "view_copy"),
        *("unsafe_split_with_sizes", "unsqueeze_copy", "_chunk_cat", "_reshape_alias", "resize_as"),
        *("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate", "index_add"),
        *("index_copy", "index_fill", "zero", "zeros_like", "is_same_size"),
        # batch_norm
        *("native_batch_norm", "_batch_norm_no_update", "_batch_norm_with_update_functional"),
        *("_native_batch_norm_legit", "_native_batch_norm_legit_functional"),
        "_native_batch_norm_legit_no_training",
    )
)
# Those that round elements of half precision between operations, where the kernels do not.
_SAME_IN_FULL_PRECISION = frozenset(
    (
        *("addr", "affine_grid_generator", "col2im", "linalg_cross", "logaddexp2"),
        *("mvlgamma", "special_log_ndtr"),
        *("_weight_norm_interface",),
    )
)

# In the place of composite ops whose C++ asks for values.
_WRITTEN_OUT: dict[torch._ops.OpOverload, Callable] = {
    torch.ops.aten.cov.default: covariance,
    torch.ops.aten.corrcoef.default: correlation,
}


def decompose(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> torch.fx.Graph:
    """The graph of core ops that stands for the call; its inputs are the call's tensors.

    Raises: Decline, if tracing fails or leaves the call as it was.
    """
    leaves, spec = pytree.tree_flatten((list(args), dict(kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Value | Pair)]

    def call(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        full_args, full_kwargs = pytree.tree_unflatten(filled, spec)
        return _WRITTEN_OUT.get(op, op)(*full_args, **full_kwargs)

    halves = any(leaves[i].dtype in (torch.bfloat16, torch.float16) for i in places)
    table = _table(halves)
    if op in _all(halves):
        table = {**table, op: _all(halves)[op]}
    if any(isinstance(leaves[i], Pair) for i in places):
        table = {}  # none was compared on complex numbers
    with contextlib.ExitStack() as modes:
        modes.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        modes.enter_context(fakes_completed())
        modes.enter_context(torch.no_grad())
        modes.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        tensors = [torch.empty(leaves[i].shape, dtype=leaves[i].dtype) for i in places]
        try:
            module = make_fx(call, decomposition_table=table)(*tensors)
            if any(_mutates(node) for node in module.graph.nodes):
                module = make_fx(functionalize(module), decomposition_table=table)(*tensors)
        except Exception as error:
            # Decompositions are torch's and may fail in any way on what they do not cover.
            why = asks_for_values(error) or f"{type(error).__name__}: {first_line(error)}"
            raise Decline(f"its decomposition fails: {why}") from error
    for node in module.graph.nodes:
        if node.target == op:
            raise Decline(f"no lowering for {op}")
    return module.graph


def has_same_values(op: torch._ops.OpOverload) -> bool:
    """Whether the op, if it has no rule, may stand for others by a decomposition."""
    return op in _all(halves=False)


def _mutates(node: torch.fx.Node) -> bool:
    """Some of torch's decompositions fill a tensor in place."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


@functools.lru_cache(maxsize=2)
def _all(halves: bool) -> dict[torch._ops.OpOverload, Callable]:
    """Core decompositions, and those to ATen ops that the core set leaves out, as far as their
    values are eager's. What is written in terms of torch's prims is of no use here. Composite
    ops, which torch's public table also has and takes long to collect, are none of them.

    halves: whether elements are of half precision.
    """
    to_aten = {
        op: rule
        for op, rule in decomposition_table.items()
        if isinstance(op, torch._ops.OpOverload) and rule.__module__.startswith("torch._decomp")
    }
    same = _SAME if halves else _SAME | _SAME_IN_FULL_PRECISION
    known = {**to_aten, **_core_aten_decompositions_post_autograd()}
    return {op: rule for op, rule in known.items() if op._schema.name.split("::")[1] in same}


@functools.lru_cache(maxsize=2)
def _table(halves: bool) -> dict[torch._ops.OpOverload, Callable]:
    """Decompositions of the ops that have no rule."""
    return {op: rule for op, rule in _all(halves).items() if str(op) not in TABLE}

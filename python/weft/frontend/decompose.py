# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One op through torch's own decompositions, into ops of the table.

Only the call at hand is traced, on fake tensors; the program around it stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._subclasses import FakeTensorMode
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from weft.frontend.fakes import fakes_completed
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import TABLE


def decompose(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> torch.fx.Graph:
    """The graph of core ops that stands for the call; its inputs are the call's tensors.

    Raises: Decline, if tracing fails or leaves the call as it was.
    """
    leaves, spec = pytree.tree_flatten((list(args), dict(kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Value)]

    def call(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        full_args, full_kwargs = pytree.tree_unflatten(filled, spec)
        return op(*full_args, **full_kwargs)

    table = _table()
    if op in _all():
        table = {**table, op: _all()[op]}
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
            raise Decline(f"its decomposition fails: {type(error).__name__}") from error
    for node in module.graph.nodes:
        if node.target == op:
            raise Decline(f"no lowering for {op}")
    return module.graph


def _mutates(node: torch.fx.Node) -> bool:
    """Some of torch's decompositions fill a tensor in place."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


@functools.lru_cache(maxsize=1)
def _all() -> dict[torch._ops.OpOverload, Callable]:
    """Core decompositions, and those to ATen ops that the core set leaves out (bilinear
    upsampling). What is written in terms of torch's prims is of no use here.
    """
    to_aten = {
        op: rule
        for op, rule in decomposition_table.items()
        if isinstance(op, torch._ops.OpOverload) and rule.__module__.startswith("torch._decomp")
    }
    return {**to_aten, **dict(core_aten_decompositions().items())}


@functools.lru_cache(maxsize=1)
def _table() -> dict[torch._ops.OpOverload, Callable]:
    """Decompositions of the ops that have no rule."""
    return {op: rule for op, rule in _all().items() if str(op) not in TABLE}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions under `torch.no_grad()` or autocast that hold a scan, in what torch.export gives.

It tells a region by its first node, and leaves out others, with their contents behind: that a loop
within `no_grad` has no gradient would be lost. The body of a scan is an attribute, read ahead of
all. Then it deletes what modules hold that are attributes, such as that body.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from unittest import mock

import torch
from torch._export.passes import replace_autocast_with_hop_pass, replace_set_grad_with_hop_pass


@contextlib.contextmanager
def regions_kept() -> Iterator[None]:
    """Within it such regions are found. For a process that traces and ends."""
    with (
        mock.patch.object(replace_autocast_with_hop_pass, "nodes_first", _first_call),
        mock.patch.object(replace_set_grad_with_hop_pass, "nodes_first", _first_call),
        mock.patch.object(torch.fx.GraphModule, "delete_all_unused_submodules", _delete_unused),
    ):
        yield


def _first_call(
    nodes: Iterable[torch.fx.Node], condition: Callable[[torch.fx.Node], bool]
) -> torch.fx.Node | None:
    return next((each for each in nodes if each.op != "get_attr" and condition(each)), None)


def _delete_unused(module: torch.fx.GraphModule) -> None:
    used = [node.target for node in module.graph.nodes if node.op in ("call_module", "get_attr")]
    for name in [name for name, _ in module.named_modules() if name]:
        if not any(f"{name}.".startswith(f"{x}.") or x.startswith(f"{name}.") for x in used):
            module.delete_submodule(name)

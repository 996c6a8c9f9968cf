# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors in the places of parameters, as torch.func.functional_call puts them there: torch.export
takes none but parameters."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def make_parameters(modules: Iterable[torch.nn.Module]) -> None:
    """Puts a parameter of the same memory in the place of each such tensor, and one in the places
    of one. For a process of its own: nobody puts them back."""
    made: dict[int, torch.nn.Parameter] = {}
    for root in modules:
        for module in root.modules():
            for name, tensor in module._parameters.items():
                if tensor is None or isinstance(tensor, torch.nn.Parameter):
                    continue
                if id(tensor) not in made:
                    requires = tensor.requires_grad
                    made[id(tensor)] = torch.nn.Parameter(tensor.detach(), requires)
                module._parameters[name] = made[id(tensor)]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of tensors that the module copy makes within an observed call, each as one operation."""

from __future__ import annotations

import copy

import torch

_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def share_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """What copy.copy gives: a leaf with the same memory.

    Raises: ValueError, if the tensor has attributes or hooks.
    """
    if vars(tensor) or any(getattr(tensor, each) for each in _HOOKS):
        raise ValueError("expected a tensor without attributes and hooks")
    shared: torch.Tensor = copy.copy(tensor)
    return shared


def copy_tensor(tensor: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    """A deep copy of the tensor, with all of its memory. others: tensors that the same
    copy.deepcopy has copied.

    Raises: ValueError, if the tensor has more than its memory, or shares that with others, whose
    copies would have to share memory as well.
    """
    if vars(tensor) or tensor.grad is not None or any(getattr(tensor, each) for each in _HOOKS):
        raise ValueError("expected a tensor without attributes, gradient and hooks")
    memory = tensor.untyped_storage()._cdata
    if any(each.untyped_storage()._cdata == memory for each in others):
        raise ValueError("expected tensors that are apart in memory")
    copied: torch.Tensor = tensor.__deepcopy__({})
    return copied

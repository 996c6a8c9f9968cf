# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of torch that ask a symbolic size for its value, and the forms in which they do not.

A form is given the call; where it does not cover it, it gives NotImplemented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from weft.capture import (
    bags_of_rows,
    contraction_paths,
    counted_bins,
    covariances,
    even_spacing,
    one_hot_classes,
    trailing_windows,
    whole_windows,
    windows,
)

_FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {
    **whole_windows.FORMS,
    **even_spacing.FORMS,
    **one_hot_classes.FORMS,
    **trailing_windows.FORMS,
    **contraction_paths.FORMS,
    **bags_of_rows.FORMS,
    **counted_bins.FORMS,
    **covariances.FORMS,
    **windows.FORMS,
}


class SymbolicForms(TorchFunctionMode):
    """Within it such functions leave sizes symbolic."""

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        # The step of a scan of the user's has no symbols of ours.
        form = None if torch.compiler.is_dynamo_compiling() else _FORMS.get(function)
        if form is not None and (made := form(args, kwargs)) is not NotImplemented:
            return made
        return function(*args, **kwargs)

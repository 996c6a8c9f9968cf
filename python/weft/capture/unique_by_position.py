# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Has `torch.unique_consecutive` give in a trace what it gives in eager execution.

By flags that are given by position it takes another of its branches than by the same ones given by
name (the `arg_index` in torch/functional.py is that of the other flag). Modes of torch's functions,
and a trace has one, are told of them by name.

It replaces a function of torch for good and is for a child process (isolated.py) alone.
"""

from __future__ import annotations

import sys
from typing import Any

import torch.functional
from torch.overrides import handle_torch_function

# Which of the values, their places and their counts a branch gives.
_GIVEN = {
    "_consecutive_return_output": (0,),
    "_consecutive_return_inverse": (0, 1),
    "_consecutive_return_counts": (0, 2),
    "_consecutive_return_inverse_and_counts": (0, 1, 2),
}
_getframe = sys._getframe


def install() -> None:
    torch.functional._unique_consecutive_torch_function = _of_branch


def _of_branch(input: Any, *flags: Any) -> Any:
    """For the branch that asks a mode."""
    given = _GIVEN[_getframe(1).f_code.co_name]
    whole = torch.functional._consecutive_return_inverse_and_counts
    results = handle_torch_function(whole, (input,), input, *flags)
    return tuple(results[n] for n in given) if len(given) > 1 else results[0]

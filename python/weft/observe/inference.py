# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.inference_mode within an observed call, as operations that a replay repeats."""

from __future__ import annotations

import torch

from weft.observe.contexts import Contexts

inference_modes = Contexts()


def push_inference(enabled: bool) -> None:
    """Does what entering torch.inference_mode(enabled) does."""
    inference_modes.enter(torch._C._InferenceMode(enabled))


def pop_inference() -> None:
    """Leaves the mode that was entered last."""
    inference_modes.leave()

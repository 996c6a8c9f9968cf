# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="weft")`, through the entry point `torch_dynamo_backends`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from weft.compiled import compile


def backend(
    module: torch.fx.GraphModule, example_inputs: list[Any], **options: Any
) -> Callable[..., Any]:
    """The callable for one of Dynamo's graphs. options: those of `weft.compile`.

    Programs are made on the first call, for the shapes that come; Dynamo's own guards
    decide which graph is called.
    """
    return compile(module, **options)

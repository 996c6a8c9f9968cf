# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="weft")`, through the entry point `torch_dynamo_backends`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx._lazy_graph_module import _LazyGraphModule

from weft.compiled.api import compile


def backend(
    module: torch.fx.GraphModule,
    example_inputs: list[Any],
    *,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """The callable for one of Dynamo's graphs. options: those of `weft.compile`, as given to
    `torch.compile(..., options={"threads": 1})`.

    Programs are made on the first call, for the shapes that come; Dynamo's own guards
    decide which graph is called.
    """
    # Otherwise its class gets its `forward` during the first call, which looks like an effect.
    _LazyGraphModule.force_recompile(module)
    return compile(module, **(options or {}))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft._autograd`, which has nodes of autograd's graph in C++, if it was built for this torch."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from weft import _build, _core


@functools.cache
def are_there() -> bool:
    """Whether weft._autograd was built for this torch. If so, it is loaded."""
    if _build.TORCH_VERSION != torch.__version__:
        return False
    from weft import _autograd

    torch.autograd.graph.Node.register(_autograd.StepBackward)
    _core.use_autograd(_autograd.interface)
    return True


def separate(results: Sequence[torch.Tensor]) -> None:
    """Gives each of several results of one node a node of its own. Otherwise their hooks would be
    called with None when only other results are used."""
    if len(results) > 1 and are_there():
        from weft import _autograd

        _autograd.separate_results(results)

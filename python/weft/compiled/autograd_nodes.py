# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft._autograd`, whose nodes of autograd's graph are C++, where it was built for this torch."""

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
    """Gives results of one node a node each ahead of it, without which their hooks are called with
    None where others alone are used."""
    if len(results) > 1 and are_there():
        from weft import _autograd

        _autograd.separate_results(results)

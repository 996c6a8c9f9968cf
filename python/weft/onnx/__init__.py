# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models as programs: `weft.from_onnx`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.compiled.imported import Imported

if TYPE_CHECKING:
    import onnx


def from_onnx(model: str | Path | bytes | onnx.ModelProto, **options: Any) -> OnnxProgram:
    """A callable that computes what an ONNX model says, by programs compiled on first use.

    Inputs are tensors in the graph's order or by name, outputs come in the graph's order: a
    tensor if there is one, a tuple of several. Initializers that are no shapes become parameters
    and buffers of `.module`. Where shapes, axes, conditions or trip counts are inputs of at most
    64 numbers, each of their values gets a program of its own. An output may share memory with an
    input or a parameter, as in torch. Inputs of another type than the model declares
    raise errors.ArgumentError.

    model: a file, with its external data beside it, its content, or a ModelProto.
    options: those of `weft.compile`.
    Raises: ModuleNotFoundError, without the package `onnx`; OSError; errors.ModelError, if it is
    no ONNX model; errors.UnsupportedError, naming the operator, its domain and operator set, and
    the node, of what is not known.
    Source: https://onnx.ai/onnx/operators/
    """
    from weft.compiled.api import compile
    from weft.onnx.graph import read_model
    from weft.onnx.module import OnnxModule

    module = OnnxModule(read_model(model)).eval()
    compiled = compile(module, **options)
    return OnnxProgram(
        module,
        compiled,
        [each.name for each in module.graph.inputs],
        list(module.graph.outputs),
        module.params,
        module.arguments,
    )


class OnnxProgram(Imported):
    """A call returns the output, or a tuple if the graph has several. One may be a list of
    tensors, or None."""

    def _returned(self, found: tuple[Any, ...]) -> Any:
        return found[0] if len(self.output_names) == 1 else found

    def _leaves(self, found: Any) -> list[Any]:
        return [found] if len(self.output_names) == 1 else list(found)

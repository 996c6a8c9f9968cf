# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Node tests as ONNX ships them: a model with sets of inputs and outputs.

They come with Debian's libonnx-testdata.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from weft import errors
from weft.onnx.values import tensor_of

# Attributes that a test's data was made with and its model lacks.
_LACKING = {"test_adam_multiple": {"epsilon": 1e-2}}

DATA = Path("/usr/lib/python3/dist-packages/onnx/backend/test/data")


@dataclass(frozen=True)
class Case:
    """A folder with model.onnx and test_data_set_*."""

    folder: Path

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}"

    def model(self) -> onnx.ModelProto:
        """Raises: OSError."""
        model = onnx.load(str(self.folder / "model.onnx"))
        for name, value in _LACKING.get(self.folder.name, {}).items():
            model.graph.node[0].attribute.append(onnx.helper.make_attribute(name, value))
        return model

    def sets(self) -> list[tuple[list[Any], list[Any]]]:
        """Of each set the inputs and the outputs.

        Raises: errors.UnsupportedError, for values of types that torch lacks.
        """
        graph = self.model().graph
        given = {each.name for each in graph.initializer}
        inputs = [each.type for each in graph.input if each.name not in given]
        outputs = [each.type for each in graph.output]
        return [
            (_read(folder, "input", inputs), _read(folder, "output", outputs))
            for folder in sorted(self.folder.glob("test_data_set_*"))
        ]


def cases(suites: list[str], data: Path = DATA) -> list[Case]:
    return [
        Case(path.parent)
        for suite in suites
        for path in sorted((data / suite).glob("*/model.onnx"))
    ]


def _read(folder: Path, kind: str, types: list[onnx.TypeProto]) -> list[Any]:
    files = sorted(
        folder.glob(f"{kind}_*.pb"), key=lambda path: int(re.findall(r"\d+", path.name)[-1])
    )
    values = [_value(path.read_bytes(), type_) for path, type_ in zip(files, types)]
    return values + [None] * (len(types) - len(values))


def _value(content: bytes, type_: onnx.TypeProto) -> Any:
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        return _optional(onnx.OptionalProto.FromString(content))
    if kind == "sequence_type":
        return _sequence(onnx.SequenceProto.FromString(content))
    proto = onnx.TensorProto.FromString(content)
    declared = type_.tensor_type.elem_type
    if declared == onnx.TensorProto.BFLOAT16 and proto.data_type == onnx.TensorProto.UINT16:
        proto.data_type = declared  # ONNX writes the bits so, as NumPy lacks the type
    return tensor_of(proto)


def _optional(proto: onnx.OptionalProto) -> Any:
    kinds = onnx.OptionalProto
    if proto.elem_type == kinds.TENSOR:
        return tensor_of(proto.tensor_value)
    return _sequence(proto.sequence_value) if proto.elem_type == kinds.SEQUENCE else None


def _sequence(proto: onnx.SequenceProto) -> list[Any]:
    if proto.elem_type not in (onnx.SequenceProto.TENSOR, onnx.SequenceProto.UNDEFINED):
        raise errors.UnsupportedError("sequences of other things than tensors")
    return [tensor_of(each) for each in proto.tensor_values]

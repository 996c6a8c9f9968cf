# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The matrix unit's eight registers, and the instructions on them. A register has up to 16 rows of
64 bytes; how many of each it has is configured, which empties all registers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from weft.te.code import Code
from weft.te.expressions import Axis
from weft.te.matrix_unit import GROUP_BYTES, REGISTERS, SIDE, parts_of
from weft.te.nests import Lowered, Nest

_WORDS = 16  # of a configuration
_ROW_BYTES = SIDE * GROUP_BYTES


def uses_matrix_unit(nest: Nest) -> bool:
    microkernel = nest.stage.state.microkernel
    return microkernel is not None and microkernel[0] == "amx"


@dataclass(frozen=True)
class Shape:
    """A tile of the result. rows, columns: of each of its parts. groups: of the terms of one
    product."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    groups: int

    @classmethod
    def of(cls, rows: int, columns: int, groups: int) -> Shape:
        return cls(tuple(parts_of(rows)), tuple(parts_of(columns)), groups)

    def sums(self, i: int, j: int) -> int:
        """The register of the sums of part i of the rows and part j of the columns."""
        return i * len(self.columns) + j

    def row(self, i: int) -> int:
        """The register of the terms of part i of the rows."""
        return len(self.rows) * len(self.columns) + i

    def column(self, j: int) -> int:
        return len(self.rows) * (len(self.columns) + 1) + j

    def configuration(self) -> list[int]:
        """Its 16 words: the palette, then the bytes of each register's rows, in two bytes, then the
        rows of each, in one. Registers that the tile does not use are whole."""
        rows, row_bytes = [SIDE] * REGISTERS, [_ROW_BYTES] * REGISTERS
        for j, columns in enumerate(self.columns):
            rows[self.column(j)], row_bytes[self.column(j)] = self.groups, columns * GROUP_BYTES
        for i, count in enumerate(self.rows):
            rows[self.row(i)], row_bytes[self.row(i)] = count, self.groups * GROUP_BYTES
            for j, columns in enumerate(self.columns):
                rows[self.sums(i, j)] = count
                row_bytes[self.sums(i, j)] = columns * GROUP_BYTES
        words = [0] * _WORDS
        words[0] = 1
        for n in range(REGISTERS):
            words[4 + n // 2] |= row_bytes[n] << 16 * (n % 2)
            words[12 + n // 4] |= rows[n] << 8 * (n % 4)
        return words


class MatrixUnit:
    """Writes the unit's instructions. first: the nest for whose whole tiles it is configured
    outside of others. BYTES: of the thread's scratch memory, from its beginning on, for
    configurations, for one register's worth of terms, and for the sums of a tile."""

    _TERMS = _WORDS * 4
    _SUMS = _TERMS + SIDE * _ROW_BYTES
    BYTES = _SUMS + 4 * SIDE * _ROW_BYTES

    def __init__(self, code: Code, scratch_bytes: int, lowered: Lowered, first: Nest) -> None:
        self.code, self.lowered, self._scratch_bytes = code, lowered, scratch_bytes
        self._outside = self.shape_of(first)

    def shape_of(self, nest: Nest, limits: dict[Axis, int] | None = None) -> Shape:
        """The shape of a nest's tiles. limits: of loops that an edge has cut."""
        microkernel = nest.stage.state.microkernel
        assert microkernel is not None
        extents = self.lowered.extents | (limits or {})
        rows = columns = groups = 1
        for axis in microkernel[1]:
            if nest.kind(axis) == "unrolled":
                rows *= extents[axis]
            elif nest.kind(axis) == "vectorized":
                columns = extents[axis]
            elif nest.kind(axis) == "tile":
                groups = extents[axis]
        return Shape.of(rows, columns, groups)

    @contextlib.contextmanager
    def configured(self) -> Iterator[None]:
        self._configure(self._outside.configuration())
        yield
        self._call("llvm.x86.tilerelease")

    @contextlib.contextmanager
    def shaped(self, shape: Shape) -> Iterator[None]:
        """The registers configured for a shape; their values do not outlive the block."""
        outside, inside = self._outside.configuration(), shape.configuration()
        if inside != outside:
            self._configure(inside)
        yield
        if inside != outside:
            self._configure(outside)

    def terms(self, element: str, element_bytes: int) -> tuple[str, str]:
        """The memory of one register's terms, and its type."""
        return self._view(self._TERMS, SIDE * _ROW_BYTES // element_bytes, element)

    def sums(self, element: str) -> tuple[str, str]:
        """The memory of a tile's sums, a row after the other, and its type."""
        return self._view(self._SUMS, 4 * SIDE * SIDE, element)

    def zero(self, register: int) -> None:
        self._call("llvm.x86.tilezero", self._number(register))

    def load(self, register: int, memory: str, kind: str, position: str, stride: int) -> None:
        """Loads rows whose first elements are `stride` elements apart."""
        pointer, distance = self._place(memory, kind, position, stride)
        self._call("llvm.x86.tileloadd64", self._number(register), pointer, distance)

    def store(self, register: int, memory: str, kind: str, position: str, stride: int) -> None:
        pointer, distance = self._place(memory, kind, position, stride)
        self._call("llvm.x86.tilestored64", self._number(register), pointer, distance)

    def multiply(self, sums: int, row: int, column: int, dtypes: tuple[str, str]) -> None:
        """dtypes: of the row's and the column's terms."""
        signs = "".join("u" if each == "uint8" else "s" for each in dtypes)
        name = "tdpbf16ps" if dtypes[0] == "bfloat16" else f"tdpb{signs}d"
        self._call(f"llvm.x86.{name}", *map(self._number, (sums, row, column)))

    def _view(self, place: int, count: int, element: str) -> tuple[str, str]:
        kind = f"memref<{count}x{element}>"
        text = f"memref.view %scratch[{self.code.index(place)}][] : "
        return self.code.op(f"{text}memref<{self._scratch_bytes}xi8> to {kind}"), kind

    def _number(self, register: int) -> tuple[str, str]:
        return self.code.op(f"arith.constant {register} : i8"), "i8"

    def _place(
        self, memory: str, kind: str, position: str, stride: int
    ) -> tuple[tuple[str, str], tuple[str, str]]:
        element = kind[kind.index("x") + 1 : -1]
        element_bytes = int("".join(c for c in element if c.isdigit())) // 8
        base = self.code.op(f"memref.extract_aligned_pointer_as_index {memory} : {kind} -> index")
        scale = self.code.index(element_bytes)
        offset = self.code.op(f"arith.muli {position}, {scale} : index")
        address = self.code.op(f"arith.addi {base}, {offset} : index")
        word = self.code.op(f"arith.index_cast {address} : index to i64")
        pointer = self.code.op(f"llvm.inttoptr {word} : i64 to !llvm.ptr")
        distance = self.code.op(f"arith.constant {stride * element_bytes} : i64")
        return (pointer, "!llvm.ptr"), (distance, "i64")

    def _call(self, name: str, *operands: tuple[str, str]) -> None:
        names, types = ", ".join(n for n, _ in operands), ", ".join(t for _, t in operands)
        # Registers are not values, and rows are memory: what has been loaded may have changed.
        self.code.store(f'llvm.call_intrinsic "{name}"({names}) : ({types}) -> ()')

    def _configure(self, words: list[int]) -> None:
        memory, kind = self._view(0, _WORDS, "i32")
        vector = f"vector<{_WORDS}xi32>"
        value = self.code.op(f"arith.constant dense<{words}> : {vector}")
        zero = self.code.index(0)
        self.code.store(f"vector.store {value}, {memory}[{zero}] : {kind}, {vector}")
        (pointer, _) = self._place(memory, kind, zero, 0)
        self._call("llvm.x86.ldtilecfg", pointer)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The register tile of a reduction: how many rows it has, and how many vectors in each row, by a
model of what a step of the reduction costs for the whole result."""

from __future__ import annotations

from dataclasses import dataclass

from weft.te.targets import vector_registers

MOST_ROWS, MOST_REGISTERS = 14, 6
_PER_CYCLE = 2  # multiply-adds, and also loads
_LATENCY = 4  # cycles from an addition to a dependent one
# Cycles that a load takes away from the multiply-adds, and cycles for a cache line of the panel
# that comes from L2. Measured: docs/measurements/0062-te-programs.md.
_OF_A_LOAD, _OF_A_LINE = 0.05, 0.67
_L1 = 32 << 10
# Cycles of a tile besides the reduction's steps: bounds, first values and stores.
_BESIDE_THE_STEPS = 12
# Rows of a window share no panel, but neighbouring rows share elements. If all taps are unrolled
# these are kept in registers: with more rows than this LLVM spills them.
_ROWS_OF_WINDOWS = 8
_OF_REGISTERS = 0.75
_LINES_OF_A_WINDOW = 1.6  # cache lines that an unaligned load of a vector touches
_OF_MASKED_WINDOWS = 0.5  # in place of a panel: the loads are masked, and cross cache lines
# Rows that are a multiple of this number of bytes apart map to the same sets of a cache with 8
# ways, of which two are left to the panel and the result.
_CONFLICT, _ROWS_IN_CONFLICT = 2 << 10, 6


@dataclass(frozen=True)
class RegisterTile:
    rows: int
    registers: int


@dataclass(frozen=True)
class Problem:
    """The reduction that is to be tiled.

    rows, columns: of the result. lanes: of a vector. values: the number that each element carries.
    depth: steps of the reduction. panel_bytes: the size of an element of the panel that vectors
    read and all rows share; 0 if there is none, as for windows. row_stride: bytes from one row of
    the other operand to the next. taps: of a window along the rows, if they are unrolled, else 0.
    """

    rows: int
    columns: int
    lanes: int
    values: int = 1
    depth: int = 1
    panel_bytes: int = 0
    row_stride: int = 0
    taps: int = 0


def best_tile(
    problem: Problem, fixed_rows: int | None = None, fixed_registers: int | None = None
) -> RegisterTile:
    """The tile with the least cost; among several, the one with the fewest rows."""
    best, least = RegisterTile(fixed_rows or 1, fixed_registers or 1), float("inf")
    most = min(MOST_ROWS, max(problem.rows, 1))
    if problem.row_stride and problem.row_stride % _CONFLICT == 0:
        most = min(most, _ROWS_IN_CONFLICT)
    if not problem.panel_bytes:
        most = min(most, _ROWS_OF_WINDOWS)
    for registers in [fixed_registers] if fixed_registers else range(1, MOST_REGISTERS + 1):
        for rows in [fixed_rows] if fixed_rows else range(1, most + 1):
            if not _fits(problem, rows, registers):
                continue
            cost = cycles(problem, RegisterTile(rows, registers))
            if cost < least:
                best, least = RegisterTile(rows, registers), cost
    return best


def _fits(problem: Problem, rows: int, registers: int) -> bool:
    if problem.taps and rows > 1:
        kept = (2 * rows + problem.taps - 1) * registers
        return kept <= _OF_REGISTERS * vector_registers()
    return rows * registers * problem.values + registers + 1 <= vector_registers()


def cycles(problem: Problem, tile: RegisterTile) -> float:
    """The cycles of a step of the reduction over all tiles of the result, including smaller tiles
    at the edges."""
    width = tile.registers * problem.lanes
    panels, left = divmod(problem.columns, width)
    total = panels * _of_panel(problem, tile.rows, tile.registers)
    if left:
        last = _of_panel(problem, tile.rows, -(-left // problem.lanes))
        windows = not problem.panel_bytes and panels
        total += last * (1 + _OF_MASKED_WINDOWS) if windows else last
    return total


def _of_panel(problem: Problem, rows: int, registers: int) -> float:
    """The cycles for all rows of one panel with this number of registers."""
    whole, rest = divmod(problem.rows, rows)
    total = whole * _of_tile(problem, rows, registers)
    if rest:
        total += _of_tile(problem, rest, registers)
    return total


def _of_tile(problem: Problem, rows: int, registers: int) -> float:
    loads: float = rows + registers
    if problem.taps:
        loads = (rows + problem.taps - 1) * registers / problem.taps * _LINES_OF_A_WINDOW + 1
    busy = max(rows * registers, loads, _LATENCY * _PER_CYCLE) / _PER_CYCLE
    bytes_read = registers * problem.lanes * problem.depth * problem.panel_bytes
    lines = registers if bytes_read > _L1 else 0
    beside = _BESIDE_THE_STEPS / max(problem.depth, 1)
    return busy + _OF_A_LOAD * loads + _OF_A_LINE * lines + beside

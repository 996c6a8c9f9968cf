# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A schedule as a module of the compiler's stage `linalg`: for each root tensor one kernel, which
is declared on tensors and has its loops as a separate function, and the entry that calls the
kernels in order."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from math import prod

from weft.te import dtypes, nests
from weft.te import expressions as ex
from weft.te.code import Code
from weft.te.defaults import default_schedule
from weft.te.elements import Buffer
from weft.te.errors import ScheduleError
from weft.te.index_checks import index_checks
from weft.te.linear import Linear
from weft.te.loops import NestWriter
from weft.te.matrix_registers import MatrixUnit, uses_matrix_unit
from weft.te.nests import MOST_BYTES, Lowered, Nest
from weft.te.tensors import Tensor
from weft.te.values import logical_type, stored_type

_ALIGNMENT = 64


def module_text(lowered: Lowered, inputs: Sequence[Tensor], results: Sequence[Tensor]) -> str:
    """The module as MLIR text. inputs, results: of the entry, in order."""
    checks = [(_lowered_by_default(tensor), message) for tensor, message in index_checks(lowered)]
    functions = [_kernel(each, nest) for each, _ in checks for nest in each.roots]
    functions += [_kernel(lowered, nest) for nest in lowered.roots]
    entry = _entry(lowered, inputs, results, checks)
    return "module {\n" + "\n".join([*functions, entry]) + "\n}\n"


def _lowered_by_default(tensor: Tensor) -> Lowered:
    return nests.lowered(default_schedule([tensor]))


def _shape(sizes: Sequence[int], element: str) -> str:
    return "x".join([*map(str, sizes), element])


def _tensor(tensor: Tensor) -> str:
    return f"tensor<{_shape(tensor.shape, stored_type(tensor.dtype))}>"


def _memref(tensor: Tensor) -> str:
    return f"memref<{_shape(tensor.shape, stored_type(tensor.dtype))}>"


def symbol(nest: Nest, suffix: str = "") -> str:
    """The symbol of a kernel, quoted, since names may have letters that MLIR's symbols cannot
    have."""
    return f'"te_{nest.stage.label}{suffix}"'


def _results(nest: Nest) -> tuple[Tensor, ...]:
    """The results of the kernel of a root nest."""
    return nest.stage.op.results if nest.stage.op.scan is not None else (nest.tensor,)


def _read(nest: Nest) -> list[Tensor]:
    """The tensors that the kernel of a root nest reads and does not compute."""
    own = {each.tensor for each in nest.all()}
    if nest.stage.op.scan is not None:
        own |= {*nest.stage.op.scan.state}
    found: dict[Tensor, None] = {}
    for each in nest.all():
        for node in ex.walk(each.body):
            if isinstance(node, ex.Load) and node.tensor not in own:
                found[node.tensor] = None
    return list(found)


def _entry(
    lowered: Lowered,
    inputs: Sequence[Tensor],
    results: Sequence[Tensor],
    checks: Sequence[tuple[Lowered, str]],
) -> str:
    def typed(tensor: Tensor) -> str:
        return f"weft.type = tensor<{_shape(tensor.shape, logical_type(tensor.dtype))}>"

    names = {tensor: f"%a{number}" for number, tensor in enumerate(inputs)}
    parameters = ", ".join(
        f'{name}: {_tensor(tensor)} {{weft.kind = "input", weft.name = "{tensor.name}", '
        f"{typed(tensor)}}}"
        for tensor, name in names.items()
    )
    lines = []

    def call(nest: Nest) -> None:
        read = _read(nest)
        operands = ", ".join(names[each] for each in read)
        types = ", ".join(map(_tensor, read))
        made, name = _results(nest), f"%k{len(names)}"
        names.update({each: f"{name}#{number}" for number, each in enumerate(made)})
        declared = ", ".join(map(_tensor, made))
        lines.append(
            f"    {name}:{len(made)} = call @{symbol(nest)}({operands}) : ({types}) -> ({declared})"
        )

    for check, message in checks:
        for nest in check.roots:
            call(nest)
        valid = check.roots[-1].tensor
        lines.append(f'    weft.assert {names[valid]}, "{message}" : {_tensor(valid)}')
    for nest in lowered.roots:
        call(nest)
    values = ", ".join(names[each] for each in results)
    types = ", ".join(map(_tensor, results))
    declared = ", ".join(f"{_tensor(each)} {{{typed(each)}}}" for each in results)
    head = f"  func.func @main({parameters}) -> ({declared})"
    role = "      attributes {weft.entry = #weft.entry<main>} {"
    return "\n".join([head, role, *lines, f"    return {values} : {types}", "  }"])


def _kernel(lowered: Lowered, nest: Nest) -> str:
    code, buffers = Code(), {}
    read = _read(nest)
    arguments = []
    results = _results(nest)
    for number, tensor in enumerate([*read, *results]):
        arguments.append(f"%a{number}: {_memref(tensor)}")
        buffers[tensor] = _flat(code, f"%a{number}", tensor)
    if nest.stage.op.scan is not None:
        buffers.update(zip(nest.stage.op.scan.state, map(buffers.get, results)))
    tiled = [each for each in nest.all() if uses_matrix_unit(each)]
    own_bytes = MatrixUnit.BYTES if tiled else 0
    bytes_needed = _scratch(code, nest, buffers, own_bytes)
    unit = MatrixUnit(code, bytes_needed, lowered, tiled[0]) if tiled else None
    parallel = any(nest.kind(axis) == "parallel" for axis in nest.loops)
    writer = NestWriter(lowered, code, buffers, unit)
    with contextlib.ExitStack() as stack:
        if not parallel:
            first = code.op(f"arith.cmpi eq, %thread, {code.index(0)} : index")
            stack.enter_context(code.branch(first))
        if unit is not None:
            stack.enter_context(unit.configured())
        writer.write(nest)
    arguments += [
        f"%scratch: memref<{bytes_needed}xi8>",
        "%thread: index",
        "%threads: index",
    ]
    attributes = [
        'weft.kernel = "te"',
        f"weft.loops = @{symbol(nest, '.loops')}",
        f"weft.scratch_bytes = {bytes_needed} : i64",
        f"weft.flops = {_flops(lowered, nest)} : i64",
    ]
    if not parallel:
        attributes.append("weft.serial")
    types, declared = ", ".join(map(_tensor, read)), ", ".join(map(_tensor, results))
    return "\n".join(
        [
            f"  func.func private @{symbol(nest)}({types}) -> ({declared}) "
            f"attributes {{{', '.join(attributes)}}}",
            f"  func.func private @{symbol(nest, '.loops')}({', '.join(arguments)}) {{",
            *code.lines,
            "    return",
            "  }",
        ]
    )


def _flat(code: Code, name: str, tensor: Tensor) -> Buffer:
    """A view of a tensor's memory with one dimension."""
    count = prod(tensor.shape)
    kind = f"memref<{count}x{stored_type(tensor.dtype)}>"
    if tensor.ndim != 1:
        layout = "offset: [0], sizes: [" + str(count) + "], strides: [1]"
        name = code.op(f"memref.reinterpret_cast {name} to {layout} : {_memref(tensor)} to {kind}")
    return Buffer(name, kind, [Linear() for _ in tensor.shape], list(tensor.shape))


def _scratch(code: Code, nest: Nest, buffers: dict[Tensor, Buffer], reserved: int) -> int:
    """Places the buffers of attached nests one after the other, behind as many bytes as are
    reserved. Returns the bytes of all."""
    attached = [each for each in nest.all() if each.tensor not in buffers]
    places, end = [], reserved
    for each in attached:
        places.append(end)
        size = prod(each.sizes) * dtypes.BYTES[each.tensor.dtype]
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
        if end > MOST_BYTES:
            raise ScheduleError(
                each.stage.label,
                f"its buffer of {size} bytes is more than a thread's {MOST_BYTES}",
                "compute it at an inner loop, or at the root",
            )
    for each, place in zip(attached, places):
        count = prod(each.sizes)
        kind = f"memref<{count}x{stored_type(each.tensor.dtype)}>"
        view = f"memref.view %scratch[{code.index(place)}][] : memref<{end}xi8> to {kind}"
        buffers[each.tensor] = Buffer(code.op(view), kind, each.offset, each.sizes)
    return end


def _flops(lowered: Lowered, nest: Nest) -> int:
    """The number of operations, by which the runtime decides how long a call waits for threads."""
    total = 0
    for each in nest.all():
        points = prod(lowered.extents[axis] for axis in (*each.enclosing, *each.loops))
        total += points * sum(not isinstance(node, ex.Load) for node in ex.walk(each.body))
    return total

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of the graph become calls of functions whose bodies a user has given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import errors
from weft.ir.building import call
from weft.ir.functions import Function
from weft.ir.host_functions import HostFunction
from weft.ir.loop_emission import emit_function
from weft.ir.loops import Tensor
from weft.ir.module import Module
from weft.ir.rewriting import Rewriter
from weft.ir.values import Operation

Body = Callable[..., Any] | HostFunction

_LOCAL = re.compile(r"%(\w+)")


def lower_ops(module: Module, bodies: Mapping[str, Body]) -> int:
    """Replaces ops by calls of functions, in place; returns how many.

        ir.lower_ops(module, {"add": lambda op, x, y: loops.compute(
            x.shape, lambda *i: x[i] + y[i])})

    bodies: by the names of ops. A Python function is called with the op and its operands as
    `weft.ir.loops.Tensor`, and describes the results' loops, which become a function of linalg on
    tensors: a kernel of the name of the op, with a number where another body has that name; equal
    bodies are one function. What `weft.ir.host` or `weft.ir.external` makes is called by the
    program.

    Raises: errors.IRError for operands that loops cannot be of; errors.VerificationError for
    results of other types than the op's; what a body raises. The module is then as it was.
    """
    return module.attempt(lambda module: _Lowering(module, bodies).run())


class _Lowering:
    def __init__(self, module: Module, bodies: Mapping[str, Body]) -> None:
        self.module = module
        self.bodies = bodies
        self.rewriter = Rewriter(module)
        self.made: dict[tuple[str, str], Function] = {}

    def run(self) -> int:
        for function in self.module.functions:
            if "weft.kernel" not in function.attributes:
                for op in function.body:
                    body = self.bodies.get(op.name, self.bodies.get(op.full_name))
                    if body is not None:
                        self._lower(op, body)
        return self.rewriter.count

    def _lower(self, op: Operation, body: Body) -> None:
        with self.rewriter.before(op):
            if isinstance(body, HostFunction):
                result = body.emit(op)
            else:
                result = call(self._function(op, body), *op.operands)
        self.rewriter.replace(op, result)

    def _function(self, op: Operation, body: Callable[..., Any]) -> Function:
        operands = []
        for value in op.operands:
            if getattr(value.type, "layout", ""):
                raise errors.IRError(f"{op.name}: expected row-major operands, found {value.type}")
            operands.append(Tensor(value.shape, value.type.dtype))
        key = (op.name, emit_function(body, op, operands))
        if key not in self.made:
            name = self.rewriter.fresh_name(op.name.replace(".", "_"))
            self.made[key] = add_function(self.module, key[1], name)
        return self.made[key]


def add_function(module: Module, text: str, name: str) -> Function:
    """The function that `text` is, but for its name, `@NAME`, as one of the module."""
    module._session.add_functions(text.replace("@NAME", f"@{name}", 1))
    return module[name]


def fuse_loops(module: Module) -> int:
    """Makes one loop function of each primitive function that only calls loop functions: their
    loops in order, with buffers between them. In place; returns how many. Loop functions that
    nothing calls any more are erased."""
    return module.attempt(_fuse_loops)


def _fuse_loops(module: Module) -> int:
    count = 0
    rewriter = Rewriter(module)
    for function in module.functions:
        if not function.is_primitive or "weft.kernel" in function.attributes:
            continue
        parts = [_callee(op) for op in function.body if op.full_name != "func.return"]
        if not parts or any(part is None for part in parts):
            continue
        text = _joined(function, parts)
        name, callers = function.name, function.callers
        made = add_function(module, text, rewriter.fresh_name(f"{name}_loops"))
        for caller in callers:
            with rewriter.before(caller):
                rewriter.replace(caller, call(made, *caller.operands))
        rewriter.erase(function)
        rewriter.rename(made, name)
        count += 1
    module.remove_unused()
    return count


def _callee(op: Operation) -> Function | None:
    """The loop function that an op calls."""
    if op.full_name != "func.call":
        return None
    callee = op.module[op.attributes["callee"]]
    return callee if callee.is_loops else None


def _joined(function: Function, parts: Sequence[Function]) -> str:
    names = {value: f"%arg{value.index}" for value in function.params}
    lines: list[str] = []
    for number, (op, part) in enumerate(zip(function.body, parts, strict=False)):
        inner = {f"arg{i}": names[value] for i, value in enumerate(op.operands)}
        _, *body, last, _ = str(part).rstrip().split("\n")

        def renamed(match: re.Match[str], inner: Any = inner, number: int = number) -> str:
            return inner.get(match[1], f"%f{number}_{match[1]}")

        lines += [_LOCAL.sub(renamed, line) for line in body]
        returned = re.findall(r"%[\w#]+", _LOCAL.sub(renamed, last).partition(" : ")[0])
        names.update(zip(op.results, returned, strict=True))
    params = ", ".join(f"{names[value]}: {value.type}" for value in function.params)
    types = ", ".join(map(str, function.result_types))
    values = ", ".join(names[value] for value in function.returns)
    has_sum = any(part.attributes["weft.kernel"] == "contraction" for part in parts)
    kind = "contraction" if has_sum else "nest"
    return "\n".join(
        [
            f"func.func private @NAME({params}) -> ({types}) "
            f'attributes {{weft.kernel = "{kind}", weft.primitive}} {{',
            *lines,
            f"  return {values} : {types}",
            "}",
        ]
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Rewriter`: changes a module op by op."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft import errors
from weft.dialect.making import making
from weft.ir import emission
from weft.ir.building import Builder
from weft.ir.emission import InsertionPoint
from weft.ir.functions import Function
from weft.ir.module import Module
from weft.ir.values import Operation, Value


class Rewriter:
    """Rewrites a module in place, ops after those whose results they read:

        rewriter = weft.ir.Rewriter(module)
        for op in rewriter.walk("add"):
            product = op.operands[0].producer
            if product is not None and product.name == "mul":
                with rewriter.before(op):
                    rewriter.replace(op, ops.fma(*product.operands, op.operands[1]))

    What is replaced is erased; what only it needed stays until `module.remove_unused()`.
    count: of the ops replaced so far.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.count = 0

    def walk(self, *names: str) -> Iterator[Operation]:
        """The ops that there are when a function's turn comes, or those of the names given, in
        order; an op that is erased before its turn is left out."""
        for op in self.module.walk():
            if not names or op.name in names or op.full_name in names:
                yield op

    def before(self, op: Operation) -> contextlib.AbstractContextManager[None]:
        """Ops made in the body of the `with` statement come ahead of `op`."""
        return making(InsertionPoint(self.module, op.block._handle, op._handle))

    def after(self, op: Operation) -> contextlib.AbstractContextManager[None]:
        """Ops made in the body of the `with` statement come right behind `op`.

        Raises: errors.IRError, if it ends its block.
        """
        ops = op.block.ops
        behind = ops[ops.index(op) + 1 :]
        if not behind:
            raise errors.IRError(f"expected an op that does not end its block, found {op.name}")
        return self.before(behind[0])

    def replace(self, op: Operation, *values: Any) -> None:
        """Each result's uses go over to the value in its place, and the op is erased. Handles on
        the op and its results are then ones on what replaces them. values: one for each result, or
        one sequence of them.

        Raises: errors.VerificationError, if a type differs; errors.IRError.
        """
        if len(values) == 1 and isinstance(values[0], (tuple, list)):
            (values,) = values
        with self.before(op):
            refs = [emission.reference(value) for value in values]
        self.module._session.replace_op(op._handle, refs)
        self.count += 1

    def replace_uses(self, value: Value, other: Value) -> None:
        """All that reads `value` reads `other` instead; nothing is erased."""
        self.module._session.replace_uses(value._ref, emission.reference_in(self.module, other))

    def erase(self, op: Operation) -> None:
        """Raises: errors.IRError, if something reads a result of it, or calls it."""
        self.module._session.erase_op(op._handle)

    def set_operand(self, op: Operation, number: int, value: Value) -> None:
        ref = emission.reference_in(self.module, value)
        self.module._session.set_operand(op._handle, number, ref)

    def set_attribute(self, op: Operation, name: str, value: Any = True) -> None:
        """By the op's definition where it has such an attribute; otherwise numbers, strings, lists
        and dicts are what they are, and True is a mark without a value.

        Raises: errors.VerificationError for a kind that the definition does not allow.
        """
        data = emission.data_for(op.full_name, name, value)
        self.module._session.set_attribute(op._handle, name, data)

    def remove_attribute(self, op: Operation, name: str) -> None:
        """Raises: errors.IRError, if the op's definition needs it."""
        self.module._session.remove_attribute(op._handle, name)

    def rename(self, function: Function, name: str) -> None:
        """The function's calls call it by the new name.

        Raises: errors.IRError, if the name is taken.
        """
        self.module._session.set_attribute(function._handle, "sym_name", name)

    def add_function(
        self,
        name: str,
        types: Sequence[Any],
        body: Callable[..., Any],
        *,
        attributes: dict[str, Any] | None = None,
    ) -> Function:
        """A new private function, which returns what `body` makes of its parameters. A name that
        is taken gets a number: `name0`, `name1`, …, if it ends in no digit."""
        name = self.fresh_name(name)
        builder = Builder(self.module)
        with builder.function(name, *types, private=True) as params:
            result = body(*params)
            builder.returns(*(result if isinstance(result, (tuple, list)) else [result]))
        made = self.module[name]
        for key, value in (attributes or {}).items():
            self.set_attribute(made, key, value)
        return made

    def fresh_name(self, name: str) -> str:
        """`name`, or with the least number behind it that makes it new."""
        taken = {function.name for function in self.module.functions}
        if name not in taken:
            return name
        number = 1
        while f"{name}{number}" in taken:
            number += 1
        return f"{name}{number}"

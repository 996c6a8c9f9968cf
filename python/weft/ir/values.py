# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values, ops and blocks: handles on what a module holds.

A handle is never out of date unnoticed: one on an op that was replaced is then one on its
replacement, where that is one op, and one on what was erased raises `weft.ir.Stale`. Two handles
are equal, and hash alike, if they lead to the same object now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weft import errors
from weft.ir.elements import to_python
from weft.ir.emission import Arithmetic
from weft.ir.types import Location, OtherType, TensorType, type_of

if TYPE_CHECKING:
    from weft.ir.costs import Cost
    from weft.ir.functions import Function
    from weft.ir.module import Module


class Value(Arithmetic):
    """A result of an op, or a parameter of a function or block. `+ - * / @` emit ops."""

    __slots__ = ("_module", "_ref")

    def __init__(self, module: Module, ref: tuple[int, int]) -> None:
        self._module = module
        self._ref = ref

    @property
    def module(self) -> Module:
        return self._module

    @property
    def type(self) -> TensorType | OtherType:
        return type_of(self._module._session.type(self._ref))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def producer(self) -> Operation | None:
        """The op that it is a result of; None of a parameter."""
        owner, index = self._current()
        return None if index < 0 else Operation(self._module, owner)

    @property
    def index(self) -> int:
        """Its number among the producer's results, or among the parameters."""
        owner, index = self._current()
        if index >= 0:
            return index
        return self.owner.params.index(self)

    @property
    def owner(self) -> Block:
        """The block that it is a parameter of, or in which its producer stands."""
        return Block(self._module, self._module._session.owner_block(self._ref))

    @property
    def uses(self) -> list[tuple[Operation, int]]:
        """Each op that reads it with the number of the operand, in the order of the block."""
        uses = self._module._session.uses(self._ref)
        return [(Operation(self._module, op), number) for op, number in uses]

    @property
    def users(self) -> list[Operation]:
        """The ops that read it, each once, in the order of the block."""
        handles = dict.fromkeys(op for op, _ in self._module._session.uses(self._ref))
        return [Operation(self._module, handle) for handle in handles]

    @property
    def name(self) -> str:
        """What the user calls a parameter, else empty."""
        if self.producer is not None:
            return ""
        parent = self.owner.parent
        attributes = self._module._session.parameter_attributes(parent._handle, self.index)
        return dict(attributes).get("weft.name", "")

    def _current(self) -> tuple[int, int]:
        return self._module._session.current(self._ref)

    def _identity(self) -> tuple[int, int]:
        try:
            return self._current()
        except errors.Stale:
            return self._ref

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value):
            return NotImplemented
        same = self._module._session is other._module._session
        return same and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        try:
            producer = self.producer
            if producer is None:
                return f"<weft.ir.Value {self.name or f'%arg{self.index}'}: {self.type}>"
            number = f"#{self.index}" if len(producer.results) > 1 else ""
            return f"<weft.ir.Value {producer.name}{number}: {self.type}>"
        except errors.Stale as why:
            return f"<weft.ir.Value, stale: {why}>"


class Operation:
    """An op of a block.

    name: the op's mnemonic in the weft dialect, such as "add"; of other dialects with their
    prefix, such as "func.return". full_name: with the prefix always.
    """

    __slots__ = ("_handle", "_module")

    def __init__(self, module: Module, handle: int) -> None:
        self._module = module
        self._handle = handle

    @property
    def module(self) -> Module:
        return self._module

    @property
    def full_name(self) -> str:
        return self._module._session.name(self._handle)

    @property
    def name(self) -> str:
        return self._module._session.name(self._handle).removeprefix("weft.")

    @property
    def operands(self) -> list[Value]:
        module = self._module
        return [Value(module, ref) for ref in module._session.operands(self._handle)]

    @property
    def results(self) -> list[Value]:
        module = self._module
        return [Value(module, ref) for ref in module._session.results(self._handle)]

    @property
    def result(self) -> Value:
        """The only result.

        Raises: errors.IRError, if there are none or several.
        """
        results = self.results
        if len(results) != 1:
            raise errors.IRError(f"expected {self.name} to have one result, found {len(results)}")
        return results[0]

    @property
    def attributes(self) -> dict[str, Any]:
        """Copies of the attributes as Python values: numbers, bools, strings (also for the cases
        of enums and the names of functions), lists, dicts, numpy arrays for constants; True for
        one without a value, and a `weft.ir.Syntax` for any other. A Rewriter sets them."""
        return {k: to_python(v) for k, v in self._module._session.attributes(self._handle)}

    @property
    def location(self) -> Location | None:
        """The line of Python that it comes from, None if that is not known."""
        file, line, function = self._module._session.line(self._handle)
        return Location(file, line, function) if line else None

    @property
    def cost(self) -> Cost:
        """Operations and bytes; see `weft.ir.costs`."""
        from weft.ir.costs import cost

        return cost(self)

    @property
    def users(self) -> list[Operation]:
        """The ops that read its results, each once."""
        return list(dict.fromkeys(user for result in self.results for user in result.users))

    @property
    def block(self) -> Block:
        return Block(self._module, self._module._session.parent_block(self._handle))

    @property
    def parent(self) -> Function | Operation:
        """The function or op in whose body it stands."""
        return self.block.parent

    @property
    def blocks(self) -> list[Block]:
        """Those inside it, of all its regions."""
        return [Block(self._module, each) for each in self._module._session.blocks(self._handle)]

    def is_before(self, other: Operation) -> bool:
        """Whether it stands ahead of another op of the same block."""
        return self._module._session.is_before(self._handle, other._handle)

    def __str__(self) -> str:
        return self._module._session.print(self._handle, False, -1)

    def __repr__(self) -> str:
        try:
            return f"<weft.ir.Operation {self._module._session.print(self._handle, False, 16)}>"
        except errors.Stale as why:
            return f"<weft.ir.Operation, stale: {why}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operation):
            return NotImplemented
        session = self._module._session
        if session is not other._module._session:
            return False
        return session.follow(self._handle) == session.follow(other._handle)

    def __hash__(self) -> int:
        return hash(self._module._session.follow(self._handle))


class Block:
    """Ops in order. A sequence of them: `len(block)`, `block[-1]`, `for op in block`."""

    __slots__ = ("_handle", "_module")

    def __init__(self, module: Module, handle: int) -> None:
        self._module = module
        self._handle = handle

    @property
    def ops(self) -> list[Operation]:
        module = self._module
        return [Operation(module, each) for each in module._session.ops(self._handle)]

    @property
    def params(self) -> list[Value]:
        module = self._module
        return [Value(module, ref) for ref in module._session.arguments(self._handle)]

    @property
    def parent(self) -> Function | Operation:
        return self._module._parent(self._module._session.parent_op(self._handle))

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self._module._session.ops(self._handle))

    def __getitem__(self, index: int) -> Operation:
        return self.ops[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block):
            return NotImplemented
        return self._module._session is other._module._session and self._handle == other._handle

    def __hash__(self) -> int:
        return hash(self._handle)

    def __repr__(self) -> str:
        if not self._module._session.is_alive(self._handle):
            return "<weft.ir.Block, stale>"
        return f"<weft.ir.Block of {len(self)} ops>"

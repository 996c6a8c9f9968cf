# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Module`: a whole program as IR."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from weft import _core, errors
from weft._compiler import Session, stage_names
from weft.artifacts.builds import Options
from weft.ir import showing
from weft.ir.emission import explained
from weft.ir.functions import Function
from weft.ir.remarks import Remark, from_session
from weft.ir.values import Operation

STAGES = tuple(stage_names())


class Module:
    """Functions, of one stage of the compiler: `graph`, `optimized`, `kernels`, `linalg`,
    `loops` or `llvm`.

    Modules are equal if they print alike but for the names and kinds of parameters.
    `module["main"]` is a function, iterating gives all of them.
    """

    __hash__ = None  # it changes

    def __init__(
        self,
        session: Session | None = None,
        stage: str = "graph",
        tensors: Sequence[torch.Tensor] = (),
    ) -> None:
        """tensors: those of a captured model, which `main` takes last."""
        self._session = Session.create() if session is None else session
        self.stage = _checked(stage)
        self.tensors = list(tensors)
        self._declined: list[Remark] = []  # by patterns
        self._user_ops: dict[Any, str] = {}  # their functions' names, by op, types and attributes

    @classmethod
    def parse(cls, text: str, *, stage: str = "graph", name: str = "text") -> Module:
        """The verified module that `text` is. stage: the one that it is at.

        Raises: errors.ParseError, with line and column.
        """
        return cls(Session.parse(text, name), stage)

    @classmethod
    def load(cls, path: str | Path, *, stage: str = "graph") -> Module:
        """The module in a file.

        Raises: OSError; errors.ParseError.
        """
        return cls.parse(Path(path).read_text("utf-8"), stage=stage, name=str(path))

    # Reading.

    @property
    def functions(self) -> list[Function]:
        session = self._session
        (body,) = session.blocks(session.module())
        return [
            Function(self, each) for each in session.ops(body) if session.name(each) in _FUNCTIONS
        ]

    def __getitem__(self, name: str) -> Function:
        """Raises: KeyError, which lists the functions."""
        for function in self.functions:
            if function.name == name:
                return function
        names = ", ".join(function.name for function in self.functions)
        raise KeyError(f"expected a function among {names}; found {name!r}")

    def __contains__(self, name: object) -> bool:
        return any(function.name == name for function in self.functions)

    def __iter__(self) -> Iterator[Function]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def walk(self) -> Iterator[Operation]:
        """All ops, those inside an op ahead of it, in the order of the text otherwise. Ops may be
        erased and inserted meanwhile: those that are gone when their turn comes are left out."""
        is_alive = self._session.is_alive
        for function in self.functions:
            for handle in self._session.walk(function._handle):
                if is_alive(handle):
                    yield Operation(self, handle)

    def _parent(self, handle: int) -> Any:
        if self._session.name(handle) in _FUNCTIONS:
            return Function(self, handle)
        return self if handle == self._session.module() else Operation(self, handle)

    @property
    def remarks(self) -> list[Remark]:
        """What patterns and passes declined on the way to this module, and why, such as which ops
        fusion left apart."""
        return [*self._declined, *map(from_session, self._session.remarks())]

    # Text.

    def text(self, *, locations: bool = False) -> str:
        """What `parse` takes; with locations, each op has its line of Python."""
        return self._session.print(self._session.module(), locations, -1).rstrip("\n")

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        names = ", ".join(function.name for function in self.functions)
        return f"<weft.ir.Module at {self.stage}: {names or 'empty'}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Module):
            return NotImplemented
        return self._session.structure() == other._session.structure()

    def show(
        self,
        stage: str | None = None,
        *,
        constants: bool = False,
        costs: bool | str = False,
        file: Any = None,
    ) -> None:
        """Prints the module, in colour on a terminal.

        stage: lowered to it first. constants: those of more than ten elements are listed behind
        the module as `metadata[i]`, with their values if this is true. costs: in the margin the
        operations of each op, the bytes it touches and the least time that this machine needs for
        them; with "measured" also the time of the kernel that ends with it, on random inputs.
        file: where to, by default standard output.
        """
        module = self if stage is None else self.lower(stage)
        showing.show(module, constants, file, costs)

    def visualize(self, path: str | Path, *, stage: str | None = None, **options: Any) -> None:
        """Draws the module, lowered to `stage` first, into an .svg, .png or .dot.

        options: function, fold, attributes and node_attributes, as `weft.ir.pictures.visualize` has
        them.
        Raises: errors.IRError; errors.Error without Graphviz.
        """
        from weft.ir.pictures import visualize

        visualize(self if stage is None else self.lower(stage), path, **options)

    def _repr_html_(self) -> str:
        return showing.html(self)

    # As a whole.

    def verify(self) -> None:
        """Raises: errors.VerificationError, naming the op and the user's line."""
        try:
            self._session.verify()
        except errors.VerificationError as error:
            name = str(error).partition("'")[2].partition("'")[0]
            raise explained(error, name) from None

    def clone(self) -> Module:
        return self._with(self._session.clone(), self.stage)

    def _with(self, session: Session, stage: str) -> Module:
        made = Module(session, stage, self.tensors)
        made._declined = list(self._declined)
        made._user_ops = dict(self._user_ops)
        return made

    def remove_unused(self) -> int:
        """Erases ops without effect whose results nothing reads, and private functions that
        nothing calls. Returns how many."""
        return self._session.remove_unused()

    def lower(
        self, stage: str, *, bodies: Mapping[str, Any] | None = None, **options: Any
    ) -> Module:
        """A new module of a later stage. bodies: ops become calls of functions with these first,
        by `weft.ir.lower_ops`. options: those of `weft.compile`: isa, threads, schedule, precision.

        Raises: errors.CompileError; errors.IRError for a stage that is unknown or has passed.
        """
        if STAGES.index(_checked(stage)) < STAGES.index(self.stage):
            raise errors.IRError(f"expected a stage not before {self.stage!r}, found {stage!r}")
        if bodies:
            from weft.ir.lower_ops import lower_ops

            called = self.clone()
            lower_ops(called, bodies)
            return called.lower(stage, **options)
        lowered = self._session.lower(self.stage, stage, Options(**options).for_compiler())
        return self._with(lowered, stage)

    def assembly(self, **options: Any) -> str:
        """The machine code as the assembler's text, all kernels one after another."""
        return self._session.assembly(self.stage, Options(**options).for_compiler())

    def compile(self, path: str | Path, **options: Any) -> None:
        """Writes the shared object of this module, which `weft.load` opens.

        Raises: errors.CompileError.
        """
        from weft import _compiler

        told = Options(**options).for_compiler()
        with tempfile.TemporaryDirectory(prefix="weft-ir-") as folder:
            cache = _core.Cache(Path(folder))  # which seals what it holds
            draft, _ = cache.begin("module")
            try:
                self._session.compile(self.stage, str(draft.path), told)
            except _compiler.CompileError as error:
                raise errors.CompileError(str(error)) from None
            sealed, draft, _ = cache.publish(draft)
            shutil.copyfile(sealed, path)

    def run_passes(self, pipeline: str) -> None:
        """Runs passes of the compiler in place: their names as `weft-opt` has them, with commas
        between, such as "weft-simplify,cse". Handles on ops go stale.

        Raises: errors.IRError for unknown passes; errors.CompileError, if one fails: the module is
        then as it was.
        """
        self._session.run_passes(pipeline)

    def attempt(self, change: Callable[[Module], Any]) -> Any:
        """`change(self)`; if it raises, the module is as before, with all handles on it."""
        self._session.remember()
        try:
            result = change(self)
        except BaseException:
            self._session.restore("it was made by a change that failed and was undone")
            raise
        self._session.forget()
        return result


_FUNCTIONS = ("func.func", "llvm.func")


def _checked(stage: str) -> str:
    if stage not in STAGES:
        raise errors.IRError(f"expected a stage among {', '.join(STAGES)}; found {stage!r}")
    return stage

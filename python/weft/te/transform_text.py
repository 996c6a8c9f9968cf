# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the text of a `transform.named_sequence` whose ops are in MLIR's generic form, as te writes
it and as mlir-opt prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from weft.te.errors import ScheduleError

_TOKEN = re.compile(
    r"""(?P<skipped>\s+|//[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<value>%[\w$.-]+(?:[:\#]\d+)?)
    |(?P<integer>-?\d+)
    |(?P<word>[@!]?[A-Za-z_][\w$.]*)
    |(?P<mark>->|[(){}=,:])""",
    re.VERBOSE | re.ASCII,
)
_CLOSING = {"(": ")", "{": "}"}

Attributes = dict[str, "str | int"]


@dataclass(frozen=True)
class Op:
    """An op. name: without its dialect. line: where it begins. results: their names, where %0:2 is
    written as %0#0 and %0#1."""

    name: str
    line: int
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True)
class Sequence:
    """arguments: the name and the attributes of each. line: of the sequence."""

    arguments: tuple[tuple[str, Attributes], ...]
    ops: tuple[Op, ...]
    line: int


def refused(line: int, reason: str, remedy: str) -> ScheduleError:
    return ScheduleError(f"line {line}", reason, remedy)


def parsed(text: str, dialect: str) -> Sequence:
    """The first named sequence of a text. dialect: that of its ops.

    Raises: ScheduleError, with the line.
    """
    return _Reader(text, dialect).sequence()


class _Reader:
    def __init__(self, text: str, dialect: str) -> None:
        self.dialect = dialect
        self.tokens: list[tuple[str, str, int]] = []
        self.place, at, line = 0, 0, 1
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise refused(line, f"`{text[at]}` is not understood", "write MLIR's generic form")
            if found.lastgroup != "skipped":
                self.tokens.append((str(found.lastgroup), found[0], line))
            line += found[0].count("\n")
            at = found.end()
        self.tokens.append(("end", "the end of the text", line))

    @property
    def next(self) -> tuple[str, str, int]:
        return self.tokens[self.place]

    def take(self, kind: str, text: str | None = None) -> str:
        found, given, line = self.next
        if found != kind or (text is not None and given != text):
            raise refused(line, f"expected {text or f'a {kind}'}, found {given}", "write that")
        self.place += 1
        return given

    def is_next(self, text: str) -> bool:
        return self.next[1] == text and self.next[0] != "string"

    def sequence(self) -> Sequence:
        while not self.is_next("transform.named_sequence"):
            if self.next[0] == "end":
                raise refused(
                    self.next[2], "there is no schedule", "write transform.named_sequence"
                )
            self.place += 1
        line = self.next[2]
        self.take("word")
        self.take("word")
        self.take("mark", "(")
        arguments = []
        while not self.is_next(")"):
            name = self.take("value")
            self.take("mark", ":")
            self.type()
            arguments.append((name, self.attributes() if self.is_next("{") else {}))
            if not self.is_next(")"):
                self.take("mark", ",")
        self.take("mark", ")")
        if self.is_next("attributes"):
            self.take("word")
            self.skip_group()
        self.take("mark", "{")
        ops: list[Op] = []
        while not self.is_next("}") and not self.is_next("transform.yield"):
            ops.append(self.op())
        if self.is_next("transform.yield"):
            self.take("word")
        self.take("mark", "}")
        return Sequence(tuple(arguments), tuple(ops), line)

    def op(self) -> Op:
        line, results = self.next[2], []
        while self.next[0] == "value":
            name, colon, count = self.take("value").partition(":")
            results += [f"{name}#{n}" for n in range(int(count))] if colon else [name]
            self.take("mark", "=" if self.is_next("=") else ",")
        full = self.string()
        name = full.removeprefix(f"{self.dialect}.")
        if name == full:
            raise refused(line, f"{full!r} is no op of a schedule", f"begin with {self.dialect}.")
        self.take("mark", "(")
        operands = []
        while not self.is_next(")"):
            operands.append(self.take("value"))
            if not self.is_next(")"):
                self.take("mark", ",")
        self.take("mark", ")")
        attributes = self.attributes() if self.is_next("{") else {}
        self.take("mark", ":")
        self.type()
        self.take("mark", "->")
        self.type()
        return Op(name, line, tuple(operands), tuple(results), attributes)

    def attributes(self) -> Attributes:
        found: Attributes = {}
        self.take("mark", "{")
        while not self.is_next("}"):
            name = self.take("word")
            found[name] = self.attribute() if self.is_next("=") else 1
            if not self.is_next("}"):
                self.take("mark", ",")
        self.take("mark", "}")
        return found

    def attribute(self) -> str | int:
        self.take("mark", "=")
        kind, text, line = self.next
        if kind == "string":
            return self.string()
        self.place += 1
        if kind == "word" and text in ("true", "false"):
            return int(text == "true")
        if kind != "integer":
            raise refused(line, f"{text} is no value", "write an integer, true or a string")
        if self.is_next(":"):
            self.take("mark", ":")
            self.take("word")
        return int(text)

    def string(self) -> str:
        """A string's bytes may be written as two hexadecimal digits."""
        inside = self.take("string")[1:-1]
        pieces = re.split(r"\\([0-9A-Fa-f]{2}|.)", inside)
        raw = b"".join(
            (bytes.fromhex(each) if len(each) == 2 else each.encode()) if n % 2 else each.encode()
            for n, each in enumerate(pieces)
        )
        return raw.decode(errors="replace")

    def type(self) -> None:
        if self.is_next("("):
            self.skip_group()
        else:
            self.take("word")

    def skip_group(self) -> None:
        """Takes what is between brackets."""
        opening = self.take("mark")
        if opening not in _CLOSING:
            raise refused(self.next[2], f"expected a bracket, found {opening}", "write one")
        while not self.is_next(_CLOSING[opening]):
            if self.next[0] == "end":
                raise refused(self.next[2], f"{opening} is not closed", "close it")
            if self.next[1] in _CLOSING and self.next[0] == "mark":
                self.skip_group()
            else:
                self.place += 1
        self.place += 1

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the Python functions of the graph dialect's ops.

Reads what `llvm-tblgen --dump-json` says of compiler/Graph/Ops.td; writes the definitions as data
(`_graph_definitions.py`) and a function for each op (`_graph_ops.py`) but those with a body, with
the op's description as docstring.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import textwrap
from pathlib import Path
from typing import Any

LICENCE = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
KINDS = {
    "I64Attr": "i64",
    "F64Attr": "f64",
    "BoolAttr": "bool",
    "StrAttr": "str",
    "DenseI64ArrayAttr": "i64s",
    "ElementsAttr": "elements",
    "FlatSymbolRefAttr": "symbol",
}
INFERRING = ("InferTypeOpAdaptor", "SameOperandsAndResultType", "AllTypesMatch")
RULE = re.compile(r"^\* (\w+_c\d+): (.*(?:\n  .*)*)", re.MULTILINE)


class Dialect:
    """The records of the definitions by name."""

    def __init__(self, records: dict[str, Any]) -> None:
        self.records = records

    def ops(self) -> list[dict[str, Any]]:
        names = self.records["!instanceof"]["Op"]
        ops = [self.records[name] for name in names if name.startswith("Weft_")]
        return sorted(ops, key=lambda op: op["opName"])

    def is_made_of_values(self, op: dict[str, Any]) -> bool:
        """Whether operands and attributes are all there is: no body, of its own or a function."""
        kinds = [attribute[1] for attribute in self.attributes(op)]
        ends = any(trait["def"] == "Terminator" for trait in op["traits"])
        return not (op["regions"]["args"] or "symbol" in kinds or ends)

    def is_a(self, record: str, *classes: str) -> bool:
        return any(each in self.records[record]["!superclasses"] for each in classes)

    def operands(self, op: dict[str, Any]) -> list[str]:
        """Names, with "?" or "*" behind those of optional and variadic ones."""
        found = []
        for record, name in self._arguments(op):
            if self.is_a(record, "TypeConstraint"):
                optional, variadic = self.is_a(record, "Optional"), self.is_a(record, "Variadic")
                found.append(name + ("?" if optional else "*" if variadic else ""))
        return found

    def attributes(self, op: dict[str, Any]) -> list[tuple[str, str, bool, tuple[str, ...]]]:
        """name, kind, optional, cases."""
        return [
            (name, *self._kind(record))
            for record, name in self._arguments(op)
            if self.is_a(record, "Attr")
        ]

    def _kind(self, record: str) -> tuple[str, bool, tuple[str, ...]]:
        if self.is_a(record, "OptionalAttr", "DefaultValuedAttr"):
            kind, _, cases = self._kind(self.records[record]["baseAttr"]["def"])
            return kind, True, cases
        if self.is_a(record, "EnumAttr"):
            info = self.records[self.records[record]["enum"]["def"]]
            cases = tuple(self.records[c["def"]]["symbol"] for c in info["enumerants"])
            return self.records[record]["mnemonic"], False, cases
        return KINDS[record], False, ()

    @staticmethod
    def _arguments(op: dict[str, Any]) -> list[tuple[str, str]]:
        return [(value["def"], name) for value, name in op["arguments"]["args"]]

    def order(self, op: dict[str, Any]) -> list[str]:
        return [name for _, name in self._arguments(op)]

    def infers(self, op: dict[str, Any]) -> bool:
        if not op["results"]["args"]:
            return True
        traits = [trait["def"] for trait in op["traits"]]
        names = {name for t in traits for name in (t, *self.records[t]["!superclasses"])}
        return any(name.startswith(INFERRING) for name in names)


def description(op: dict[str, Any]) -> str:
    return textwrap.dedent(op["description"]).strip()


def rules(op: dict[str, Any]) -> dict[str, str]:
    """The numbered constraints of an op."""
    return {name: " ".join(text.split()) for name, text in RULE.findall(description(op))}


def python_name(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def definitions(dialect: Dialect) -> str:
    lines = [
        LICENCE
        + '"""What compiler/Graph/Ops.td says of each op, made by tools/write-graph-ops.py."""\n',
        "from weft.dialect.definitions import Attribute, Definition\n",
        "DEFINITIONS = {",
    ]
    for op in dialect.ops():
        attributes = "".join(f"Attribute{each!r}, " for each in dialect.attributes(op))
        operands = tuple(dialect.operands(op))
        name = f"weft.{op['opName']}"
        lines.append(
            f"    {name!r}: Definition({name!r}, {op['summary']!r}, {operands!r}, "
            f"({attributes}), {rules(op)!r}, {dialect.infers(op)}),"
        )
    return "\n".join([*lines, "}", ""])


def function(dialect: Dialect, op: dict[str, Any]) -> str:
    """An op's function: operands and attributes in the order of the definition, those that may be
    left out behind the others."""
    name, operands = op["opName"], dialect.operands(op)
    marks = {each.rstrip("?*"): each[len(each.rstrip("?*")) :] for each in operands}
    attributes = dialect.attributes(op)
    optional = {each for each, mark in marks.items() if mark == "?"}
    optional |= {attribute[0] for attribute in attributes if attribute[2]}
    required = [each for each in dialect.order(op) if each not in optional]
    rest = [f"{python_name(e)}=None" for e in dialect.order(op) if e in optional]
    typed = [] if dialect.infers(op) else ["result_type"]
    inferred = [] if typed else ["*", "result_type=None"]
    parameters = ", ".join([*map(python_name, required), *typed, *rest, *inferred])
    groups = ", ".join(_group(python_name(each), mark) for each, mark in marks.items())
    values = ", ".join(python_name(attribute[0]) for attribute in attributes)
    summary = op["summary"]
    text = textwrap.indent(f"{summary}.\n\n{description(op)}", "    ")
    text = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return (
        f'def {python_name(name)}({parameters}):\n    r"""{text}\n    """\n'
        f"    return emit(DEFINITIONS['weft.{name}'], [{groups}], [{values}], result_type)\n"
    )


def _group(name: str, mark: str) -> str:
    if mark == "*":
        return name
    return f"[] if {name} is None else [{name}]" if mark == "?" else f"[{name}]"


def functions(dialect: Dialect) -> str:
    made = [op for op in dialect.ops() if dialect.is_made_of_values(op)]
    names = [python_name(op["opName"]) for op in made]
    head = [
        LICENCE
        + '"""The ops of the graph dialect as functions, made by tools/write-graph-ops.py."""\n',
        "from weft._graph_definitions import DEFINITIONS",
        "from weft.dialect.making import emit\n",
        f"__all__ = {names!r}\n\n",
    ]
    return "\n".join(head) + "\n\n".join(function(dialect, op) for op in made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, help="what llvm-tblgen --dump-json wrote")
    parser.add_argument("folder", type=Path, help="where the two modules go")
    options = parser.parse_args()
    dialect = Dialect(json.loads(options.records.read_text("utf-8")))
    (options.folder / "_graph_definitions.py").write_text(definitions(dialect), "utf-8")
    (options.folder / "_graph_ops.py").write_text(functions(dialect), "utf-8")


if __name__ == "__main__":
    main()

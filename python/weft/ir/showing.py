# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules for people: coloured, with large constants in a section of their own."""

from __future__ import annotations

import html as html_module
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.ir.module import Module

MOST_ELEMENTS_INLINE = 10

_ELIDED = re.compile(r"dense_resource<__elided__>")
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<string>\"[^\"\n]*\")|(?P<type>\b(?:tensor|memref|vector)<[^\n>]*>)"
    r"|(?P<op>\b(?:weft|func|linalg|scf|vector|memref|arith|math|tensor|llvm)\.\w+(?:\.\w+)*)"
    r"|(?P<value>%\w+(?:[:#]\d+)?)|(?P<symbol>@\w+)"
)
_COLOURS = {"comment": 90, "string": 32, "type": 36, "op": 1, "value": 33, "symbol": 35}
_CSS = {
    "comment": "color:#777",
    "string": "color:#0a7d33",
    "type": "color:#0b7285",
    "op": "font-weight:bold",
    "value": "color:#a15c00",
    "symbol": "color:#862e9c",
}


def readable(module: Module, constants: bool) -> str:
    """The module's text with constants of more than ten elements as `metadata[i]`, which a
    section at the end lists."""
    session = module._session
    text = session.print(session.module(), False, MOST_ELEMENTS_INLINE)
    count = 0

    def number(_: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"metadata[{count - 1}]"

    text = _ELIDED.sub(number, text).rstrip()
    if not count:
        return text
    values = [
        op.attributes["value"]
        for op in module.walk()
        if op.name == "constant" and op.attributes["value"].size > MOST_ELEMENTS_INLINE
    ]
    values = [value for value in values if value.size and value.min() != value.max()][:count]
    if not constants:
        return f"{text}\n// metadata: {count} constants left out; show(constants=True) has them"
    lines = [f"metadata[{i}] = {_value(value)}" for i, value in enumerate(values)]
    return "\n".join([text, *(f"// {line}" for part in lines for line in part.splitlines())])


def _value(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}\n{value}"


def show(module: Module, constants: bool, file: Any, costs: bool | str = False) -> None:
    stream = sys.stdout if file is None else file
    text = readable(module, constants)
    if costs:
        from weft.ir.margin import with_costs

        text = with_costs(module, text, measured=costs == "measured")
    if getattr(stream, "isatty", lambda: False)():
        text = _TOKEN.sub(lambda m: f"\033[{_COLOURS[m.lastgroup]}m{m[0]}\033[0m", text)
    print(text, file=stream)


def html(module: Module) -> str:
    """The module as HTML, for notebooks."""
    text, parts, end = readable(module, False), [], 0
    for match in _TOKEN.finditer(text):
        parts.append(html_module.escape(text[end : match.start()]))
        inside = html_module.escape(match[0])
        parts.append(f'<span style="{_CSS[match.lastgroup]}">{inside}</span>')
        end = match.end()
    parts.append(html_module.escape(text[end:]))
    return f"<pre>{''.join(parts)}</pre>"

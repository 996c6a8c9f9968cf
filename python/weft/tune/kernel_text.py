# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a compiled program, each as a module of its own that can be compiled alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from weft.artifacts import builds

_FUNCTION = re.compile(r'^  func\.func (?:private )?@("[^"]+"|[\w.$-]+)\((.*)$')
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
_CALL = re.compile(r"= call @(\"[^\"]+\"|[\w.$-]+)\(([^)]*)\)")
_ARGUMENT = re.compile(r'(%\w+): tensor<[^{]*> \{weft\.kind = "(\w+)"')
_DTYPES = {
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "f16": "float16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
}


@dataclass(frozen=True)
class KernelText:
    """A kernel of a program.

    name: in the program. digest: the same for equal kernels of any programs. module: MLIR of the
    stage `linalg`, with an entry that calls the kernel. kind: such as `contraction`. inputs,
    results: (shape, dtype) of each. calls: how often the program calls it. isa: the instruction set
    that it is compiled for. weights: the numbers of the inputs that come from memory at each call,
    because the model's weights are larger than the cache.
    """

    name: str
    digest: str
    module: str
    kind: str
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    results: tuple[tuple[tuple[int, ...], str], ...]
    calls: int
    isa: str
    weights: tuple[int, ...]


def kernels_of(graph: bytes, options: builds.Options) -> list[KernelText]:
    """The kernels that the main entry calls, in order. Leaves out kernels that cannot be compiled
    alone, because they refer to other symbols or have element types that tensors of a caller cannot
    have.

    Raises: errors.CompileError.
    """
    from weft import _compiler

    session = _compiler.Session.parse(builds.lower_to(graph, "linalg", options), "kernels")
    lines = session.print(session.module(), False, -1).splitlines()
    aliases = [line for line in lines if line.startswith("#")]
    functions = dict(_functions(lines))
    main = "\n".join(functions.get("main", []))
    kinds = dict(_ARGUMENT.findall(main))
    calls: dict[str, list[list[str]]] = {}
    for name, operands in _CALL.findall(main):
        calls.setdefault(name, []).append(operands.split(", "))
    cold = _bytes_read(main, functions, calls) > _last_cache()
    found = []
    for name, all_operands in calls.items():
        weights = tuple(
            number
            for number, operand in enumerate(all_operands[0])
            if cold and kinds.get(operand) in ("weight", "bound")
        )
        made = _alone(name, functions[name], aliases, options, len(all_operands), weights)
        if made is not None:
            found.append(made)
    return found


def _bytes_read(
    main: str, functions: dict[str, list[str]], calls: dict[str, list[list[str]]]
) -> int:
    """The bytes of the entry's arguments that contractions read. They decide whether weights come
    from memory at each call, as in the compiler (`ColdWeights.cpp`)."""
    read = {
        operand
        for name, all_operands in calls.items()
        if re.search(r'weft\.kernel = "(contraction|grouped_dot)"', functions[name][0])
        for operands in all_operands
        for operand in operands
    }
    types = dict(re.findall(r"(%arg\d+): (tensor<[^>]*>)", main))
    total = 0
    for operand in read & types.keys():
        sizes, element = _TENSOR.findall(types[operand])[0]
        width = int(re.sub(r"\D", "", element) or 64)
        total += prod(int(size) for size in sizes.split("x") if size) * width // 8
    return total


@lru_cache
def _last_cache() -> int:
    """The bytes of the last level of cache; the compiler's default where the system does not
    say."""
    for _, level, _, size, _ in builds.caches():
        if level == "3" and size.endswith("K"):
            return int(size[:-1]) << 10
    return 32 << 20


def _functions(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The name and the lines of each function."""
    start = None
    for number, line in enumerate(lines):
        if start is None and (match := _FUNCTION.match(line)):
            start, name = number, match[1]
            if not line.endswith("{"):  # a declaration without a body
                start = None
                yield name, [line]
        elif start is not None and line == "  }":
            yield name, lines[start : number + 1]
            start = None


def _alone(
    name: str,
    function: list[str],
    aliases: list[str],
    options: builds.Options,
    calls: int,
    weights: tuple[int, ...],
) -> KernelText | None:
    from weft import _compiler

    head = function[0]
    kind = re.search(r'weft\.kernel = "(\w+)"', head)
    signature = head[head.index("(") : head.index(" attributes")] if kind else ""
    body = "\n".join(function[1:])
    if not kind or "@" in body or len(function) == 1:
        return None
    arguments, _, returned = signature.rpartition(" -> ")
    inputs, results = specs_of(arguments), specs_of(returned)
    if inputs is None or results is None or not results:
        return None
    renamed = head.replace(f"@{name}(", "@kernel(", 1)
    if weights:
        renamed = renamed.replace(" attributes {", " attributes {weft.cold_weights, ", 1)
    text = "\n".join([*aliases, "module {", _entry(arguments, returned), renamed, body, "}"])
    session = _compiler.Session.parse(text, "kernel")
    module = session.print(session.module(), False, -1)
    digest = hashlib.blake2b(
        f"{options.isa} {weights}\n{module}".encode(), digest_size=16
    ).hexdigest()
    return KernelText(name, digest, module, kind[1], inputs, results, calls, options.isa, weights)


def specs_of(text: str) -> tuple[tuple[tuple[int, ...], str], ...] | None:
    """Shape and dtype of each tensor type in a text; None if one has an element type that tensors
    of a caller cannot have."""
    found = []
    for sizes, element in _TENSOR.findall(text):
        if element not in _DTYPES:
            return None
        found.append((tuple(int(size) for size in sizes.split("x") if size), _DTYPES[element]))
    return tuple(found) if len(found) == text.count("tensor<") else None


def _entry(arguments: str, returned: str) -> str:
    """A function that calls the kernel."""
    taken = [match[0] for match in _TENSOR.finditer(arguments)]
    given = [match[0] for match in _TENSOR.finditer(returned)]
    parameters = ", ".join(
        f'%a{n}: {kind} {{weft.kind = "input", weft.name = "a{n}", weft.type = {kind}}}'
        for n, kind in enumerate(taken)
    )
    declared = ", ".join(f"{kind} {{weft.type = {kind}}}" for kind in given)
    names = ", ".join(f"%a{n}" for n in range(len(taken)))
    types = ", ".join(given)
    values = ", ".join(f"%r#{n}" for n in range(len(given)))
    return "\n".join(
        [
            f"  func.func @main({parameters}) -> ({declared})",
            "      attributes {weft.entry = #weft.entry<main>} {",
            f"    %r:{len(given)} = call @kernel({names}) : ({', '.join(taken)}) -> ({types})",
            f"    return {values} : {types}",
            "  }",
        ]
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for modules of TorchScript and for files of torch.export: `weft.from_traced` and
`weft.from_pt2`."""

from __future__ import annotations

import inspect
import keyword
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch._export.converter import TS2EPConverter

from weft import errors
from weft.capture.given import Given, NotCaptured
from weft.compiled.api import from_exported_program, options_of
from weft.compiled.compiled import Compiled
from weft.compiled.imported import Imported

Entry = tuple[str, Sequence[int]] | tuple[str, tuple[Sequence[int], str | torch.dtype]]


def from_traced(
    traced: torch.jit.ScriptModule | torch.jit.ScriptFunction,
    inputs: Sequence[Entry],
    default_dtype: str | torch.dtype = "float32",
    *,
    fullgraph: bool = False,
    **options: Any,
) -> Imported:
    """A callable for the result of torch.jit.trace or torch.jit.script.

    traced: the module or function. The present values of its weights are used in each call, and its
    present mode (training or eval) stays.
    inputs: for each input in order, `(name, shape)` or `(name, (shape, dtype))`, with names of your
    choice. A call with other shapes or dtypes runs `traced` itself.
    default_dtype: for inputs without a dtype; a WeftWarning names each of these.
    fullgraph: as for `weft.compile`. options: the other options of `weft.compile`.
    The result's `.module` is `traced`, and `.params` has its parameters and then its buffers, in
    torch's order. Code that branches on values cannot be compiled: PyTorch runs it, and
    weft.report() says why.
    Raises: TypeError, if `traced` is neither; errors.ArgumentError, if there are more or fewer
    entries than inputs, or an invalid entry; errors.ConfigError, for unknown options;
    errors.NotCompiledError with `fullgraph`, if it cannot be compiled.
    """
    if not isinstance(traced, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise TypeError(f"expected a TorchScript module, found {type(traced).__qualname__}")
    graph = traced.graph
    expected = [each.debugName() for each in graph.inputs()]
    if isinstance(traced, torch.jit.ScriptModule):
        expected = expected[1:]  # without self
    if len(inputs) != len(expected):
        names = ", ".join(expected)
        raise errors.ArgumentError(
            f"expected an entry for each of {len(expected)} inputs ({names}), found {len(inputs)}"
        )
    examples = _examples(inputs, dtype_named(default_dtype))
    settings = {**options, "fullgraph": fullgraph}
    capture = _captured(traced, [entry[0] for entry in inputs], tuple(examples))
    if fullgraph and isinstance(capture, NotCaptured):
        raise errors.NotCompiledError(capture.reason)
    compiled = Compiled(traced, capture, options_of(**options), settings).callable()
    outputs = [f"output_{i}" for i in range(_outputs(graph))]
    return Imported(traced, compiled, [entry[0] for entry in inputs], outputs, _params(traced))


def dtype_named(dtype: str | torch.dtype) -> torch.dtype:
    """The dtype of this name. Raises: errors.ArgumentError, if there is none."""
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype):
        raise errors.ArgumentError(f"expected the name of a dtype of torch, found {dtype!r}")
    return found


def _examples(inputs: Sequence[Entry], default: torch.dtype) -> list[torch.Tensor]:
    made, names = [], []
    for entry in inputs:
        name, shape, dtype = _read(entry)
        if name in names:
            raise errors.ArgumentError(f"expected inputs of different names, found {name!r} twice")
        names.append(name)
        if dtype is None:
            text = f"input {name!r} has no dtype: {str(default).removeprefix('torch.')} is taken"
            warnings.warn(text, errors.WeftWarning, 3)
        made.append(torch.zeros(shape, dtype=default if dtype is None else dtype))
    return made


def _read(entry: Any) -> tuple[str, tuple[int, ...], torch.dtype | None]:
    refusal = errors.ArgumentError(
        f"expected an input as (name, shape) or (name, (shape, dtype)), found {entry!r}"
    )
    if not isinstance(entry, tuple | list) or len(entry) != 2 or not isinstance(entry[0], str):
        raise refusal
    name, shape = entry
    dtype = None
    if not isinstance(shape, tuple | list):
        raise refusal
    if len(shape) == 2 and isinstance(shape[0], tuple | list):
        shape, dtype = shape[0], dtype_named(shape[1])
    if not all(type(size) is int and size >= 0 for size in shape):
        raise refusal
    return name, tuple(shape), dtype


class _Called(torch.nn.Module):
    """The module that torch.export is given. names: of the inputs, for its messages."""

    def __init__(self, traced: Any, names: Sequence[str]) -> None:
        super().__init__()
        self.traced = traced

        def forward(*inputs: Any) -> Any:
            return traced(*inputs)

        if all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters = [inspect.Parameter(name, kind) for name in names]
            forward.__signature__ = inspect.Signature(parameters)
        self.forward = forward


# What a graph of torch.export cannot hold, or what would take effect while it is made.
_EFFECTS = {
    "prim::SetAttr": "it sets attributes of the module",
    "prim::Print": "it prints",
    "aten::warn": "it warns",
}


def _captured(
    traced: Any, names: Sequence[str], examples: tuple[torch.Tensor, ...]
) -> Given | NotCaptured:
    if isinstance(traced, torch.jit.ScriptModule) and _has_hooks(traced):
        return NotCaptured("it has hooks")
    nodes = traced.inlined_graph.findAllNodes if hasattr(traced, "inlined_graph") else None
    for kind, reason in _EFFECTS.items():
        if nodes is not None and nodes(kind, recurse=True):
            return NotCaptured(reason)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about details that are not the user's
            program = _exported(traced, names, examples)
    except Exception as error:  # torch.export may raise any error
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return NotCaptured(f"torch.export: {type(error).__name__}: {lines[0] if lines else ''}")
    return Given(program)


def _exported(
    traced: Any, names: Sequence[str], examples: tuple[torch.Tensor, ...]
) -> torch.export.ExportedProgram:
    """A module made by torch.jit.trace is called by torch.export, op by op. Within a scripted
    module torch.export would fail at the Python code, so that the module's graph is converted."""
    if isinstance(traced, torch.jit.ScriptFunction | torch.jit.TopLevelTracedModule):
        return torch.export.export(_Called(traced, names), examples, strict=False)
    converted = TS2EPConverter(traced, examples, {}).convert()  # for any sizes
    return torch.export.export(converted.module(), examples, strict=False)


def _has_hooks(traced: torch.jit.ScriptModule) -> bool:
    """Whether it has hooks, set or scripted, which a call of `forward` would leave out."""
    scripted = traced._c._get_forward_hooks() or traced._c._get_forward_pre_hooks()
    return bool(scripted or traced._forward_hooks or traced._forward_pre_hooks)


def _outputs(graph: Any) -> int:
    (found,) = graph.outputs()
    kind = found.type()
    return len(kind.elements()) if isinstance(kind, torch._C.TupleType) else 1


def _params(traced: Any) -> dict[str, torch.Tensor]:
    if not isinstance(traced, torch.jit.ScriptModule):
        return {}
    return {**dict(traced.named_parameters()), **dict(traced.named_buffers())}


def from_pt2(path: str | Path, **options: Any) -> Imported:
    """A callable for a file of torch.export.save; compare weft.from_exported_program.

    Inputs have the names that torch.export gave them; `.module` is the program's module.
    options: those of weft.from_exported_program.
    Raises: OSError; errors.ModelError, if the file does not hold an exported program;
    errors.ConfigError, for unknown options.
    """
    try:
        program = torch.export.load(path)
    except OSError:
        raise
    except Exception as error:  # PyTorch has no specific error for a file of another format
        line = str(error).strip().partition("\n")[0]
        raise errors.ModelError(f"{path} cannot be loaded: {line}") from error
    names, positional = _names(program)
    outputs = [f"output_{i}" for i in range(len(program.graph_signature.user_outputs))]

    def arguments(inputs: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        return inputs[:positional], dict(zip(names[positional:], inputs[positional:]))

    compiled = from_exported_program(program, **options)
    params = {**program.state_dict, **program.constants}
    return Imported(compiled.original, compiled, names, outputs, params, arguments)


def _names(program: torch.export.ExportedProgram) -> tuple[list[str], int]:
    """The names of a call's arguments, and how many of them are positional."""
    args, kwargs = program.call_spec.in_spec.children()
    leaves = list(program.graph_signature.user_inputs)
    names, at = [], 0
    for number, child in enumerate(args.children()):
        names.append(str(leaves[at]) if child.is_leaf() else f"arg{number}")
        at += child.num_leaves
    return [*names, *kwargs.context], len(names)

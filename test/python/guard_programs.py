# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs beside those of plain calls, for guarded memory: both halves of training, programs for a
range of sizes at each of its sizes, and kernels of tensor expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from guarded import Call, Graph, Program, graph_of, manifest_of, program_of

import weft
from weft import errors, te
from weft.artifacts import builds
from weft.compiled.api import _face
from weft.compiled.ranges import RangeProgram
from weft.compiled.training import options_of_half
from weft.gradients.derivative_program import read_arguments
from weft.gradients.saved import reads_of

# --- training ---


def trains(call: Call) -> bool:
    """Whether gradients go through it: it reads and gives floats, and no tensor is empty."""
    if any(not arg.numel() for arg in call.args):
        return False
    with torch.no_grad():
        results = call.function(*call.args)
    leaves = [results] if isinstance(results, torch.Tensor) else results
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return any(arg.is_floating_point() for arg in call.args) and any(
        each.is_floating_point() for each in tensors
    )


def halves_of(calls: Sequence[Call], isa: str) -> Iterator[tuple[Graph, Program, builds.Build]]:
    """The graph, the forward program and what the backward was built as. Of calls that have no
    derivative, or leave an op to PyTorch, each is tried alone, and left out if it is the one."""
    graph = graph_of(calls)
    wrt = [n for n, each in enumerate(graph.arguments) if each.is_floating_point()]
    given = [n for n, each in enumerate(graph.expected) if each.is_floating_point()]
    options = builds.Options(isa=isa, threads=2)
    try:
        forward, backward = (
            builds.build(graph.lowered.graph, options_of_half(options, role, wrt, given))
            for role in ("forward", "backward")
        )
        is_native = not any(manifest_of(each)["fallbacks"] for each in (forward, backward))
    except errors.CompileError as error:
        if "has no derivative" not in str(error):
            raise
        is_native = False
    if is_native:
        yield graph, program_of(forward, graph.arguments, labels=graph.labels), backward
    elif len(calls) > 1:
        for call in calls:
            yield from halves_of([call], isa)


def backward_of(graph: Graph, backward: builds.Build, results: Sequence[torch.Tensor]) -> Program:
    """The backward program, on what the forward gave for the graph's inputs and on cotangents of
    ones and twos."""
    count = len(graph.expected)
    cotangents = {
        n: each.abs().clamp(1, 2)
        for n, each in enumerate(results[:count])
        if each.is_floating_point()
    }
    reads = reads_of(manifest_of(backward))
    arguments = read_arguments(reads, count, graph.arguments, results, cotangents)
    return program_of(backward, arguments, labels=[f"gradients of {graph.labels}"])


# --- ranges of sizes ---


def varying(one: Call, other: Call) -> dict[str, dict[int, int]]:
    """The dims of each argument that differ between two calls, by its name in `ranged`."""
    found: dict[str, dict[int, int]] = {}
    for name, a, b in zip("xyz", one.args, other.args):
        differing = {d: m for d, (m, n) in enumerate(zip(a.shape, b.shape)) if m != n}
        if differing:
            found[name] = differing
    return found


def alike(one: Call, others: Iterable[Call]) -> Iterator[Call]:
    """Those of the others that differ from `one` in no more than sizes."""

    def form(call: Call):
        return call.label.rsplit(" of ", 1)[0], [(arg.dtype, arg.dim()) for arg in call.args]

    return (each for each in others if form(each) == form(one))


def ranged(calls: Sequence[Call]) -> list[RangeProgram]:
    """The programs that answer these calls, the first of which has the largest sizes, for all sizes
    from 2; none of calls that have programs for single sizes."""
    sizes = {
        name: {dim: weft.Range(2, most) for dim, most in dims.items()}
        for name, dims in varying(calls[0], calls[1]).items()
    }
    function = calls[0].function
    of_arity = {
        1: lambda x: function(x),
        2: lambda x, y: function(x, y),
        3: lambda x, y, z: function(x, y, z),
    }[len(calls[0].args)]
    compiled = weft.compile(of_arity, shapes=sizes, capture="export")
    for call in calls:
        compiled(*call.args)
    return _face(compiled).programs.range_programs()


def at_call(program: RangeProgram, call: Call) -> Program | None:
    """The program as it is run for a call; None if it is not for such calls."""
    padded = program.arguments(tuple(call.args), {})
    if padded is None:
        return None
    specialized = program.specialized
    slots = specialized.tensors_of(padded, {})
    sources = specialized.wiring.sources()
    arguments = [slots[each] if isinstance(each, int) else each for each in sources]
    return program_of(specialized.build, arguments, labels=[f"{call.label}, padded"])


# --- tensor expressions ---


def kernel_of(function: te.Function, inputs: Sequence[torch.Tensor]) -> Program:
    """inputs: of those arguments that the kernel reads, in order."""
    return program_of(function.build, inputs, labels=[f"{function.name}: {function.schedule}"])

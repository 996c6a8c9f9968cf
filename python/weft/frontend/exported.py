# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.export programs → graphs: functionalisation, inputs, the walk, outputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._functorch import predispatch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    TensorArgument,
)

from weft.frontend.aliases import Aliases
from weft.frontend.autocast import (
    bodies,
    refuse_recurrent,
    restore_lines,
    switches_autocast_on,
)
from weft.frontend.builder import Builder
from weft.frontend.dtypes import NAMES
from weft.frontend.fakes import fakes_completed
from weft.frontend.functionalisation import refuse_unfaithful
from weft.frontend.graph import Graph, Value
from weft.frontend.inplace import mutates_beyond
from weft.frontend.lowered import InputSource, Lowered, OutputTarget, Unsupported, ViewOf
from weft.frontend.masked import Masked
from weft.frontend.pairs import REAL_OF, Pair, join, shown_real, split
from weft.frontend.strides import order_of
from weft.frontend.walk import Walk

_INSTANCE_NORM = torch.ops.aten.instance_norm.default
_LIFTS = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
_GRAPH_KINDS = {
    "user": "input",
    "parameter": "weight",
    "buffer": "buffer",
    "constant": "constant",
}
_MUTATIONS = {
    OutputKind.BUFFER_MUTATION: "buffer",
    OutputKind.USER_INPUT_MUTATION: "input",
    OutputKind.PARAMETER_MUTATION: "buffer",
}
# Literals in the user's source up to this size become constants of the graph.
_MAX_LITERAL = 16


def lower(
    program: ExportedProgram,
    name_of: Callable[[InputSource], str | None] = lambda source: None,
    training: bool = False,
) -> Lowered:
    """The graph of an exported program, and how to feed and read it.

    Deterministic, without MLIR; the program is left as it is. name_of: the name of an input
    in the graph, None for the program's own. training: the graph is to be differentiated.

    Raises: Unsupported, if the program cannot become a graph: symbolic or data-dependent
    sizes, element types outside the dialect at its border, tensors that are not on the CPU.
    """
    functional = _functionalised(program)
    inputs = _inputs(functional)
    graph = Graph(training)
    walk = Walk(graph)
    sources: dict[int, InputSource] = {}
    env: dict[torch.fx.Node, Any] = {}
    for node, source in inputs:
        first = len(graph.inputs)
        env[node] = _feed(walk, node, source, name_of)
        sources.update((id(entry.value), source) for entry in graph.inputs[first:])
    values = walk.run(functional.graph, env)
    views = _views(program, _inputs(program))
    outputs = _outputs(functional, walk.builder, values, views)
    graph.prune()
    if not graph.nodes and all(target.kind == "constant" for target in outputs):
        # Nothing to gain; and what is no tensor may be of another type in tracing, as torch.Size.
        raise Unsupported("it computes no tensor")
    return Lowered(
        graph=graph.to_json(),
        inputs=tuple(sources[id(entry.value)] for entry in graph.inputs),
        outputs=tuple(outputs),
        fallbacks=tuple(walk.fallbacks),
        result_dtypes=tuple(output.value.dtype for output in graph.outputs),
    )


@dataclass(frozen=True)
class AllValues:
    """A program whose results are those of all its ops. inputs: each graph input's placeholder and
    source. ops: the calls in the order of the results."""

    graph: bytes
    inputs: tuple[tuple[torch.fx.Node, InputSource], ...]
    ops: tuple[torch.fx.Node, ...]


def lower_all_values(program: ExportedProgram) -> AllValues:
    """To find out which op of a program computes what it should not.

    Raises: Unsupported, as `lower` does.
    """
    functional = _functionalised(program)
    graph = Graph()
    walk = Walk(graph)
    env: dict[torch.fx.Node, Any] = {}
    fed = {}
    for node, source in _inputs(functional):
        first = len(graph.inputs)
        env[node] = _feed(walk, node, source, lambda source: None)
        fed.update((id(entry.value), (node, source)) for entry in graph.inputs[first:])
    walk.run(functional.graph, env)
    ops = []
    for node, value in env.items():
        if node.op == "call_function" and isinstance(value, Value):
            graph.add_output(value)
            ops.append(node)
    graph.prune()
    inputs = tuple(fed[id(entry.value)] for entry in graph.inputs)
    return AllValues(graph.to_json(), inputs, tuple(ops))


def _functionalised(program: ExportedProgram) -> ExportedProgram:
    """The program without mutation but what `out_of_place` undoes; composites stay whole,
    since nothing is decomposed. Autocast's conversions become ops, which export leaves out,
    whether it is on around the call or in a region of the program; so does what a vmap maps."""
    autocast = torch.is_autocast_enabled("cpu") or switches_autocast_on(program.graph_module)
    if not (autocast or _has_vmaps(program.graph_module) or mutates_beyond(program.graph)):
        return program
    refuse_unfaithful(program)
    if autocast:
        refuse_recurrent(program.graph_module)
    # Written as a batch norm, it tells of the running statistics that it changes.
    decompositions = torch.export.default_decompositions()
    with warnings.catch_warnings(), fakes_completed():
        warnings.simplefilter("ignore")
        try:
            made = program.run_decompositions({_INSTANCE_NORM: decompositions[_INSTANCE_NORM]})
        except Exception as error:
            # For example for one tensor passed twice and written.
            why = str(error).partition("\n")[0]
            raise Unsupported(f"torch cannot functionalise it: {why}") from error
    restore_lines(made.graph, program.graph_module)
    return made


def _has_vmaps(module: torch.fx.GraphModule) -> bool:
    """Export writes down the entering and leaving of a vmap, and between them ops as they were
    called, on tensors without a batch dim. Regions have bodies of their own."""
    nodes = (node for body in bodies(module) for node in body.graph.nodes)
    functions = (node.target for node in nodes if node.op == "call_function")
    return any(getattr(f, "__module__", None) == predispatch.__name__ for f in functions)


_Inputs = list[tuple[torch.fx.Node, InputSource | None]]


def _inputs(program: ExportedProgram) -> _Inputs:
    """The placeholders and their sources, None for arguments that are no tensors."""
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    specs = program.graph_signature.input_specs
    users = iter(range(len(specs)))
    return [(node, _source(program, node, spec, users)) for node, spec in zip(placeholders, specs)]


def _source(program, node: torch.fx.Node, spec: InputSpec, users) -> InputSource | None:
    index = next(users) if spec.kind == InputKind.USER_INPUT else None
    if isinstance(spec.arg, ConstantArgument):
        return None
    if not isinstance(spec.arg, TensorArgument):
        raise Unsupported(f"input {spec.arg.name} is a symbolic number or an opaque object")
    dense = order_of(shown_real(node.meta["val"])) is not None
    match spec.kind:
        case InputKind.USER_INPUT:
            return InputSource("user", index=index, dense=dense)
        case InputKind.PARAMETER:
            return InputSource("parameter", name=spec.target, dense=dense)
        case InputKind.BUFFER:
            return InputSource("buffer", name=spec.target, dense=dense)
        case InputKind.CONSTANT_TENSOR:
            tensor = program.constants[spec.target]
            return InputSource("constant", name=spec.target, tensor=tensor, dense=dense)
    raise Unsupported(f"an input of kind {spec.kind.name.lower()}")


def _feed(
    walk: Walk,
    node: torch.fx.Node,
    source: InputSource | None,
    name_of: Callable[[InputSource], str | None],
) -> Value | Pair | Any:
    """The value of a placeholder: a graph input, a constant of the graph, or a number."""
    if source is None:
        return node.meta["val"]
    value = node.meta["val"]
    if node.users and value.dtype not in NAMES and value.dtype not in REAL_OF:
        raise Unsupported(f"input {node.name} is of {value.dtype}")
    if value.device.type != "cpu":
        raise Unsupported(f"input {node.name} is on {value.device}")
    if any(isinstance(size, torch.SymInt) for size in value.shape):
        raise Unsupported(f"input {node.name} has a symbolic size")
    # A tensor that lives on outside may be written; a literal is copied where it stands.
    literal = source.kind == "constant" and all(user.target in _LIFTS for user in node.users)
    if literal and value.dtype in NAMES and value.numel() <= _MAX_LITERAL and value.numel():
        return walk.builder.dense(source.tensor)
    shown = shown_real(value)
    entry = Value(shown.dtype, tuple(shown.shape))
    order = order_of(shown) or range(shown.dim())
    name = name_of(source) or source.name or node.name
    walk.graph.add_input(name, _GRAPH_KINDS[source.kind], order, entry)
    return entry if shown is value else split(walk.builder, entry)


def _views(program: ExportedProgram, inputs: _Inputs) -> list[ViewOf | None]:
    """For each leaf of the returned pytree the view that it is."""
    sources = {
        node: source
        for node, source in inputs
        if source is not None and isinstance(node.meta.get("val"), torch.Tensor)
    }
    by_name = {node.name: node for node in program.graph.nodes}
    signature = program.graph_signature
    by_target = {
        spec.target or spec.arg.name: by_name[spec.arg.name]
        for spec in signature.input_specs
        if isinstance(spec.arg, TensorArgument)
    }
    mutated = {
        by_name[spec.arg.name]: by_target[spec.target]
        for spec in signature.output_specs
        if spec.kind in _MUTATIONS
    }
    leaves = [
        by_name[spec.arg.name] if isinstance(spec.arg, TensorArgument) else None
        for spec in signature.output_specs
        if spec.kind == OutputKind.USER_OUTPUT
    ]
    return Aliases(program.graph, sources, mutated).views(leaves)


def _outputs(
    program: ExportedProgram,
    builder: Builder,
    values: Sequence[Any],
    views: Sequence[ViewOf | None],
) -> list[OutputTarget]:
    specs = program.graph_signature.output_specs
    users = {
        spec.arg.name: number
        for number, spec in enumerate(
            s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT
        )
    }
    first_leaf = sum(spec.kind != OutputKind.USER_OUTPUT for spec in specs)
    nodes = {node.name: node for node in program.graph.nodes}
    results: dict[tuple[int, str], int] = {}

    def result(value: Value, name: str = "") -> int:
        """name: of the tensor that the user gets, with the strides of eager mode where these are
        dense; equal values of two names are two tensors."""
        if (id(value), name) not in results:
            order = order_of(shown_real(nodes[name].meta["val"])) if name else None
            results[id(value), name] = builder.graph.add_output(value, order)
        return results[id(value), name]

    targets, leaf = [], 0
    for spec, value in zip(specs, values, strict=True):
        if spec.kind in _MUTATIONS:
            if isinstance(value, Pair):
                raise Unsupported("complex numbers are written in place")
            kind = _MUTATIONS[spec.kind]
            where = {"index": users[spec.target]} if kind == "input" else {"name": spec.target}
            targets.append(OutputTarget(kind, result=result(value), **where))
            continue
        if spec.kind != OutputKind.USER_OUTPUT:
            raise Unsupported(f"an output of kind {spec.kind.name.lower()}")
        view = views[leaf]
        if view is not None:
            if isinstance(view.base, int):
                view = _rebased(view, view.base + first_leaf)
            targets.append(OutputTarget("user", index=leaf, view=view))
        elif isinstance(value, Masked):
            raise Unsupported("the number of elements that a mask chooses is only known by a run")
        elif isinstance(value, Pair):
            number = result(join(builder, value), spec.arg.name)
            targets.append(OutputTarget("user", index=leaf, result=number, is_complex=True))
        elif isinstance(value, Value):
            targets.append(OutputTarget("user", index=leaf, result=result(value, spec.arg.name)))
        else:
            targets.append(OutputTarget("constant", index=leaf, value=value))
        leaf += 1
    return targets


def _rebased(view: ViewOf, base: int) -> ViewOf:
    return ViewOf(base, view.identity, view.sizes, view.strides, view.offset, view.dtype)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.export programs → graphs: functionalisation, inputs, the walk, outputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._functorch import predispatch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    TensorArgument,
)

from weft.frontend.autocast import (
    bodies,
    mark_constants,
    refuse_recurrent,
    restore_lines,
    switches_autocast_on,
)
from weft.frontend.dtypes import NAMES
from weft.frontend.exported_outputs import outputs_of, views_of
from weft.frontend.fakes import fakes_completed
from weft.frontend.functionalisation import refuse_unfaithful, refuse_written_constants
from weft.frontend.graph import Graph, Input, Value
from weft.frontend.inplace import detaches_new_copy, mutates_beyond
from weft.frontend.kept_histories import keep_histories
from weft.frontend.lowered import (
    AutogradReach,
    Fallback,
    InputSource,
    Lowered,
    OutputTarget,
    Unsupported,
)
from weft.frontend.numbers import FLOATS, INTS, MOST_READ, Numbers
from weft.frontend.pairs import REAL_OF, Pair, shown_real, split
from weft.frontend.retracing import made_functional
from weft.frontend.strides import order_of
from weft.frontend.unseen_writes import (
    refuse_repeated_effects,
    refuse_unseen_writes,
    steps_of_versions,
)
from weft.frontend.walk import Walk

_LIFTS = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
_GRAPH_KINDS = {
    "user": "input",
    "parameter": "weight",
    "buffer": "buffer",
    "constant": "constant",
}
# Literals in the user's source up to this size become constants of the graph.
_MAX_LITERAL = 16


def lower(
    program: ExportedProgram,
    name_of: Callable[[InputSource], str | None] = lambda source: None,
    training: bool = False,
    rng: str = "torch",
    reach: AutogradReach | None = None,
    numbers: Numbers | None = None,
) -> Lowered:
    """The graph of an exported program, and how to feed and read it.

    Deterministic, without MLIR; the program is left as it is. name_of: the name of an input
    in the graph, None for the program's own. training: the graph is to be differentiated.
    rng: who draws for dropout, "torch" or "philox". reach: what autograd leads to is an input,
    though nothing may read it.
    numbers: of the call, which the program takes: behind all leaves of the arguments as a tensor of
    those that it reads.

    Raises: Unsupported, if the program cannot become a graph: symbolic or data-dependent
    sizes, element types outside the dialect at its border, tensors that are not on the CPU.
    """
    return draft(program, name_of, Graph(training, rng=rng), reach, numbers).finish()


@dataclass
class Draft:
    """What `lower` makes, while its graph can still be changed. sources: of the graph's inputs, by
    the identity of their values. reached: by leaf of the value, the inputs that autograd leads
    to."""

    graph: Graph
    sources: dict[int, InputSource]
    outputs: list[OutputTarget]
    fallbacks: tuple[Fallback, ...]
    reached: dict[int, list[Value]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sources": [self.sources[id(x.value)] for x in self.graph.inputs]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        values = (id(each.value) for each in self.graph.inputs)
        self.sources = dict(zip(values, state["sources"], strict=True))

    def finish(self) -> Lowered:
        graph = self.graph
        numbers = {id(entry.value): number for number, entry in enumerate(graph.inputs)}
        return Lowered(
            graph=graph.to_json(),
            inputs=tuple(self.sources[id(entry.value)] for entry in graph.inputs),
            outputs=tuple(self.outputs),
            fallbacks=self.fallbacks,
            result_dtypes=tuple(output.value.dtype for output in graph.outputs),
            reached={
                leaf: tuple(numbers[id(value)] for value in values)
                for leaf, values in self.reached.items()
            },
            copied=tuple({numbers[id(each)] for each in graph.copied if id(each) in numbers}),
        )


def draft(
    program: ExportedProgram,
    name_of: Callable[[InputSource], str | None],
    graph: Graph,
    reach: AutogradReach | None = None,
    numbers: Numbers | None = None,
) -> Draft:
    """`lower` into an empty graph. Raises: Unsupported."""
    if graph.training:
        keep_histories(program)
        refuse_unseen_writes(program)
        refuse_repeated_effects(program)
    functional = _functionalised(program)
    steps = steps_of_versions(program) if functional is not program else {}
    inputs = _inputs(functional)
    walk = Walk(graph)
    sources: dict[int, InputSource] = {}
    env: dict[torch.fx.Node, Any] = {}
    if numbers is not None:
        graph.numbers = Value(torch.float64, (MOST_READ,))
    for node, source in inputs:
        if numbers is not None and source is not None and source.name in (FLOATS, INTS):
            env[node] = numbers
            continue
        first = len(graph.inputs)
        env[node] = _feed(walk, node, source, name_of)
        sources.update((id(entry.value), source) for entry in graph.inputs[first:])
    if graph.numbers is not None:
        specs = functional.graph_signature.input_specs
        leaves = sum(spec.kind == InputKind.USER_INPUT for spec in specs)
        graph.add_input("numbers", "input", (0,), graph.numbers)
        sources[id(graph.numbers)] = InputSource("user", index=leaves)
    values = walk.run(functional.graph, env)
    views, bases = views_of(program, _inputs(program))
    if bases and functional is not program:
        raise Unsupported("results share elements of a tensor that is none")
    shown = [(node, env.get(node)) for node in bases]
    outputs = outputs_of(functional, walk.builder, values, views, shown, steps)
    if numbers is not None and graph.numbers is not None:
        graph.numbers.shape = (len(numbers.reads),)
    every = list(graph.inputs)
    graph.prune()
    reached = {}
    if reach is not None:
        computed = [t.index for t in outputs if t.kind == "user" and t.result is not None]
        reached = _keep_reached(graph, every, sources, reach, computed)
    only_numbers = not graph.nodes and all(target.kind == "constant" for target in outputs)
    if only_numbers and _has_tuples(program.call_spec.out_spec):
        # A torch.Size may be a tuple in tracing.
        raise Unsupported("it computes no tensor")
    return Draft(graph, sources, outputs, tuple(walk.fallbacks), reached)


def _keep_reached(
    graph: Graph,
    every: Sequence[Input],
    sources: dict[int, InputSource],
    reach: AutogradReach,
    leaves: Sequence[int],
) -> dict[int, list[Value]]:
    """Gives the graph back those of `every` input that autograd leads to from `leaves`, and for
    which no other input stands, and tells which are reached."""
    reached: dict[int, list[Value]] = {}
    read = set(map(id, graph.inputs))
    places = [reach.place(sources[id(entry.value)]) for entry in every]
    known = {place for entry, place in zip(every, places, strict=True) if id(entry) in read}
    graph.inputs = []
    for entry, place in zip(every, places, strict=True):
        leading = [leaf for leaf in leaves if place in reach.reached[leaf]]
        if id(entry) not in read and (place in known or not leading):
            continue
        known.add(place)
        graph.inputs.append(entry)
        for leaf in leading:
            reached.setdefault(leaf, []).append(entry.value)
    return reached


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


def _has_tuples(structure: pytree.TreeSpec) -> bool:
    kind = structure.type
    is_tuple = isinstance(kind, type) and issubclass(kind, tuple)
    return is_tuple or any(map(_has_tuples, structure.children()))


def _leave_out_detached_copies(graph: torch.fx.Graph) -> None:
    """`torch.tensor(...)` detaches in place the copy that it has just made of what is written
    there, the one write of many a program. Nothing else knows the copy, and it has no history."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.detach_.default):
        is_known = any(user.op == "output" for user in node.users)
        if detaches_new_copy(node) and not is_known:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _functionalised(program: ExportedProgram) -> ExportedProgram:
    """The program without mutation but what `out_of_place` undoes; composites stay whole,
    since nothing is decomposed. Autocast's conversions become ops, which export leaves out,
    whether it is on around the call or in a region of the program; so does what a vmap maps."""
    _leave_out_detached_copies(program.graph)
    refuse_written_constants(program)
    autocast = torch.is_autocast_enabled("cpu") or switches_autocast_on(program.graph_module)
    vmaps = _has_vmaps(program.graph_module)
    if not (autocast or vmaps or mutates_beyond(program.graph)):
        return program
    refuse_unfaithful(program)
    if autocast:
        refuse_recurrent(program.graph_module)
    with warnings.catch_warnings(), fakes_completed():
        warnings.simplefilter("ignore")
        try:
            made = made_functional(program, meets_others=autocast or vmaps)
        except Exception as error:
            # For example for one tensor passed twice and written.
            why = str(error).partition("\n")[0]
            raise Unsupported(f"torch cannot functionalise it: {why}") from error
    mark_constants(made.graph, program.graph_module)
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

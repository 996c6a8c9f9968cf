# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls → compiled programs, several of them as one artifact.

A call is traced as torch.export traces it, but straight from the op: without its checks of modules,
state and guards, which take ten times as long. From there on it goes the way of every program:
`frontend.lower`, the compiler, `Specialization`. Graphs are joined between frontend and compiler,
so that what one call cannot do says nothing of the others.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._export import utils
from torch._export.verifier import TrainingIRVerifier
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from opinfo.calls import Call
from weft import frontend
from weft.artifacts.builds import Options
from weft.capture.exported_facts import digest_of, strides_of
from weft.capture.outputs import Structure
from weft.capture.signature import Declined, describe
from weft.capture.tracing import Captured
from weft.compiled.specialize import Specialized, specialize
from weft.frontend.fakes import fakes_completed
from weft.frontend.interpreter import result_counts

# torch.export lists these ops anew for every program that writes to its arguments, in 0.2 s, since
# more may be registered; none are here.
utils._collect_all_valid_cia_ops_for_namespace = functools.cache(
    utils._collect_all_valid_cia_ops_for_namespace
)


class RunsEagerly(Exception):
    """PyTorch runs the call; the message says why."""


@dataclass
class Traced:
    """A call's program ahead of the compiler. random: whether it draws random numbers."""

    call: Call
    lowered: frontend.Lowered
    structure: Structure
    strides: tuple[tuple[int, ...] | None, ...]
    digest: str
    random: bool

    @property
    def size(self) -> int:
        return self.lowered.graph.count(b'"op":')


def traced(call: Call) -> Traced:
    """Raises: RunsEagerly."""
    try:
        describe(tuple(call.tensors), {})
        program = _exported(call)
        lowered = frontend.lower(program)
    except Declined as why:
        raise RunsEagerly(why.reason) from None
    except frontend.Unsupported as why:
        raise RunsEagerly(why.reason) from None
    random = any(
        torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        for node in program.graph.nodes
    )
    structure = Structure.of(program.call_spec.out_spec)
    return Traced(call, lowered, structure, strides_of(program), digest_of(program), random)


def _exported(call: Call) -> ExportedProgram:
    spec: list[pytree.TreeSpec] = []

    def function(*tensors: torch.Tensor) -> list[Any]:
        leaves, made = pytree.tree_flatten(call.on(tensors))
        spec.append(made)
        return leaves

    mode = FakeTensorMode(allow_non_fake_inputs=True, export=True, shape_env=ShapeEnv())
    with fakes_completed(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fakes = [mode.from_tensor(each, static_shapes=True) for each in call.tensors]
            with mode:
                module = make_fx(function, pre_dispatch=True)(*fakes)
        except Exception as error:  # tracing runs PyTorch's Python on tensors without values
            raise RunsEagerly(f"tracing: {_first_line(error)}") from None
        return _program_of(module, spec[-1])


def _program_of(module: torch.fx.GraphModule, out_spec: pytree.TreeSpec) -> ExportedProgram:
    placeholders = module.graph.find_nodes(op="placeholder")
    constants = _lifted_constants(module, placeholders)
    (output,) = module.graph.find_nodes(op="output")
    for leaf in output.args[0]:
        if isinstance(leaf, torch.fx.Node) and not isinstance(leaf.meta.get("val"), torch.Tensor):
            raise RunsEagerly("a result depends on values, and is no tensor")
    inputs = [
        *(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name), name) for name in constants),
        *(InputSpec(InputKind.USER_INPUT, TensorArgument(n.name), None) for n in placeholders),
    ]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, _argument(x), None) for x in output.args[0]]
    in_spec = pytree.tree_flatten((tuple(placeholders), {}))[1]
    try:
        return ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=ExportGraphSignature(inputs, outputs),
            state_dict={},
            range_constraints={},
            module_call_graph=[ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec))],
            constants=constants,
            verifiers=[TrainingIRVerifier],
        )
    except Exception as error:  # torch.export's verifier: what it refuses is not captured
        raise RunsEagerly(f"no exported program: {_first_line(error)}") from None


def _lifted_constants(
    module: torch.fx.GraphModule, placeholders: Sequence[torch.fx.Node]
) -> dict[str, torch.Tensor]:
    """Tensors that the op itself makes from numbers, made inputs of the graph ahead of the others,
    as torch.export does, by name."""
    constants: dict[str, torch.Tensor] = {}
    first = next(iter(module.graph.nodes))
    for node in module.graph.find_nodes(op="get_attr"):
        value = getattr(module, node.target)
        if not isinstance(value, torch.Tensor):
            continue
        with module.graph.inserting_before(first):
            given = module.graph.placeholder(f"c_{len(constants)}")
        given.meta["val"] = node.meta.get("val", value)
        constants[given.name] = value
        node.replace_all_uses_with(given)
        module.graph.erase_node(node)
    module.recompile()
    return constants


def _argument(leaf: Any) -> TensorArgument | ConstantArgument:
    if isinstance(leaf, torch.fx.Node):
        return TensorArgument(leaf.name)
    return ConstantArgument("", leaf)


def compiled(programs: Sequence[Traced]) -> Specialized:
    """One artifact that takes the tensors of all calls, and gives a tuple of their results.

    Raises: errors.CompileError.
    """
    captured = Captured(
        lowered=_joined([each.lowered for each in programs], _leaf_counts(programs)),
        resolve=lambda name: None,
        structure=Structure(tuple, None, tuple(each.structure for each in programs)),
        strides=tuple(strides for each in programs for strides in each.strides),
        digest=" ".join(each.digest for each in programs),
        lower_seconds=0.0,
    )
    tensors = tuple(tensor for each in programs for tensor in each.call.tensors)
    return specialize(captured, describe(tensors, {}), Options(threads=1))


def _leaf_counts(programs: Sequence[Traced]) -> list[tuple[int, int]]:
    return [(len(each.call.tensors), len(each.strides)) for each in programs]


def _joined(parts: Sequence[frontend.Lowered], counts: list[tuple[int, int]]) -> frontend.Lowered:
    """counts: of each part's arguments and result leaves."""
    graph = _joined_graphs([part.graph for part in parts])
    inputs: list[frontend.InputSource] = []
    outputs: list[frontend.OutputTarget] = []
    fallbacks: list[frontend.Fallback] = []
    arguments = leaves = results = 0
    for part, (given, made) in zip(parts, counts, strict=True):
        inputs += [_moved_source(source, arguments) for source in part.inputs]
        first = len(outputs)
        outputs += [_moved_target(t, arguments, leaves, results, first) for t in part.outputs]
        fallbacks += part.fallbacks
        arguments, leaves = arguments + given, leaves + made
        results += len(json.loads(part.graph)["outputs"])
    return frontend.Lowered(graph, tuple(inputs), tuple(outputs), tuple(fallbacks))


def _moved_source(source: frontend.InputSource, arguments: int) -> frontend.InputSource:
    return source if source.index is None else replace(source, index=source.index + arguments)


def _moved_target(
    target: frontend.OutputTarget, arguments: int, leaves: int, results: int, first: int
) -> frontend.OutputTarget:
    moved = target
    if target.index is not None:
        by = arguments if target.kind == "input" else leaves
        moved = replace(target, index=target.index + by)
    if target.result is not None:
        moved = replace(moved, result=target.result + results)
    if target.chosen is not None:
        moved = replace(moved, chosen=replace(target.chosen, count=target.chosen.count + results))
    if target.view is not None:
        base = target.view.base
        base = base + first if isinstance(base, int) else _moved_source(base, arguments)
        moved = replace(moved, view=replace(target.view, base=base))
    return moved


def _joined_graphs(graphs: Sequence[bytes]) -> bytes:
    """All inputs of a graph are numbered ahead of its values."""
    documents = [json.loads(graph) for graph in graphs]
    inputs, nodes, outputs = [], [], []
    from_input = 0
    from_value = sum(len(document["inputs"]) for document in documents)
    for number, document in enumerate(documents):
        given = len(document["inputs"])

        def moved(
            value: int, given: int = given, inputs_at: int = from_input, at: int = from_value
        ) -> int:
            return value + inputs_at if value < given else value - given + at

        for entry in document["inputs"]:
            inputs.append({**entry, "name": f"{entry['name']}_{number}"})
        counts = result_counts(document)
        for node in document["nodes"]:
            nodes.append({**node, "in": [moved(value) for value in node["in"]]})
        for entry in document["outputs"]:
            outputs.append({**entry, "value": moved(entry["value"])})
        from_input += given
        from_value += sum(counts)
    document = {**documents[0], "inputs": inputs, "nodes": nodes, "outputs": outputs}
    document["locs"] = {"lines": [], "nodes": [None] * len(nodes)}
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__

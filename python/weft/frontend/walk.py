# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks an FX graph of ATen ops and emits weft ops through the table.

The same walk serves the program itself, the regions that higher-order ops hold, and the core
decomposition of a single op.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend import (  # noqa: F401  (they fill the tables)
    masked_elements,
    masked_packed,
    masked_places,
    masked_sums,
    masked_unique,
    ops,
    pair_arithmetic,  # noqa: F401  (it fills the table)
)
from weft.frontend.asking import ask
from weft.frontend.autocast import CONSTANT
from weft.frontend.builder import Builder
from weft.frontend.copied_results import with_own_value
from weft.frontend.decompose import decompose
from weft.frontend.dtypes import NAMES
from weft.frontend.fallback import (
    Joined,
    encode_arguments,
    flatten_results,
    operand_number,
    without_values,
)
from weft.frontend.graph import EFFECTS, Graph, Node, Value
from weft.frontend.inplace import changes_arguments, out_of_place
from weft.frontend.layouts import with_strides
from weft.frontend.locations import location_of
from weft.frontend.lowered import Decline, Fallback, Refused, Unsupported
from weft.frontend.masked import Masked, gives_masked, lower_masked
from weft.frontend.numbers import NUMBER, Number, Numbers, plain
from weft.frontend.pairs import REAL_OF, Pair, join, lower_pairs, split
from weft.frontend.strides import storage_of
from weft.frontend.table import CHECKS, TABLE, Site
from weft.frontend.unrecorded import without_gradient

# Checks of what is static here.
_STATIC_CHECKS = frozenset(
    f"aten.{name}.default"
    for name in (
        "_assert_tensor_metadata",
        "_assert_scalar",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
    )
)
# How the trace reads a number that the program takes.
_READS_NUMBER = (
    torch.ops.aten.select.int,
    torch.ops.aten.item.default,
    torch.ops.aten._local_scalar_dense.default,
)
_RUN_TIME_CHECKS = (torch.ops.aten._assert_async.default, torch.ops.aten._assert_async.msg)
# In the custom part of a node's meta: it is called within a region of torch.utils.checkpoint.
CHECKPOINTED = "weft.checkpointed"
# The same, in one that does not keep the generator's state for the time that it runs again.
DRAWS_ANEW = "weft.draws_anew"
# A decomposition of a decomposition of ... : deeper than this is a loop.
_MAX_DEPTH = 8
# PyTorch's own kernel is better than a longer decomposition.
_MAX_DECOMPOSITION = 4000
# In the place of a gradient that an op like convolution_backward is told not to give.
_NOT_ASKED_FOR = torch.empty(0)


class Walk:
    """Lowers graphs into one weft graph. `fallbacks` names what PyTorch will run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = Builder(graph)
        self.fallbacks = self.builder.fallbacks
        self._decompositions: dict[tuple, torch.fx.Graph | Decline] = {}
        self._inputs: set[int] = set()  # their storages

    def run(self, graph: torch.fx.Graph, env: dict[torch.fx.Node, Any], depth: int = 0) -> Any:
        """Emits every live node; `env` holds the placeholders' values. The output's values.

        At depth 0 an op without a lowering becomes a fallback; deeper it raises Decline, and
        the op that was being decomposed becomes one. At depth 0 dead nodes are checked, too.
        """
        live = live_nodes(graph)
        if depth == 0:
            shown = (node.meta.get("val") for node in graph.find_nodes(op="placeholder"))
            self._inputs |= {
                storage_of(value) for value in shown if isinstance(value, torch.Tensor)
            }
        for node in graph.nodes:
            if node.op == "output":
                return self._arguments(node.args[0], env)
            if node.op == "placeholder" or (depth and node not in live):
                continue
            if depth == 0:
                self.graph.location = location_of(node) or self.graph.location
                self.graph.checkpointed = CHECKPOINTED in node.meta.get("custom", ())
            if node not in live:
                self._dead_call(node, env, live)
            elif node.op == "get_attr":
                env[node] = self._attribute(node)
            elif depth == 0 and CONSTANT in node.meta:
                with self.graph.constant_to_derivative():
                    env[node] = self._named_call(node, env, live, depth)
            else:
                env[node] = self._named_call(node, env, live, depth)
            if depth == 0 and node in env:
                env[node] = with_own_value(self.builder, node, env)
        raise AssertionError("a graph without an output")

    def _attribute(self, node: torch.fx.Node) -> Any:
        value = operator.attrgetter(node.target)(node.graph.owning_module)
        if not isinstance(value, torch.Tensor):
            return value
        if value.numel() > 16 or value.dtype not in NAMES:
            raise Decline("its decomposition holds a large constant")
        return self.builder.dense(value)

    def _dead_call(self, node, env, live) -> None:
        """Nothing reads the result, but PyTorch computes it and may raise. What cannot be computed
        here, or gives nothing, is left out."""
        if node.meta.get("val") is None or any(env.get(x) is None for x in node.all_input_nodes):
            return
        if node.target is operator.getitem:
            env[node] = env[node.args[0]][node.args[1]]
        elif isinstance(node.target, torch._ops.OpOverload):
            mark = len(self.graph.nodes), len(self.fallbacks)
            try:
                env[node] = self._call(node, env, live, 0)
            except Refused:
                raise
            except Unsupported:
                del self.graph.nodes[mark[0] :], self.fallbacks[mark[1] :]

    def emits_effects(self, node: torch.fx.Node) -> bool:
        """Whether the call, alone in this walk's graph, may raise: it asserts something, or PyTorch
        runs it."""
        env = {
            each: pytree.tree_map_only(torch.Tensor, _value_like, each.meta.get("val"))
            for each in node.all_input_nodes
        }
        self._dead_call(node, env, {node})
        return any(each.op in EFFECTS for each in self.graph.nodes)

    def _refuse(self, node: torch.fx.Node) -> None:
        """Raises: Refused."""
        why = ask(node).refusal
        if why is not None:
            raise Refused(f"PyTorch refuses {node.target}: {why}", self.graph.location)

    def _named_call(self, node, env, live, depth: int) -> Any:
        """Raises: Unsupported, which names the op; of a decomposition, the one within it."""
        mark = len(self.graph.nodes)
        try:
            result = self._call(node, env, live, depth)
        except Unsupported as why:
            why.op = why.op or str(node.target)
            raise
        if depth or not self.graph.constant or not isinstance(node.target, torch._ops.OpOverload):
            return result
        made = {id(value) for each in self.graph.nodes[mark:] for value in each.results}
        return without_gradient(self.builder, node, result, made)

    def _call(self, node, env, live, depth: int) -> Any:
        args = self._arguments(node.args, env)
        kwargs = self._arguments(node.kwargs, env)
        if node.target is operator.getitem:
            return args[0][args[1]]
        if args and type(args[0]) in (Numbers, Number) and node.target in _READS_NUMBER:
            return self._number(node, args)
        name = str(node.target)
        if name in _STATIC_CHECKS:
            plain((args, kwargs))
            return None
        if node.target in _RUN_TIME_CHECKS:
            message = args[1] if len(args) > 1 else "assertion failed"
            return self.builder.check(
                args[0] if args[0].dtype == torch.bool else self.builder.compare("ne", args[0], 0),
                f"RuntimeError: {message}",
            )
        if not isinstance(node.target, torch._ops.OpOverload):
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                return self._region(name, args)
            raise Unsupported(f"{name} is no tensor op", self.graph.location)
        op = out_of_place(node.target) or node.target
        if _holds(Masked, args, kwargs) or gives_masked(op, node.meta["val"]):
            site = Site(
                self.builder, str(op), node, [node.meta["val"]], frozenset({0}), self._inputs
            )
            return self._lower_masked(op, site, args, kwargs)
        site = self._site(node, str(op), live)
        values = self._lower(op, site, args, kwargs, depth)
        return _like(node.meta["val"], iter(values))

    def _number(self, node: torch.fx.Node, args: list[Any]) -> Number:
        if isinstance(args[0], Numbers):
            return args[0].read[args[2]]
        number: Number = args[0]
        node.meta["val"] = number.value  # so that PyTorch may be asked about ops that read it
        node.meta[NUMBER] = number
        return number

    def _arguments(self, arguments: Any, env: dict[torch.fx.Node, Any]) -> Any:
        def value_of(leaf: Any) -> Any:
            if isinstance(leaf, torch.fx.Node):
                return env[leaf]
            if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                raise Unsupported("a size depends on data", self.graph.location)
            return leaf

        return torch.fx.node.map_aggregate(arguments, value_of)

    def _site(self, node: torch.fx.Node, name: str, live: set[torch.fx.Node]) -> Site:
        results = flatten_results(node.meta["val"])
        if name.endswith("_backward.default"):
            results = [_NOT_ASKED_FOR if result is None else result for result in results]
        for result in results:
            if not isinstance(result, torch.Tensor):
                raise Unsupported(f"{name} gives no tensor", self.graph.location)
            if any(isinstance(size, torch.SymInt) for size in result.shape):
                raise Unsupported(f"a size that {name} gives depends on data", self.graph.location)
        if isinstance(node.meta["val"], torch.Tensor):
            used = frozenset({0})
        else:
            readers = [user for user in node.users if user in live]
            used = frozenset(user.args[1] for user in readers if user.target is operator.getitem)
        return Site(self.builder, name, node, results, used, self._inputs)

    def _lower_masked(self, op, site: Site, args, kwargs) -> Any:
        mark, (args, kwargs) = len(self.graph.nodes), plain((args, kwargs))
        try:
            return lower_masked(op, site, args, kwargs)
        except Decline as decline:
            del self.graph.nodes[mark:]
            raise Unsupported(str(decline), self.graph.location) from None

    def _region(self, name: str, args: list[Any]) -> Any:
        """The body of a region, in place of the op that holds it."""
        if name == "scan":
            return self._scan(*args)
        body = next((i for i, a in enumerate(args) if isinstance(a, torch.fx.GraphModule)), None)
        switched_off = name == "wrap_with_autocast" and args[2] is False
        if name.startswith("auto_functionalized"):
            # As torch.export writes a call of a user's operator that writes.
            raise Unsupported(f"{args[0]} writes to its arguments", self.graph.location)
        if body is None or not (name == "wrap_with_set_grad_enabled" or switched_off):
            raise Unsupported(f"a region of {name}", self.graph.location)
        graph = args[body].graph
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        env = dict(zip(placeholders, args[body + 1 :]))
        if name != "wrap_with_set_grad_enabled":
            return self.run(graph, env)
        with self.graph.constant_to_derivative(not args[0]):
            return self.run(graph, env)

    def _scan(self, body: torch.fx.GraphModule, states, sequences, invariants) -> list[Value]:
        """torch._higher_order_ops.scan. sequences: (length, ...) each. What steps check is one more
        of their results, and checked behind the scan."""
        given = [*states, *sequences, *invariants]
        if not all(isinstance(value, Value) for value in given):
            raise Unsupported("a scan of what are no real tensors", self.graph.location)
        if not sequences or not sequences[0].shape[0]:
            raise Unsupported("a scan over nothing", self.graph.location)

        checks: list[Node] = []

        def step(builder: Builder, state, elements, same):
            inner = Walk(builder.graph)
            placeholders = body.graph.find_nodes(op="placeholder")
            results = inner.run(body.graph, dict(zip(placeholders, [*state, *elements, *same])))
            if inner.fallbacks:
                reason = inner.fallbacks[0].target
                raise Unsupported(f"{reason} in the steps of a scan", self.graph.location)
            nodes = builder.graph.nodes
            checks.extend(each for each in nodes if each.op in EFFECTS)
            builder.graph.nodes = [each for each in nodes if each.op not in EFFECTS]
            checked = [each.operands[0] for each in checks]
            return results[: len(states)], [*results[len(states) :], *checked]

        length = sequences[0].shape[0]
        last, stacked = self.builder.scan(states, sequences, invariants, length, step)
        end = len(stacked) - len(checks)
        for check, holds in zip(checks, stacked[end:], strict=True):
            self.builder.check(holds, check.attrs["message"])
        return [*last, *stacked[:end]]

    def _lower(self, op, site: Site, args, kwargs, depth: int) -> tuple[Value | None, ...]:
        """The op by its rule, by its decomposition, or by PyTorch."""
        mark = len(self.graph.nodes)
        try:
            results = self._native(op, site, args, kwargs, depth)
        except Decline as decline:
            del self.graph.nodes[mark:]
            if depth:
                raise
            return self._fallback(op, site, args, kwargs, str(decline))
        except Exception:
            # Rules rely on what PyTorch takes.
            if depth == 0:
                self._refuse(site.node)
            raise
        if depth == 0:
            self._refuse(site.node)
        return results

    def _native(self, op, site: Site, args, kwargs, depth: int) -> tuple[Any, ...]:
        of_pairs = _holds(Pair, args, kwargs) or any(r.dtype.is_complex for r in site.results)
        if not of_pairs:
            if any(result.dtype not in NAMES for result in site.results):
                raise Decline(f"results of {[str(result.dtype) for result in site.results]}")
            if str(op) in CHECKS:
                CHECKS[str(op)](site, *args, **kwargs)
        mark = len(self.graph.nodes)
        if of_pairs:
            args, kwargs = plain((args, kwargs))
        rule = partial(lower_pairs, op) if of_pairs else TABLE.get(str(op))
        declined = None
        if rule is not None:
            try:
                results = rule(site, *args, **kwargs)
                return _checked(site, results if isinstance(results, tuple) else (results,))
            except Decline as decline:
                declined = decline
                del self.graph.nodes[mark:]
        if _is_random(op):
            raise declined or Decline("random")
        if depth == _MAX_DEPTH:
            raise declined or Decline("its decomposition is too deep")
        try:
            args, kwargs = plain((args, kwargs))
            graph = self._decomposition(op, args, kwargs)
            if len(graph.nodes) > _MAX_DECOMPOSITION:
                raise Decline(f"its decomposition has {len(graph.nodes)} ops")
            leaves = pytree.tree_leaves((args, kwargs))
            tensors = [leaf for leaf in leaves if isinstance(leaf, Value | Pair)]
            placeholders = [node for node in graph.nodes if node.op == "placeholder"]
            output = self.run(graph, dict(zip(placeholders, tensors)), depth + 1)
            return _checked(site, tuple(flatten_results(output)))
        except Decline as decline:
            raise declined or decline from None

    def _decomposition(self, op, args, kwargs) -> torch.fx.Graph:
        tensors: list[Value | Pair] = []
        template = encode_arguments(op, args, kwargs, partial(operand_number, tensors))
        key = (str(op), template, tuple((x.dtype, x.shape) for x in tensors))
        if key not in self._decompositions:
            try:
                self._decompositions[key] = decompose(op, args, kwargs)
            except Decline as decline:
                self._decompositions[key] = decline
        found = self._decompositions[key]
        if isinstance(found, Decline):
            raise found
        return found

    def _fallback(self, op, site: Site, args, kwargs, reason: str) -> tuple[Any, ...]:
        location = self.graph.location
        args, kwargs = plain((args, kwargs))
        if any(result is _NOT_ASKED_FOR for result in site.results):
            raise Unsupported(f"{op} gives no tensor, and {reason}", location)
        for result in site.results:
            known = result.dtype in NAMES or result.dtype in REAL_OF
            if not known or result.device.type != "cpu":
                raise Unsupported(
                    f"{op} gives a tensor of {result.dtype} on {result.device}", location
                )
        if changes_arguments(op):
            raise Unsupported(f"{op} changes its arguments", location)
        operands: list[Value] = []
        if _is_random(op):
            # In place, as it stands in the program, it may draw in another order; its copy of the
            # argument is its own.
            op = site.node.target
            args, kwargs = with_strides(site.node, args, kwargs)
            args = without_values(
                op, args, lambda like: self.builder.constant(0, like.dtype, like.shape)
            )
        args, kwargs = pytree.tree_map_only(
            Pair, lambda pair: Joined(join(self.builder, pair)), (args, kwargs)
        )
        arguments = encode_arguments(
            op,
            args,
            kwargs,
            lambda value: operand_number(operands, value),
            gives_complex=any(result.dtype in REAL_OF for result in site.results),
        )
        self.fallbacks.append(Fallback(str(op), arguments, reason, location))
        types = [
            (REAL_OF[result.dtype], (*result.shape, 2))
            if result.dtype in REAL_OF
            else (result.dtype, result.shape)
            for result in site.results
        ]
        values = self.builder.torch_fallback(operands, str(op), arguments, types)
        return tuple(
            split(self.builder, value) if result.dtype in REAL_OF else value
            for value, result in zip(values, site.results)
        )


def _holds(kind: type, args: Any, kwargs: Any) -> bool:
    return any(isinstance(leaf, kind) for leaf in flatten_results([*args, *kwargs.values()]))


def _like(results: Any, values: Iterator[Any]) -> Any:
    """Flattened values in the structure of a call's results."""
    if isinstance(results, (list, tuple)):
        return [_like(each, values) for each in results]
    return next(values)


def _value_like(tensor: torch.Tensor) -> Value | Pair:
    dtype, shape = REAL_OF.get(tensor.dtype, tensor.dtype), tuple(tensor.shape)
    if tensor.dtype in REAL_OF:
        return Pair(Value(dtype, shape), Value(dtype, shape))
    return Value(dtype, shape)


def _is_random(op: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(op, "tags", ())


def _checked(site: Site, values: tuple[Value | None, ...]) -> tuple[Value | None, ...]:
    """A rule that gives what torch does not is our bug."""
    for number in site.used:
        value, result = values[number], site.results[number]
        assert (value.dtype, value.shape) == (result.dtype, tuple(result.shape)), (
            f"{site.target}: expected result {number} to be {result.dtype} "
            f"{tuple(result.shape)}, found {value.dtype} {value.shape}"
        )
    return values


def live_nodes(
    graph: torch.fx.Graph, kept: Callable[[torch.fx.Node], bool] = lambda node: False
) -> set[torch.fx.Node]:
    """Nodes that the output needs, that draw random numbers or check something, or are `kept`."""
    live: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        is_root = node.op == "output" or _is_random(node.target) or node.target in _RUN_TIME_CHECKS
        if is_root or node in live or kept(node):
            live.add(node)
            live.update(node.all_input_nodes)
    return live

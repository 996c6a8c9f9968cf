# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a torch.fx graph of the tensor operations in the log of an observed call. A compiler is
given this graph. No code of the user's runs for it."""

from __future__ import annotations

import logging
import operator
import random
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from weft.capture import remembered_calls
from weft.errors import CaptureError
from weft.frontend.lowered import Location
from weft.observe.inference import pop_inference, push_inference
from weft.observe.records import (
    NUMBERS,
    computes_numbers,
    has_effect,
    is_plain,
    is_torchs,
    leaves,
    may_write,
)

_set_grad_enabled = torch._C._set_grad_enabled
_SET_INFERENCE = (push_inference, pop_inference)
_SET_AUTOCAST = (torch.set_autocast_enabled, torch.set_autocast_dtype)
# For `n += x` where n is a number, which FX would write as `3 += x`.
_NOT_IN_PLACE = {
    getattr(operator, f"__i{name}__"): getattr(operator, f"__{name}__")
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
}
# Autograd's functions within the call, which a graph of operations cannot have.
_GRADIENTS = (
    torch.autograd.Variable._execution_engine.run_backward,
    torch.Tensor.grad.__set__,
    torch.Tensor.requires_grad.__set__,
    torch.Tensor.requires_grad_,
)
# Effects that cannot fail, and that change what other effects change.
_SETTERS = (object.__setattr__, types.CellType.cell_contents.__set__)
_CONTAINERS = (list, dict, set, deque, OrderedDict)
_DRAWERS = (random.Random, numpy.random.RandomState)


def _seeds() -> tuple[Callable, ...]:
    """The functions that seed torch's generator. TorchDynamo replaces torch's own by another
    one."""
    return torch.manual_seed, torch.random.manual_seed


@dataclass(frozen=True)
class LoggedGraph:
    """The graph of a log's operations on tensors (capture/Plan.h).

    module: takes the tensors and numbers that come from the call's arguments, and numbers that
    Python computes of such numbers, and gives a tuple of tensors; it holds the tensors that come
    from the program itself. inputs: the registers of its first arguments. numbers: for its other
    arguments, the results of the log, with what they were in the observed call. results: the
    results of the log that it gives. before, after: the records that it does not contain, to be run
    before and after it. compares: whether records that run after it compare values that depend on
    data.
    """

    module: torch.fx.GraphModule
    inputs: tuple[int, ...]
    numbers: dict[int, int | float]
    results: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    compares: bool

    def attach(self, program: Any, function: Callable[..., tuple]) -> None:
        """Makes the function, which computes what the module does, run the operations of the
        program from now on."""
        program.attach(
            function,
            self.inputs,
            tuple(self.numbers),
            self.results,
            self.before,
            self.after,
            self.compares,
        )

    def arguments(self, registers: list[Any]) -> list[Any]:
        """What the module takes in the observed call, whose registers these are."""
        return [*(registers[number] for number in self.inputs), *self.numbers.values()]

    def computes_as(self, other: LoggedGraph) -> bool:
        """Whether the graphs are the same, and hold the same tensors."""

        def parts(graph: LoggedGraph) -> tuple:
            module = graph.module
            held = [*module.named_parameters(), *module.named_buffers()]
            rest = {name: each for name, each in vars(graph).items() if name != "module"}
            return module.code, [(name, id(tensor)) for name, tensor in held], rest

        return parts(self) == parts(other)

    def is_empty(self) -> bool:
        """Whether the graph has no operation to compile."""
        return not self.results and not self.module.graph.find_nodes(op="placeholder")


def graph_of(program: Any, registers: list[Any], ahead: dict[int, Any]) -> LoggedGraph:
    """The graph of a program of `_capture`.

    registers: the values that its guards load from the call. ahead: by address, copies of the
    containers that the call has changed, as they were before it.

    Raises: CaptureError, if a graph cannot hold everything that is in the log.
    """
    return _Reader(program, registers, ahead).read()


class _Reader:
    def __init__(self, program: Any, registers: list[Any], ahead: dict[int, Any]) -> None:
        self._records = program.records()
        self._output = program.output()
        self._registers = registers
        self._ahead = ahead
        # If several registers hold one object, guards have checked that they do.
        self._numbers = {id(each): number for number, each in enumerate(registers)}
        self._root = torch.nn.Module()
        self._graph = torch.fx.Graph()
        self._nodes: dict[int, torch.fx.Node] = {}  # for tensors from outside, by address
        self._inputs: list[int] = []
        self._results: dict[int, torch.fx.Node] = {}
        self._given: dict[int, torch.fx.Node] = {}
        self._apart: set[int] = set()  # results that are numbers or texts
        # Of these, those that Python computes of numbers of the call, and the nodes for these
        # and for numbers in registers.
        self._computed: dict[int, int | float] = {}
        self._taken: dict[tuple[str, int], torch.fx.Node] = {}
        self._late: set[int] = set()  # of these, the ones that follow from what effects have left
        self._location = ""
        self._changed: set[int] = set()  # addresses of containers from outside
        self._writes = any(map(may_write, self._records))

    def read(self) -> LoggedGraph:
        before: list[int] = []
        checks: list[int] = []
        effects: list[int] = []
        for number, record in enumerate(self._records):
            function, arguments, _, outcome, self._location, *_ = record
            on_tensors = any(self._is_tensor(each) for each in leaves(arguments))
            if function in (torch.Generator, *_seeds()) or any(
                map(self._is_generator, leaves(arguments))
            ):
                raise CaptureError("draws from a generator that the call sets", self._location)
            if self._writes_array(record):
                raise CaptureError("writes to an array", self._location)
            if self._is_late(arguments) and not has_effect(record):
                if on_tensors or outcome[0] not in ("number", "known number", "plain"):
                    raise CaptureError(
                        "an operation takes what the call has changed", self._location
                    )
                effects.append(number)  # Python asks what the effects ahead of it have left
                if outcome[0] != "plain":
                    self._apart.add(outcome[1])
                    self._late.add(outcome[1])
            elif function is logging.getLogger:
                before.append(number)
            elif function is remembered_calls.answer:  # the answer is known, and compared
                before.append(number)
            elif function is _set_grad_enabled:
                before.append(number)
                self._call(record)
            elif self._computes(record):
                before.append(number)
            elif outcome[0] == "array":
                raise CaptureError("computes with NumPy", self._location)
            elif outcome[0] == "known number" or any(map(self._draws, leaves(arguments))):
                raise CaptureError(
                    "computes with numbers that each call draws or reads", self._location
                )
            elif outcome[0] == "number" or (outcome[0] == "made" and function is str):
                checks.append(number)  # Python computes with a result of the graph
                self._give_for_check(arguments)
                self._apart.add(outcome[1])
            elif function in _GRADIENTS:
                raise CaptureError("computes gradients within the call", self._location)
            elif function in _SET_INFERENCE:
                raise CaptureError("sets the inference mode within the call", self._location)
            elif function in _SET_AUTOCAST:
                raise CaptureError("casts within the call", self._location)
            elif has_effect(record):
                effects.append(number)
                self._give(arguments)
                self._changed.update(map(id, self._containers(arguments)))
            elif not is_torchs(function) and (on_tensors or not is_plain(outcome)):
                name = getattr(function, "__qualname__", "an unknown function")
                raise CaptureError(f"calls {name}", self._location)
            elif function is operator.setitem or not is_plain(outcome):
                self._bind(outcome, self._call(record))
            elif on_tensors or any(each[0] == "result" for each in leaves(arguments)):
                checks.append(number)
                self._give_for_check(arguments)
            else:
                before.append(number)
        # Effects that cannot be undone come last.
        effects.sort(key=lambda number: self._records[number][-1])
        self._give((self._output,))
        if any(self._given[number] is not self._results[number] for number in self._outside()):
            raise CaptureError("a value is compared whose memory is written later")
        self._graph.output(tuple(self._given.values()))
        module = torch.fx.GraphModule(self._root, self._graph, "Logged")
        return LoggedGraph(
            module,
            tuple(self._inputs),
            {n: self._computed[n] for kind, n in self._taken if kind == "result"},
            tuple(self._given),
            tuple(before),
            (*checks, *effects),
            bool(checks)
            or any(self._records[each][0] not in _SETTERS for each in effects)
            or not all(map(_asks_only, (self._records[each][0] for each in before))),
        )

    # Records.

    def _call(self, record: tuple) -> torch.fx.Node:
        function, arguments, names, _, location, *_ = record
        made = [self._argument(form) for form in arguments]
        count = len(made) - len(names or ())
        args, kwargs = tuple(made[:count]), dict(zip(names or (), made[count:]))
        name = getattr(function, "__name__", "")
        if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
            known = getattr(torch.Tensor, name, None)
            # A few methods of tensors are functions in Python, which call the base's method of that
            # name.
            is_wrapped = isinstance(known, types.FunctionType)
            if known is not function and not (
                is_wrapped and function.__objclass__ is torch._C.TensorBase
            ):
                raise CaptureError(f"calls {name} of {function.__objclass__.__name__}", location)
            node = self._graph.call_method(name, args, kwargs)
        else:
            if not isinstance(args[0] if args else None, torch.fx.Node):
                function = _NOT_IN_PLACE.get(function, function)
            node = self._graph.call_function(_by_operator(function), args, kwargs)
        file, _, line = location.rpartition(":")
        if file:
            node.meta["stack_trace"] = f'  File "{file}", line {line}, in {name}\n'
            node.meta["location"] = Location(file, int(line), name)
        return node

    def _bind(self, outcome: tuple, node: torch.fx.Node) -> None:
        match outcome:
            case ("tensor", number):
                self._results[number] = node
            case ("sequence", _, parts):
                for place, part in enumerate(parts):
                    if part[0] in ("tensor", "sequence"):
                        self._bind(part, self._graph.call_function(operator.getitem, (node, place)))
            case ("same" | "plain", _):
                pass
            case _:
                raise CaptureError("an operation gives what is no tensor", self._location)

    # Results of the graph.

    def _give(self, forms: tuple) -> None:
        for form in leaves(forms):
            if form[0] == "result" and form[1] in self._results:  # otherwise an effect has made it
                self._given.setdefault(form[1], self._results[form[1]])

    def _give_for_check(self, forms: tuple) -> None:
        """Lets the graph return these values as they are now, since later operations may write to
        them."""
        for form in leaves(forms):
            if form[0] == "result":
                if form[1] in self._apart:
                    continue
                if form[1] not in self._results:
                    raise CaptureError("asks an object that the call has made", self._location)
                number, node = form[1], self._results[form[1]]
                if number in self._given and self._writes:
                    raise CaptureError("a value is compared twice beside writes", self._location)
                if self._writes:
                    node = self._graph.call_method("clone", (node,))
                self._given.setdefault(number, node)
            elif self._is_tensor(form) and self._writes:
                raise CaptureError("compares data from outside beside writes", self._location)

    def _outside(self) -> Iterator[int]:
        """The results of the log that the call returns or keeps."""
        kept = [self._output]
        kept += [form for each in self._records if has_effect(each) for form in each[1]]
        return (
            form[1]
            for form in leaves(tuple(kept))
            if form[0] == "result" and form[1] in self._results
        )

    # Arguments.

    def _is_tensor(self, form: tuple) -> bool:
        match form:
            case ("result", number):
                return number in self._results
            case ("register", number):
                return isinstance(self._registers[number], torch.Tensor)
            case ("constant", value):
                return isinstance(value, torch.Tensor)
        return False

    def _writes_array(self, record: tuple) -> bool:
        """Whether it may write to an array: it gives nothing, or its argument."""
        _, arguments, _, outcome, *_ = record
        nothing = outcome == ("plain", None) or outcome[0] == "same"
        values = (
            form[1] if form[0] == "constant" else self._registers[form[1]]
            for form in leaves(arguments)
            if form[0] in ("constant", "register")
        )
        return nothing and any(isinstance(each, numpy.ndarray) for each in values)

    def _is_generator(self, form: tuple) -> bool:
        match form:
            case ("register", number):
                return isinstance(self._registers[number], torch.Generator)
            case ("constant", value):
                return isinstance(value, torch.Generator)
        return False

    def _is_late(self, forms: tuple) -> bool:
        """Whether a value follows from a container that an effect ahead of it changes."""
        changed = any(id(each) in self._changed for each in self._containers(forms))
        return changed or any(
            form[0] == "result" and form[1] in self._late for form in leaves(forms)
        )

    def _draws(self, form: tuple) -> bool:
        """Whether the argument is a generator of random numbers of Python or NumPy."""
        return form[0] == "constant" and isinstance(form[1], _DRAWERS)

    def _argument(self, form: tuple) -> Any:
        match form:
            case ("result", number) if number in self._results:
                return self._results[number]
            case ("result", number) if number in self._computed:
                return self._number(form)
            case ("result", number) if number in self._apart:
                raise CaptureError("takes a number that each call reads", self._location)
            case ("register", number):
                value = self._registers[number]
                return self._number(form) if type(value) in NUMBERS else self._outer(value)
            case ("constant", value):
                return self._outer(value)
            case ("tuple", _, parts):
                return tuple(map(self._argument, parts))
            case ("list", _, parts):
                return list(map(self._argument, parts))
            case ("dict", _, parts):
                made = list(map(self._argument, parts))
                return dict(zip(made[::2], made[1::2]))
            case ("slice", parts):
                return slice(*map(self._argument, parts))
        raise CaptureError("an operation takes an object that the call has made", self._location)

    def _containers(self, forms: tuple) -> Iterator[Any]:
        """The containers among the arguments of an effect, one of which the effect changes."""
        for kind, *rest in forms:
            if kind in ("register", "constant"):
                found = self._registers[rest[0]] if kind == "register" else rest[0]
                if isinstance(found, _CONTAINERS):
                    yield found

    def _outer(self, value: Any) -> Any:
        """A value from outside. The contents of containers were read and are guarded, and effects
        run after the graph."""
        if id(value) in self._changed:
            raise CaptureError("an operation takes what the call has changed", self._location)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.Size) or type(value) is tuple:
            return tuple(map(self._outer, value))
        if type(value) is list:
            return list(map(self._outer, self._ahead.get(id(value), value)))
        if type(value) is dict:
            items = self._ahead.get(id(value), value).items()
            return {key: self._outer(each) for key, each in items}
        # torch treats a NumPy scalar as a number, and the graph's code has no name for its class.
        return value.item() if isinstance(value, numpy.generic) else value

    def _tensor(self, tensor: torch.Tensor) -> torch.fx.Node:
        if (found := self._nodes.get(id(tensor))) is not None:
            return found
        with self._graph.inserting_before():  # the placeholders come before everything else
            register = self._numbers.get(id(tensor))
            if register is None:
                made = self._graph.get_attr(self._hold(tensor))
            else:
                made = self._graph.placeholder(f"a{register}")
                self._inputs.insert(0, register)
        self._nodes[id(tensor)] = made
        return made

    def _number(self, form: tuple) -> torch.fx.Node:
        """The placeholder for a number of the call, or for one that follows from such numbers.
        Numbers are told apart by their forms: CPython shares small ints."""
        if (found := self._taken.get(form)) is not None:
            return found
        kind, number = form
        # The placeholders come before everything else, in the order of the arguments.
        behind = [*self._graph.find_nodes(op="placeholder")]
        if kind == "register":
            behind = behind[: len(self._inputs)]
            self._inputs.append(number)
        with self._graph.inserting_after(behind[-1] if behind else None):
            made = self._graph.placeholder(f"{kind}{number}")
        self._taken[form] = made
        return made

    def _computes(self, record: tuple) -> bool:
        """Whether Python computes with numbers of the call alone, or compares them."""
        function, arguments, names, outcome, *_ = record
        parts = [*leaves(arguments)]
        if (
            not computes_numbers(function)
            or outcome[0] not in ("number", "known number", "plain")
            or all(kind == "constant" for kind, _ in parts)
            or not all(type(self._value(leaf)) in NUMBERS for leaf in parts)
            or any(part[0] not in ("constant", "register", "result") for part in arguments)
        ):
            return False
        if outcome[0] != "plain":
            values = [self._value(form) for form in arguments]
            count = len(values) - len(names or ())
            value = function(*values[:count], **dict(zip(names or (), values[count:])))
            if type(value) not in NUMBERS:
                return False
            self._computed[outcome[1]] = value
            self._apart.add(outcome[1])
        return True

    def _value(self, leaf: tuple) -> Any:
        """What a number was in the observed call; None for a result that follows from data."""
        match leaf:
            case ("register", number):
                return self._registers[number]
            case ("result", number):
                return self._computed.get(number)
        return leaf[1]

    def _hold(self, tensor: torch.Tensor) -> str:
        name = f"t{len(self._nodes)}"
        if isinstance(tensor, torch.nn.Parameter):
            self._root.register_parameter(name, tensor)
        else:
            self._root.register_buffer(name, tensor)
        return name


def _asks_only(function: Any) -> bool:
    """Whether the function, ahead of the graph, changes nothing that would have to be put back."""
    return is_torchs(function) or computes_numbers(function)


def _by_operator(function: Any) -> Any:
    """The operator for a function in C, if torch has a function in Python with the same name, such
    as `torch.broadcast_tensors`: torch would show that function to a mode such as tracing's."""
    name = getattr(function, "__name__", "")
    in_c = getattr(torch._C._VariableFunctions, name, None)
    if (
        in_c is None
        or function != in_c
        or not isinstance(vars(torch).get(name), types.FunctionType)
    ):
        return function
    return getattr(torch.ops.aten, name, function)

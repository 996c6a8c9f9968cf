# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of unusual classes, and torch's tools that change a module's class, tensors or graph:
compiled, they are as they were."""

from __future__ import annotations

import abc
import copy
import dataclasses
import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

import weft

pytestmark = [
    pytest.mark.usefixtures("no_grad"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]

x = torch.linspace(-1, 1, 12).reshape(3, 4)


def check_answers(compiled, expected) -> None:
    for _ in range(2):
        torch.testing.assert_close(compiled(x), expected(x))


# Classes.


class Registering(type):
    """Of classes that say a word, all of which it keeps."""

    made: list[type] = []

    def __new__(mcs, name, bases, names, *, word):
        made = super().__new__(mcs, name, bases, names)
        made.word = word
        return made

    def __init__(cls, name, bases, names, *, word):
        super().__init__(name, bases, names)
        Registering.made.append(cls)


class OfMetaclass(nn.Linear, metaclass=Registering, word="first"):
    pass


class Keyed(nn.Linear):
    """Its subclasses have keys."""

    classes: dict[str, type] = {}

    def __init_subclass__(cls, *, key, **kwargs):
        super().__init_subclass__(**kwargs)
        Keyed.classes[key] = cls


class OfKey(Keyed, key="a"):
    pass


class Abstract(nn.Linear, abc.ABC):
    @abc.abstractmethod
    def double(self, x): ...


class Concrete(Abstract):
    def double(self, x):
        return self(x) * 2


@dataclasses.dataclass(eq=False)
class Data(nn.Module):
    width: int

    def __post_init__(self):
        super().__init__()
        self.layer = nn.Linear(4, self.width)

    def forward(self, x):
        return self.layer(x)


class Calling(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) + 1


CLASSES = {
    "metaclass": lambda: OfMetaclass(4, 4),
    "subclass": lambda: OfKey(4, 4),
    "abstract": lambda: Concrete(4, 4),
    "dataclass": lambda: Data(4),
    "call": lambda: Calling(4, 4),
}


@pytest.mark.parametrize("make", CLASSES.values(), ids=CLASSES.keys())
@pytest.mark.parametrize("inplace", [False, True])
def test_classes(make, inplace, compiled_only):
    module = make().eval()
    twin = copy.deepcopy(module)
    metaclasses = [*Registering.made], {**Keyed.classes}
    compiled = weft.compile(module, inplace=inplace)
    check_answers(compiled, twin)
    assert isinstance(compiled, type(twin)) and isinstance(type(compiled), type(type(twin)))
    assert ([*Registering.made], {**Keyed.classes}) == metaclasses
    assert compiled.stats()["hits"] == 2
    check_answers(copy.deepcopy(compiled), twin)


def test_abstract_classes_tell_instances_apart():
    compiled = weft.compile(Concrete(4, 4).eval())
    assert isinstance(compiled, Abstract)
    assert not isinstance(nn.Linear(4, 4), type(compiled)) and not isinstance(3, type(compiled))
    torch.testing.assert_close(compiled.double(x), compiled.original(x) * 2)


class Slotted(nn.Linear):
    """`layer` is one of the children all the same."""

    __slots__ = ("factor", "layer")

    def __init__(self):
        super().__init__(4, 4)
        self.factor = 3.0
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(super().forward(x)) * self.factor


@pytest.mark.parametrize("inplace", [False, True])
def test_slots(inplace):
    module = Slotted().eval()
    expected = module(x)
    compiled = weft.compile(module, inplace=inplace, capture="export")
    for factor in (3.0, 4.0):  # without a guard: read on each call
        compiled.factor = factor
        assert module.factor == factor and compiled.layer is module.layer
        for _ in range(2):
            torch.testing.assert_close(compiled(x), expected * factor / 3)
    assert isinstance(compiled, Slotted) and compiled.__class__ is Slotted
    assert "Slotted" in weft.stats(compiled)["breaks"][0]
    del compiled.factor
    assert not hasattr(module, "factor") and not hasattr(compiled, "factor")


def test_slots_of_an_attribute():
    class Settings:
        __slots__ = ("__dict__", "factor")

    model = Data(4).eval()
    model.settings = Settings()
    model.settings.factor = 2.0
    model.forward = lambda x: model.layer(x) * model.settings.factor
    compiled = weft.compile(model)
    check_answers(compiled, model)
    model.settings.factor = 3.0
    check_answers(compiled, model)


def test_modules_that_compare_by_value():
    @dataclasses.dataclass
    class ByValue(Data):
        pass

    module = ByValue(4)
    compiled = weft.compile(module, capture="export")
    check_answers(compiled, module)
    assert "unhashable type: 'ByValue'" in compiled.stats()["breaks"][0]


def test_lazy_parameters():
    module = nn.Sequential(nn.LazyLinear(4), nn.ReLU()).eval()
    compiled = weft.compile(module)
    compiled(x)
    check_answers(compiled, module)
    assert compiled.stats()["graphs"] == 1
    lazy = nn.LazyLinear(4).eval()
    compiled = weft.compile(lazy)
    compiled(x)
    check_answers(compiled, lazy)
    assert compiled.__class__ is nn.Linear and repr(compiled).startswith("Linear(in_features=4")


def test_script_modules():
    scripted = torch.jit.script(nn.Linear(4, 4).eval())
    compiled = weft.compile(scripted)
    check_answers(compiled, scripted)
    assert "ScriptModule" in compiled.stats()["breaks"][0]
    assert isinstance(compiled, torch.jit.ScriptModule)
    child = nn.Sequential(scripted)
    check_answers(weft.compile(child), child)


def _negate(module: torch.fx.GraphModule) -> None:
    """Edits the graph."""
    graph = module.graph
    (output,) = graph.find_nodes(op="output")
    with graph.inserting_before(output):
        output.args = (graph.call_function(torch.neg, output.args),)
    module.recompile()


@pytest.mark.parametrize("inplace", [False, True])
def test_graph_modules(inplace, compiled_only):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    compiled = weft.compile(torch.fx.symbolic_trace(model), inplace=inplace)
    check_answers(compiled, model)
    _negate(compiled)
    check_answers(compiled, lambda x: -model(x))
    assert "neg" in compiled.code and compiled.stats()["graphs"] == 2
    for twin in (copy.deepcopy(compiled), copy.copy(compiled)):
        check_answers(twin, lambda x: -model(x))
        _negate(twin)
        check_answers(twin, model)
    check_answers(compiled, lambda x: -model(x))


# Tools.


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


@pytest.mark.parametrize("inplace", [False, True])
def test_parametrize(inplace):
    module = nn.Linear(4, 4).eval()
    compiled = weft.compile(module, inplace=inplace)
    compiled(x)
    parametrize.register_parametrization(compiled, "weight", Symmetric())
    for each in (compiled, module, copy.deepcopy(compiled)):
        assert parametrize.is_parametrized(each, "weight") and isinstance(each, nn.Linear)
        assert torch.equal(each.weight, each.weight.T)
        check_answers(each, lambda x: nn.functional.linear(x, module.weight, module.bias))
    weight = module.weight.clone()
    compiled.parametrizations.weight.original.mul_(2)
    check_answers(compiled, lambda x: nn.functional.linear(x, weight * 2, module.bias))
    parametrize.remove_parametrizations(compiled, "weight")
    assert compiled.__class__ is module.__class__ is nn.Linear
    check_answers(compiled, lambda x: nn.functional.linear(x, weight * 2, module.bias))


def test_parametrizations_of_the_original():
    module = nn.Linear(4, 4).eval()
    compiled = weft.compile(module)
    compiled(x)
    parametrizations.weight_norm(module)
    check_answers(compiled, module)
    assert torch.equal(compiled.weight, module.weight)
    assert compiled.__class__ is module.__class__ and "Parametrized" in repr(compiled)


def test_prune():
    module = nn.Linear(4, 4).eval()
    compiled = weft.compile(module)
    check_answers(compiled, module)
    prune.l1_unstructured(compiled, "weight", 0.5)
    check_answers(compiled, module)
    assert int((module.weight == 0).sum()) == 8
    prune.remove(compiled, "weight")
    check_answers(compiled, module)
    assert list(module.state_dict()) == ["bias", "weight"]


def test_functional_call_and_transforms():
    module = nn.Linear(4, 4).eval()
    compiled = weft.compile(module)
    check_answers(compiled, module)
    call = torch.func.functional_call
    given = {name: torch.randn_like(tensor) for name, tensor in module.named_parameters()}
    for _ in range(2):
        torch.testing.assert_close(call(compiled, given, (x,)), call(module, given, (x,)))
        check_answers(compiled, module)
    gradients = torch.func.grad(lambda given: call(compiled, given, (x,)).sum())(given)
    assert gradients["bias"].tolist() == [3, 3, 3, 3]
    stacked = {name: torch.stack([tensor, tensor * 2]) for name, tensor in given.items()}
    ensemble = torch.func.vmap(lambda given: call(compiled, given, (x,)))(stacked)
    torch.testing.assert_close(ensemble[1], ensemble[0] * 2)
    torch.testing.assert_close(torch.func.vmap(compiled)(x), module(x))
    torch.testing.assert_close(torch.func.jacrev(compiled)(x[0]), module.weight)
    value, tangent = torch.func.jvp(compiled, (x,), (torch.ones_like(x),))
    torch.testing.assert_close(tangent, (module(x + 1) - value))
    with torch.enable_grad():
        compiled(x).sum().backward()
    assert module.bias.grad.tolist() == [3, 3, 3, 3]


def test_tools_that_take_programs_apart():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    compiled = weft.compile(model)
    compiled(x)
    torch.testing.assert_close(torch.fx.symbolic_trace(compiled)(x), model(x))
    torch.testing.assert_close(torch.export.export(compiled, (x,)).module()(x), model(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.testing.assert_close(torch.jit.script(compiled)(x), model(x))
    torch.testing.assert_close(torch.compile(compiled, backend="eager")(x), model(x))
    torch._dynamo.reset()


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


@pytest.mark.parametrize("inplace", [False, True])
def test_tools_that_record_calls(inplace):
    """A program that has been compiled already leaves nothing to record."""
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval().requires_grad_(False)
    expected = Residual(copy.deepcopy(inner))
    compiled = weft.compile(inner, inplace=inplace)
    check_answers(compiled, expected.inner)
    model = Residual(compiled).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripts = torch.jit.trace(model, x), torch.jit.trace(compiled, x)
        function = torch.jit.trace(lambda x: x + compiled(x), x)
    traced = torch.fx.symbolic_trace(model)
    assert [node.target for node in traced.graph.nodes if node.op == "call_module"] == [
        "inner.0", "inner.1",
    ]  # fmt: skip
    for recorded in (scripts[0], function, traced):
        torch.testing.assert_close(recorded(x * 2), expected(x * 2))
    torch.testing.assert_close(scripts[1](x * 2), expected.inner(x * 2))
    linear = nn.Sequential(weft.compile(nn.Linear(4, 4), inplace=inplace))
    (call,) = torch.fx.symbolic_trace(linear).graph.find_nodes(op="call_module", target="0")
    check_answers(compiled, expected.inner)


def test_module_that_torch_compile_has_compiled():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    compiled = weft.compile(torch.compile(model, backend="eager"))
    check_answers(compiled, model)
    model.compile(backend="eager")
    check_answers(weft.compile(model), model)
    torch._dynamo.reset()


def test_classes_that_torch_makes_to_trace_are_not_the_users():
    """A module with two paths, here a global of `__init__` and a submodule, is shown by proxies."""
    made = []

    class Registered(nn.Module):
        def __init_subclass__(cls):
            made.append(eval("cls.__name__"))

    class Innermost(Registered):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x * self.weight

    class Inner(Registered):
        def __init__(self):
            super().__init__()
            self.innermost = Innermost()

        def forward(self, x):
            return self.innermost(x)

    inner = Inner()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x)

    net = Outer().eval()
    compiled, x = weft.compile(net), torch.ones(2, 3)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), net(x))
    assert compiled.compile_seconds and made == ["Innermost", "Inner"]

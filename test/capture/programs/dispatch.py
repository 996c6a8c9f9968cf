# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which code runs: types asked for, computed names, special methods, patches, subclasses."""

import abc
import types
import typing

import torch
import torch.nn.functional as F
from torch import nn, randn

from capture.corpus import Case, call, program


def three():
    return call(randn(3))


class Scaled(torch.Tensor):
    """Doubles what additions give."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs or {})
        return result * 2 if function is torch.add else result


class Wrapped:
    """No tensor, but torch asks it."""

    def __init__(self, tensor, scale=2.0):
        self.tensor, self.scale = tensor, scale

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = [each.tensor * each.scale if isinstance(each, cls) else each for each in args]
        return function(*plain, **(kwargs or {}))


@program
def isinstance_of_an_attribute():
    value = 2
    return Case(lambda x: x * value if isinstance(value, (int, str)) else x * 3, three)


@program
def type_compared():
    value = [2.0]
    return Case(lambda x: x * 2 if type(value) is list else x * 3, three)


@program
def hasattr_of_an_object():
    thing = types.SimpleNamespace(scale=2.0)
    return Case(lambda x: x * thing.scale if hasattr(thing, "scale") else x, three)


@program
def computed_attribute_name():
    class Stages(nn.Module):
        def __init__(self):
            super().__init__()
            self.stage0, self.stage1, self.count = nn.Linear(3, 3), nn.Linear(3, 3), 2

        def forward(self, x):
            for number in range(self.count):
                x = getattr(self, f"stage{number}")(x)
            return x

    return Case(Stages(), three)


@program
def computed_scalar_name():
    class Computed(nn.Module):
        def __init__(self):
            super().__init__()
            self.s0, self.s1, self.which = 2.0, 3.0, "s"

        def forward(self, x):
            return x * getattr(self, f"{self.which}{x.dim() - 1}")

    return Case(Computed(), three)


@program
def setattr_computed():
    class Keeps(nn.Module):
        def forward(self, x):
            setattr(self, "last" + "_shape", tuple(x.shape))
            return x * len(self.last_shape)

    return Case(Keeps(), three)


@program
def function_by_name():
    name = "relu"
    return Case(lambda x: getattr(torch, name)(x) + getattr(F, name)(x), three)


@program
def method_by_name():
    name = "neg"
    return Case(lambda x: getattr(x, name)(), three)


@program
def table_of_functions():
    table = {"relu": torch.relu, "double": lambda x: x * 2}
    which = "double"
    return Case(lambda x: table[which](x), three)


@program
def super_chain():
    class A:
        def f(self, x):
            return x * 2

    class B(A):
        def f(self, x):
            return super().f(x) + 1

    class C(A):
        def f(self, x):
            return super().f(x) * 3

    class D(B, C):
        pass

    d = D()
    return Case(lambda x: d.f(x), three)


@program
def special_methods():
    class Vector:
        def __init__(self, tensor):
            self.tensor = tensor

        def __add__(self, other):
            return Vector(self.tensor + other)

        __radd__ = __add__

        def __bool__(self):
            return True

        def __neg__(self):
            return Vector(-self.tensor)

    return Case(lambda x: (1 + -Vector(x)).tensor if Vector(x) else x, three)


@program
def getattr_of_an_object():
    class Fallback:
        def __init__(self):
            self.values = {"scale": 2.0}

        def __getattr__(self, name):
            try:
                return self.__dict__["values"][name]
            except KeyError:
                raise AttributeError(name) from None

    thing = Fallback()
    return Case(lambda x: x * thing.scale + getattr(thing, "bias", 1.0), three)


@program
def getattribute_of_an_object():
    class Counted:
        scale = 2.0

        def __getattribute__(self, name):
            if name == "scale":
                return object.__getattribute__(self, "scale") * 3
            return object.__getattribute__(self, name)

    thing = Counted()
    return Case(lambda x: x * thing.scale, three)


@program
def setattr_of_a_class():
    class Clamped:
        def __init__(self):
            self.value = 1.0

        def __setattr__(self, name, value):
            object.__setattr__(self, name, min(value, 3.0))

    thing = Clamped()

    def f(x):
        thing.value = thing.value + 1
        return x * thing.value

    return Case(f, three)


@program
def abstract_class():
    class Base(abc.ABC):
        @abc.abstractmethod
        def scale(self): ...

    class Concrete(Base):
        def scale(self):
            return 2.0

    thing = Concrete()
    return Case(lambda x: x * thing.scale() if isinstance(thing, Base) else x, three)


@program
def protocol_class():
    @typing.runtime_checkable
    class Scales(typing.Protocol):
        def scale(self): ...

    class Thing:
        def scale(self):
            return 2.0

    thing = Thing()
    return Case(lambda x: x * thing.scale() if isinstance(thing, Scales) else x, three)


@program
def class_made_within():
    def f(x):
        class Local:
            factor = 2.0

            def apply(self, x):
                return x * self.factor

        return Local().apply(x)

    return Case(f, three)


@program
def method_patched_on_the_instance():
    class Layer(nn.Module):
        def forward(self, x):
            return x * 2

    layer = Layer()
    target = nn.Sequential(layer, nn.ReLU())

    def patch():
        layer.forward = lambda x: x * 5
        return lambda: delattr(layer, "forward")

    def bind():
        layer.forward = types.MethodType(lambda self, x: x * 7, layer)
        return lambda: delattr(layer, "forward")

    return Case(target, three, {"patch": patch, "bind a method": bind})


@program
def method_patched_on_the_class():
    class Layer(nn.Module):
        def helper(self, x):
            return x * 2

        def forward(self, x):
            return self.helper(x)

    def patch():
        old, Layer.helper = Layer.helper, lambda self, x: x * 5
        return lambda: setattr(Layer, "helper", old)

    return Case(Layer(), three, {"patch": patch})


@program
def layer_of_torch_patched():
    target = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def patch_forward():
        old = nn.Linear.forward
        nn.Linear.forward = lambda self, x: old(self, x) * 2
        return lambda: setattr(nn.Linear, "forward", old)

    def patch_call():
        old = nn.Module.__call__
        nn.ReLU.__call__ = lambda self, x: old(self, x) + 1
        return lambda: delattr(nn.ReLU, "__call__")

    return Case(target, three, {"Linear.forward": patch_forward, "ReLU.__call__": patch_call})


@program
def function_of_torch_patched():
    def patch(owner, name):
        def change():
            old = getattr(owner, name)
            setattr(owner, name, lambda *args, **kwargs: old(*args, **kwargs) * 3)
            return lambda: setattr(owner, name, old)

        return change

    changes = {
        "F.relu": patch(F, "relu"),
        "torch.tanh": patch(torch, "tanh"),
        "torch.special.expit": patch(torch.special, "expit"),
        "torch.linalg.norm": patch(torch.linalg, "norm"),
    }

    def f(x):
        return torch.tanh(F.relu(x)) + torch.special.expit(x) + torch.linalg.norm(x)

    return Case(f, three, changes)


@program
def method_of_tensor_patched():
    def patch():
        torch.Tensor.doubled = lambda self: self * 2
        return lambda: delattr(torch.Tensor, "doubled")

    def patch_relu():
        old = torch.Tensor.relu
        torch.Tensor.relu = lambda self: old(self) * 3
        return lambda: delattr(torch.Tensor, "relu")

    def f(x):
        return (x.doubled() if hasattr(x, "doubled") else x) + x.relu()

    return Case(f, three, {"a new method": patch, "relu": patch_relu})


@program
def tensor_subclass_argument():
    return Case(lambda x: x + 1, lambda: call(randn(3).as_subclass(Scaled)))


@program
def tensor_subclass_weight():
    weight = torch.ones(3).as_subclass(Scaled)
    return Case(lambda x: torch.add(x, weight), three)


@program
def torch_function_object():
    wrapped = Wrapped(torch.ones(3))
    return Case(lambda x: torch.add(x, wrapped), three)


@program
def tensor_attributes():
    def f(x):
        return x * getattr(x, "scale", 2.0)

    return Case(f, three)


@program
def attribute_on_a_tensor_argument():
    def arguments():
        x = randn(3)
        x.scale = 3.0
        return call(x)

    return Case(lambda x: x * x.scale, arguments)


@program
def tensor_as_a_class_attribute():
    class Holder:
        offset = torch.ones(3)
        table = {"w": torch.ones(3)}

    return Case(lambda x: x + Holder.offset * Holder.table["w"], three)


@program
def parameter_subclass():
    class Special(nn.Parameter):
        pass

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = Special(torch.ones(3))

        def forward(self, x):
            return x * self.weight * (2 if isinstance(self.weight, Special) else 3)

    return Case(Layer(), three)


@program
def scripted_function():
    @torch.jit.script
    def scripted(x):
        return x * 2 + 1

    return Case(lambda x: scripted(x) * 3, three)


@program
def traced_module():
    traced = torch.jit.trace(nn.Linear(3, 3), torch.randn(2, 3))
    return Case(lambda x: traced(x) * 3, three)


@program
def fx_module():
    class Layer(nn.Module):
        def forward(self, x):
            return torch.relu(x) * 2

    target = torch.fx.symbolic_trace(Layer())

    def edit():
        old = type(target).forward
        node = next(n for n in target.graph.nodes if n.op == "output")
        with target.graph.inserting_before(node):
            negated = target.graph.call_function(torch.neg, (node.args[0],))
        before, node.args = node.args, (negated,)
        target.recompile()

        def undo():
            node.args = before
            target.graph.erase_node(negated)
            target.recompile()
            type(target).forward = old

        return undo

    return Case(target, three, {"edit the graph": edit})

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where names are found: closures, globals, class attributes, defaults, and where they are not."""

import math

import torch
from torch import nn, randn

from capture.corpus import Case, call, program

SCALE = 2.0
OFFSET = torch.ones(3)
TABLE = {"scale": 2.0, "bias": 1.0}
LAYERS = [1.0, 2.0]
NAMES = ("a", "b")
SWITCH = None


class Config:
    scale = 3.0
    sizes = [1, 2]
    nested = {"a": {"b": 2.0}}


class Registry:
    entries = {}

    @classmethod
    def get(cls, name):
        return cls.entries.get(name, 1.0)


def helper(x):
    return x * SCALE + len(NAMES)


def three():
    return call(randn(3))


@program
def closure_scalar():
    scale = 2.0

    def f(x):
        return x * scale

    return Case(f, three)


@program
def closure_tensor():
    offset = torch.ones(3)

    def f(x):
        return x + offset

    return Case(f, three)


@program
def closure_list():
    sizes = [1.0, 2.0]

    def f(x):
        return sum((x * size for size in sizes), x) * len(sizes)

    return Case(f, three)


@program
def closure_of_a_closure():
    def outer(scale):
        def middle(bias):
            def inner(x):
                return x * scale + bias

            return inner

        return middle

    return Case(outer(2.0)(1.0), three)


@program
def closure_function():
    def inner(x, k=2):
        return x * k

    def f(x):
        return inner(x) + inner(x, k=3)

    return Case(f, three)


@program
def closure_not_yet_bound():
    def f(x):
        try:
            return x * later
        except NameError:
            return x

    def bind():
        nonlocal later
        later = 3.0

        def unbind():
            nonlocal later
            del later

        return unbind

    case = Case(f, three, {"bind": bind})
    later = 1.0
    del later
    return case


@program
def global_scalar():
    return Case(lambda x: x * SCALE, three)


@program
def global_tensor():
    return Case(lambda x: x + OFFSET, three)


@program
def global_containers():
    def f(x):
        for name in NAMES:
            x = x * len(name)
        return x * TABLE["scale"] + TABLE.get("bias", 0.0) + sum(LAYERS)

    return Case(f, three)


@program
def global_function():
    return Case(lambda x: helper(x) + 1, three)


@program
def global_that_is_missing():
    def f(x):
        try:
            return x * ABSENT  # noqa: F821
        except NameError:
            return x + 1

    def add():
        globals()["ABSENT"] = 4.0
        return lambda: globals().pop("ABSENT")

    return Case(f, three, {"define it": add})


@program
def builtin_shadowed():
    def f(x):
        return x * len([1, 2])

    def shadow():
        globals()["len"] = lambda values: 9
        return lambda: globals().pop("len")

    return Case(f, three, {"shadow len": shadow})


@program
def global_switch():
    def f(x):
        if SWITCH is not None:
            return x - SWITCH
        return x

    return Case(f, three)


@program
def globals_function():
    return Case(lambda x: x * globals()["SCALE"], three)


@program
def class_attribute():
    return Case(lambda x: x * Config.scale + sum(Config.sizes), three)


@program
def nested_class_attribute():
    return Case(lambda x: x * Config.nested["a"]["b"], three)


@program
def class_method_with_registry():
    def add():
        Registry.entries["gain"] = 5.0
        return Registry.entries.clear

    return Case(lambda x: x * Registry.get("gain"), three, {"add an entry": add})


@program
def class_attribute_shadowed_by_instance():
    class Gain(nn.Module):
        gain = 2.0

        def forward(self, x):
            return x * self.gain

    target = Gain()

    def shadow():
        target.gain = 5.0
        return lambda: delattr(target, "gain")

    return Case(target, three, {"an attribute of the instance": shadow})


@program
def missing_attribute():
    class Optional(nn.Module):
        def forward(self, x):
            return x * getattr(self, "gain", 1.0) if hasattr(self, "gain") else x + 1

    target = Optional()

    def add():
        target.gain = 5.0
        return lambda: delattr(target, "gain")

    def add_to_class():
        Optional.gain = 6.0
        return lambda: delattr(Optional, "gain")

    return Case(target, three, {"add it": add, "add it to the class": add_to_class})


@program
def attribute_caught():
    class Caught(nn.Module):
        def forward(self, x):
            try:
                return x * self.gain
            except AttributeError:
                return x - 1

    target = Caught()

    def add():
        object.__setattr__(target, "gain", 5.0)
        return lambda: object.__delattr__(target, "gain")

    return Case(target, three, {"add it": add})


@program
def metaclass_attribute():
    class Meta(type):
        factor = 2.0

        def __getattr__(cls, name):
            if name == "dynamic":
                return cls.factor
            raise AttributeError(name)

    class Holder(metaclass=Meta):
        pass

    def change():
        Meta.factor = 5.0
        return lambda: setattr(Meta, "factor", 2.0)

    return Case(
        lambda x: x * Holder.factor + Holder.dynamic, three, {"change the metaclass": change}
    )


@program
def descriptor():
    class Doubled:
        def __init__(self):
            self.factor = 2.0

        def __get__(self, instance, owner):
            return self.factor * (1.0 if instance is None else instance.base)

    class Owner:
        value = Doubled()

        def __init__(self):
            self.base = 3.0

    owner = Owner()
    return Case(lambda x: x * owner.value, three)


@program
def slots():
    class Slotted:
        __slots__ = ("scale",)

        def __init__(self):
            self.scale = 2.0

    slotted = Slotted()

    def change():
        slotted.scale = 5.0
        return lambda: setattr(slotted, "scale", 2.0)

    return Case(lambda x: x * slotted.scale, three, {"change the slot": change})


@program
def object_of_a_closure():
    class Plain:
        def __init__(self):
            self.scale, self.parts = 2.0, [1.0, 2.0]

        def total(self):
            return self.scale + sum(self.parts)

    plain = Plain()
    return Case(lambda x: x * plain.total(), three)


@program
def callable_object():
    class Multiply:
        def __init__(self):
            self.factor = 2.0

        def __call__(self, x):
            return x * self.factor

    multiply = Multiply()
    return Case(lambda x: multiply(x) + 1, three)


@program
def function_attributes():
    def inner(x):
        return x * inner.scale

    inner.scale = 2.0
    return Case(lambda x: inner(x) + getattr(inner, "bias", 0.0), three)


@program
def library_constants():
    def change():
        old = math.tau
        math.tau = 1.0
        return lambda: setattr(math, "tau", old)

    return Case(lambda x: x * math.pi + math.sqrt(4.0) + math.tau, three, {"another tau": change})


@program
def locals_read():
    def f(x):
        scale = 2.0
        return x * locals()["scale"]

    return Case(f, three)


@program
def deleted_local():
    def f(x):
        y = x * 2
        del x
        try:
            return y + x  # noqa: F821
        except UnboundLocalError:
            return y

    return Case(f, three)


@program
def code_replaced():
    def f(x):
        return x * 2

    def inner(x):
        return f(x) + 1

    def other(x):
        return x * 5

    def change():
        old, f.__code__ = f.__code__, other.__code__
        return lambda: setattr(f, "__code__", old)

    return Case(inner, three, {"other code": change})


@program
def nested_functions_with_nonlocal():
    def f(x):
        total = x

        def add(value):
            nonlocal total
            total = total + value

        for k in range(3):
            add(k)
        return total

    return Case(f, three)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How values reach a program: kinds of parameters, and what they may be."""

import contextvars
import dataclasses
import enum
import operator
from collections import OrderedDict, deque, namedtuple

import numpy
import torch
from torch import randn

from capture.corpus import Case, call, program

Point = namedtuple("Point", "x y")


class Mode(enum.Enum):
    DOUBLE = 2
    TRIPLE = 3


class Bits(enum.IntFlag):
    ADD = 1
    SCALE = 2


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    scale: float = 2.0


@dataclasses.dataclass(frozen=True)
class Settings:
    scale: float = 2.0
    bias: float = 1.0


class Plain:
    def __init__(self, scale):
        self.scale = scale


@program
def positional():
    def f(x, y):
        return x * 2 + y

    return Case(f, lambda: call(randn(3), randn(3)))


@program
def keyword_only():
    def f(x, *, scale, bias=None):
        return x * scale if bias is None else x * scale + bias

    return Case(f, lambda: call(randn(3), scale=2.0))


@program
def positional_only():
    def f(x, /, y, *, z=1):
        return x + y * z

    return Case(f, lambda: call(randn(3), y=randn(3)))


@program
def keywords_in_any_order():
    def f(x, y):
        return x - y

    return Case(f, lambda: call(y=randn(3), x=randn(3)))


@program
def defaults():
    def f(x, scale=2.0, shape=(3,), names={"bias": 1.0}):  # noqa: B006
        return x.reshape(shape) * scale + names["bias"]

    return Case(f, lambda: call(randn(3)))


@program
def default_tensor():
    def f(x, offset=torch.ones(3)):  # noqa: B008
        return x + offset

    return Case(f, lambda: call(randn(3)))


@program
def star_args():
    def f(*xs):
        return sum(xs[1:], xs[0]) * len(xs)

    return Case(f, lambda: call(randn(3), randn(3), randn(3)))


@program
def star_kwargs():
    def f(x, **options):
        for name, value in options.items():
            x = x * value if name.startswith("scale") else x + value
        return x

    return Case(f, lambda: call(randn(3), scale=2.0, bias=1.0))


@program
def forwarded():
    def inner(x, y=1.0, *rest, z=2.0, **more):
        return x * y + z + len(rest) + len(more)

    def f(*args, **kwargs):
        return inner(*args, **kwargs)

    return Case(f, lambda: call(randn(3), 2.0, 5, z=3.0, other=1))


@program
def nested_containers():
    def f(batch):
        return batch["a"][0] + batch["b"][1]["c"], [batch["a"][1]]

    return Case(f, lambda: call({"a": [randn(3), randn(2)], "b": (1, {"c": randn(3)})}))


@program
def nones_and_scalars():
    def f(x, mask=None, power=2, scale=0.5, name="relu", flag=True):
        if mask is not None:
            x = x * mask
        x = torch.relu(x) if name == "relu" else torch.tanh(x)
        return x**power * scale if flag else x

    return Case(f, lambda: call(randn(3), None, 3, scale=1.5))


@program
def complex_scalar():
    def f(x, z):
        return x * z.real + z.imag

    return Case(f, lambda: call(randn(3), 1.0 + 2.0j))


@program
def dataclass_argument():
    def f(pair):
        return pair.left * pair.scale

    return Case(f, lambda: call(Pair(randn(3))))


@program
def dataclass_result():
    def f(x):
        return Pair(x * 2, 3.0)

    return Case(f, lambda: call(randn(3)))


@program
def frozen_dataclass():
    def f(x, settings):
        return x * settings.scale + settings.bias

    return Case(f, lambda: call(randn(3), Settings()))


@program
def namedtuple_argument():
    def f(p):
        return Point(p.y * 2, p.x)

    return Case(f, lambda: call(Point(randn(3), randn(3))))


@program
def ordered_dict():
    def f(d):
        total = 0
        for number, value in enumerate(d.values()):
            total = total + value * number
        return OrderedDict(total=total, first=next(iter(d)))

    return Case(f, lambda: call(OrderedDict(b=randn(3), a=randn(3))))


@program
def enum_argument():
    def f(x, mode):
        return x * 2 if mode is Mode.DOUBLE else x * mode.value

    return Case(f, lambda: call(randn(3), Mode.TRIPLE))


@program
def flags():
    def f(x, bits):
        if bits & Bits.ADD:
            x = x + 1
        return x * 3 if Bits.SCALE in bits else x

    return Case(f, lambda: call(randn(3), Bits.ADD | Bits.SCALE))


@program
def object_argument():
    def f(x, settings):
        return x * settings.scale

    return Case(f, lambda: call(randn(3), Plain(2.0)))


@program
def module_argument():
    linear = torch.nn.Linear(3, 3).eval()

    def f(module, x):
        return module(x) + module.in_features

    return Case(f, lambda: call(linear, randn(2, 3)))


@program
def callable_argument():
    def double(x):
        return x * 2

    def f(function, x):
        return function(x) + 1

    return Case(f, lambda: call(double, randn(3)))


@program
def dtype_and_device():
    def f(x, dtype, device):
        return x.to(dtype).to(device) + 1

    return Case(f, lambda: call(randn(3), torch.float64, torch.device("cpu")))


@program
def sizes():
    def f(x, size, dims=(0, 1)):
        return x.expand(size).sum(dims)

    return Case(f, lambda: call(randn(1, 3), torch.Size((2, 3))))


@program
def slice_and_range():
    def f(x, part, steps):
        return sum((x[part] * k for k in steps), x[part] * 0)

    return Case(f, lambda: call(randn(5), slice(1, 4), range(3)))


@program
def numpy_argument():
    def f(x, array):
        return x + torch.from_numpy(array)

    return Case(f, lambda: call(randn(3), numpy.arange(3, dtype=numpy.float32)))


@program
def numpy_scalar():
    def f(x, scale):
        return x * scale

    return Case(f, lambda: call(randn(3), numpy.float32(2.5)))


@program
def set_argument():
    def f(x, names):
        return x * len(names) if "relu" in names else x

    return Case(f, lambda: call(randn(3), {"relu", "tanh"}))


@program
def list_of_tensors():
    def f(xs):
        return torch.cat(xs), torch.stack(xs[:2])

    return Case(f, lambda: call([randn(3), randn(3), randn(3)]))


@program
def the_same_tensor_twice():
    def f(x, y):
        return x is y, (x + y, x * y)

    def arguments():
        x = randn(3)
        return call(x, x)

    return Case(f, arguments)


@program
def the_same_list_twice():
    def f(a, b):
        return a[0] * (2 if a is b else 3)

    def arguments():
        xs = [randn(3)]
        return call(xs, xs)

    return Case(f, arguments)


@program
def unused_argument():
    def f(x, y):
        return x + 1

    return Case(f, lambda: call(randn(3), randn(2, 2)))


@program
def iterator_argument():
    def f(values):
        return sum(value * 2 for value in values)

    return Case(f, lambda: call(iter([randn(3), randn(3)])))


@program
def zero_dim_and_empty():
    def f(x, y):
        return x * 2, y.sum()

    return Case(f, lambda: call(randn(()), randn(0, 3)))


@program
def getters():
    def f(x, item, attribute, method):
        return x * item([2.0, 3.0, 5.0]), attribute(x), method(x)

    def given():
        return call(
            randn(3),
            operator.itemgetter(0),
            operator.attrgetter("dtype"),
            operator.methodcaller("abs"),
        )

    return Case(f, given)


@program
def operators():
    def f(x, overload, packet, function):
        return packet(overload(x)) * float(function(0.5))

    return Case(
        f, lambda: call(randn(3), torch.ops.aten.sin.default, torch.ops.aten.cos, numpy.sin)
    )


@program
def variable_and_union():
    def f(x, variable, kinds):
        return x * variable.get() * (2 if isinstance(3, kinds) else 3)

    variable = contextvars.ContextVar("of an argument", default=2.0)
    return Case(f, lambda: call(randn(3), variable, int | str))


@program
def held_by_an_object():
    def f(x, of):
        return of.scale(of.item([x, x * 2]))

    def given():
        made = Plain(torch.ops.aten.sin.default)
        made.item = operator.itemgetter(0)
        return call(randn(3), made)

    return Case(f, given)


@program
def deque_argument():
    def f(x, items):
        items.append(x * 2)
        return sum(items), len(items)

    return Case(f, lambda: call(randn(3), deque([randn(3), randn(3)], maxlen=2)))

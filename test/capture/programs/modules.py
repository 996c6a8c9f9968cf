# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The protocol of torch.nn.Module."""

import copy

import torch
import torch.nn.functional as F
from torch import nn, randn

from capture.corpus import Case, call, program


class Scaled(nn.Module):
    """Attributes of many kinds."""

    limit = 6.0

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale, self.shift, self.active = 2.0, 1, True
        self.name, self.sizes, self.options = "relu", [1, 2], {"p": 0.5}
        self.plain = torch.ones(3)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("kept", torch.ones(3), persistent=False)
        self.weight = nn.Parameter(torch.ones(3))
        self.missing = None

    def forward(self, x):
        x = self.linear(x) * self.scale + self.shift
        if self.active and self.name == "relu":
            x = torch.relu(x)
        x = x * sum(self.sizes) + self.options["p"] + self.plain
        x = (x - self.mean) * self.kept * self.weight
        return x.clamp(max=self.limit) if self.missing is None else x + self.missing


def two_by_three():
    return call(randn(2, 3))


@program
def attributes():
    return Case(Scaled().eval(), two_by_three)


@program
def sequential():
    return Case(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval(), two_by_three)


@program
def module_list():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

        def forward(self, x):
            for number, layer in enumerate(self.layers):
                x = layer(x) * (number + 1)
            return x + len(self.layers)

    target = Layers()

    def append():
        target.layers.append(nn.Linear(3, 3))
        return lambda: target.layers.__delitem__(-1)

    return Case(target, two_by_three, {"append a layer": append})


@program
def module_dict():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 2)})
            self.which = "b"

        def forward(self, x):
            return self.heads[self.which](x) + sum(head(x) for head in self.heads.values())

    return Case(Heads(), two_by_three)


@program
def parameter_list():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList([torch.ones(3), torch.zeros(3)])
            self.named = nn.ParameterDict({"a": torch.ones(3)})

        def forward(self, x):
            return sum((x * w for w in self.weights), x) + self.named["a"]

    return Case(Mixed(), two_by_three)


@program
def shared_submodule():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.second = self.first

        def forward(self, x):
            return self.second(self.first(x)) * (2 if self.first is self.second else 3)

    return Case(Shared(), two_by_three)


@program
def shared_parameter():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(3, 3), nn.Linear(3, 3)
            self.decoder.weight = self.encoder.weight

        def forward(self, x):
            return self.decoder(self.encoder(x))

    return Case(Tied(), two_by_three)


@program
def training_flag():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Dropout(0.5)

        def forward(self, x):
            return self.inner(x) * (2 if self.training else 1)

    return Case(Noisy().eval(), two_by_three)


@program
def batch_norm_in_training():
    return Case(nn.BatchNorm1d(3), two_by_three)


@program
def batch_norm_in_evaluation():
    return Case(nn.BatchNorm1d(3).eval(), two_by_three)


@program
def forward_hook():
    target = nn.Linear(3, 3)
    target.register_forward_hook(lambda module, args, output: output * 2)
    return Case(target, two_by_three)


@program
def hooks_come_and_go():
    target = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def add(register):
        return lambda: register().remove

    return Case(
        target,
        two_by_three,
        {
            "forward hook": add(lambda: target.register_forward_hook(lambda m, a, out: out + 1)),
            "pre-hook": add(lambda: target[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,))),
            "hook with keywords": add(
                lambda: target[1].register_forward_hook(lambda m, a, k, o: o - 1, with_kwargs=True)
            ),
            "hook on all modules": add(
                lambda: nn.modules.module.register_module_forward_hook(lambda m, a, out: out * 3)
            ),
            "hook always called": add(
                lambda: target[0].register_forward_hook(lambda m, a, o: o * 5, always_call=True)
            ),
        },
    )


@program
def pre_hook_with_keywords():
    class Add(nn.Module):
        def forward(self, x, y=1.0):
            return x + y

    target = Add()
    target.register_forward_pre_hook(lambda m, a, k: (a, {"y": 3.0}), with_kwargs=True)
    return Case(target, two_by_three)


@program
def weight_norm():
    return Case(torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), two_by_three)


@program
def spectral_norm_in_training():
    return Case(nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)), two_by_three)


@program
def own_parametrization():
    class Symmetric(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 0.5

        def forward(self, w):
            return (w + w.T) * self.factor

    target = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(target, "weight", Symmetric())
    return Case(target, two_by_three)


@program
def getattr_of_a_module():
    class Proxy(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.table = {"scale": 2.0}

        def __getattr__(self, name):
            table = self.__dict__.get("table", {})
            return table[name] if name in table else super().__getattr__(name)

        def forward(self, x):
            return self.inner(x) * self.scale

    return Case(Proxy(), two_by_three)


@program
def property_of_a_module():
    class Sized(nn.Module):
        def __init__(self):
            super().__init__()
            self._width = 3.0

        @property
        def width(self):
            return self._width * 2

        def forward(self, x):
            return x * self.width

    return Case(Sized(), two_by_three)


@program
def methods_and_static_methods():
    class Helpers(nn.Module):
        factor = 3

        @staticmethod
        def double(x):
            return x * 2

        @classmethod
        def times(cls, x):
            return x * cls.factor

        def forward(self, x):
            return self.double(x) + self.times(x)

    return Case(Helpers(), two_by_three)


@program
def bound_method():
    module = Scaled()

    return Case(module.forward, two_by_three)


@program
def inheritance():
    class Base(nn.Module):
        gain = 2.0

        def transform(self, x):
            return x * self.gain

        def forward(self, x):
            return self.transform(x) + 1

    class Derived(Base):
        def transform(self, x):
            return super().transform(x) * 3

        def forward(self, x):
            return super().forward(x) - 1

    return Case(Derived(), two_by_three)


@program
def class_replaced():
    class One(nn.Module):
        def forward(self, x):
            return x + 1

    class Two(One):
        def forward(self, x):
            return x + 2

    target = One()

    def change():
        target.__class__ = Two
        return lambda: setattr(target, "__class__", One)

    return Case(nn.Sequential(target), two_by_three, {"another class": change})


@program
def dict_replaced():
    target = Scaled().eval()

    def change():
        old = target.__dict__
        target.__dict__ = {**old, "scale": 7.0}
        return lambda: setattr(target, "__dict__", old)

    return Case(target, two_by_three, {"another __dict__": change})


@program
def named_parameters_walked():
    class Penalty(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))

        def forward(self, x):
            norm = sum(p.pow(2).sum() for n, p in self.named_parameters() if "weight" in n)
            return self.inner(x) + norm + len(list(self.modules()))

    return Case(Penalty(), two_by_three)


@program
def state_dict_read():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x):
            return sum((x * v.sum() for v in self.state_dict().values()), x)

    return Case(Reader(), two_by_three)


@program
def function_attribute():
    class Activated(nn.Module):
        def __init__(self):
            super().__init__()
            self.activation = F.relu

        def forward(self, x):
            return self.activation(x) + 1

    return Case(Activated(), two_by_three)


@program
def module_of_a_closure():
    linear = nn.Linear(3, 3)

    def f(x):
        return linear(x) * linear.weight.shape[0]

    return Case(f, two_by_three)


@program
def recurrent():
    return Case(nn.GRU(3, 4, batch_first=True).eval(), lambda: call(randn(2, 5, 3)))


@program
def attention():
    target = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    return Case(target, lambda: call(randn(2, 5, 8)))


@program
def lazy_layer():
    return Case(nn.LazyLinear(4), two_by_three)


@program
def copied_module():
    target = copy.deepcopy(nn.Sequential(nn.Linear(3, 3), nn.GELU()))
    return Case(target, two_by_three)


@program
def module_with_state_hooks():
    class Extra(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2

        def get_extra_state(self):
            return self.k

        def set_extra_state(self, state):
            self.k = state

        def forward(self, x):
            return x * self.get_extra_state()

    return Case(Extra(), two_by_three)


@program
def parameter_attributes():
    class Marked(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.weight.scale = 3.0

        def forward(self, x):
            return x * self.weight * getattr(self.weight, "scale", 1.0)

    return Case(Marked(), two_by_three)


@program
def parameter_metadata():
    class Metadata(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 3))

        def forward(self, x):
            w = self.weight
            factor = 2 if w.is_contiguous() else 3
            return (x @ w.detach()) * factor * w.size(0) * (5 if w.requires_grad else 7)

    return Case(Metadata(), two_by_three)

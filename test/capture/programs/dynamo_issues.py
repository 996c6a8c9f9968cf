# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of the kinds in which TorchDynamo has been silently wrong; a number is that of the
issue in pytorch/pytorch."""

import contextlib
import types

import torch
from torch import nn, randn

from capture.corpus import Case, call, program


class State:
    factor = 1.0


SHARED = [1.0, 2.0, 3.0]


def three():
    return call(randn(3))


@program
def identity_of_mutable_objects_196173():
    holder = types.SimpleNamespace(left=object(), right=object())
    holder.current = holder.left

    def f(x):
        if holder.current is holder.left:
            holder.current = holder.right
            return x + 1
        holder.current = holder.left
        return x - 1

    return Case(f, three)


@program
def identity_read_only_196173():
    holder = types.SimpleNamespace(left=object(), right=object())
    holder.current = holder.left

    def swap():
        holder.current = holder.right
        return lambda: setattr(holder, "current", holder.left)

    return Case(lambda x: x + 1 if holder.current is holder.left else x - 1, three, {"swap": swap})


@program
def method_of_a_local_class_writes_197896():
    state = {"n": 0}

    def f(x):
        class Helper:
            def touch(self):
                state["n"] += 1

        Helper().touch()
        return x * 2

    return Case(f, three)


@program
def context_manager_of_a_local_class_writes_197896():
    log = []

    def f(x):
        class Scope:
            def __enter__(self):
                log.append("enter")

            def __exit__(self, *error):
                log.append("exit")

        with Scope():
            return x * 2

    return Case(f, three)


@program
def submodule_shadowed_197859():
    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = nn.Linear(3, 3, bias=False)

        def forward(self, x):
            return self.sub(x)

    target = Wrapper()

    def shadow():
        replacement = nn.Linear(3, 3, bias=False)
        nn.init.constant_(replacement.weight, 5.0)
        object.__setattr__(target, "sub", replacement)
        return lambda: object.__delattr__(target, "sub")

    return Case(target, three, {"shadow": shadow})


@program
def parameter_and_buffer_shadowed_197860():
    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.register_buffer("bias", torch.zeros(3))

        def forward(self, x):
            return x * self.weight + self.bias

    target = Wrapper()

    def shadow(name):
        def change():
            object.__setattr__(target, name, torch.full((3,), 5.0))
            return lambda: object.__delattr__(target, name)

        return change

    def shadow_in_class():
        Wrapper.weight = torch.full((3,), 7.0)
        return lambda: delattr(Wrapper, "weight")

    changes = {"weight": shadow("weight"), "bias": shadow("bias"), "class": shadow_in_class}
    return Case(target, three, changes)


@program
def class_attribute_changed_176851():
    return Case(lambda x: x * State.factor, three)


@program
def class_list_appended_169253():
    class Model(nn.Module):
        items = []

        def forward(self, x):
            Model.items.append(x)

    return Case(Model(), three)


@program
def class_list_read_169253():
    class Model(nn.Module):
        items = [1.0]

        def forward(self, x):
            return x * len(Model.items) + sum(self.items)

    return Case(Model(), three)


@program
def argument_that_is_a_global_120861():
    def f(values, x):
        return x + SHARED[-1] + values[-1] + (1 if values is SHARED else 0)

    return Case(f, lambda: call(SHARED, randn(3)))


@program
def defaults_of_functions_178365():
    def make(offset):
        def mask(x, offset=offset):
            return x + offset

        return mask

    masks = [make(1.0), make(2.0)]

    def swap():
        masks.reverse()
        return masks.reverse

    return Case(lambda x: masks[0](x) * 2, three, {"swap": swap})


@program(grad=True)
def requires_grad_of_parameters_139476():
    target = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))

    def freeze():
        target[1].requires_grad_(False)
        return lambda: target[1].requires_grad_(True)

    return Case(target, lambda: call(randn(2, 3)), {"freeze": freeze})


@program
def list_grows_while_it_is_read_175855():
    def f(x):
        values = [x.sum()]

        def grow():
            for item in values:
                if len(values) < 3:
                    values.append(item + 1)
                yield item

        return torch.stack(list(grow())).sum()

    return Case(f, three)


@program
def generator_starts_late_134030():
    def stepped(x):
        try:
            torch.set_default_dtype(torch.float64)
            yield x + torch.ones(3)
        finally:
            torch.set_default_dtype(torch.float32)

    def f(x):
        steps = stepped(x)
        before = torch.ones(1)
        return before, next(steps), steps.close()

    return Case(f, three)


@program
def context_manager_writes_128651():
    log = []

    @contextlib.contextmanager
    def logged():
        try:
            yield
        finally:
            log.append(4)

    def f(x):
        with logged():
            y = x * 2
        return y

    return Case(f, three)


@program
def buffer_view_kept_111785():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("whole", torch.zeros(4, 3))
            self.current = self.whole[0:1]

        def forward(self, x):
            self.current.copy_(x)
            return self.whole * 2

    target = Cache()

    def select():
        target.current = target.whole[2:3]
        return lambda: setattr(target, "current", target.whole[0:1])

    return Case(target, lambda: call(randn(1, 3)), {"select": select})


@program
def plain_tensor_attribute_replaced_115774():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = torch.tensor([0, 0])

        def forward(self, x, position):
            self.cache[position] = x
            return self.cache

    target = Cache()

    def reset():
        old, target.cache = target.cache, torch.tensor([0, 0])
        return lambda: setattr(target, "cache", old)

    return Case(target, lambda: call(torch.tensor([2]), torch.tensor([0])), {"reset": reset})


@program
def adapter_switched_off_124717():
    class Adapter(nn.Module):
        def __init__(self):
            super().__init__()
            self.disabled = False

        def forward(self, x):
            out = x * x
            return out if self.disabled else out + 1

    target = Adapter()

    def disable():
        target.disabled = True
        return lambda: setattr(target, "disabled", False)

    return Case(target, three, {"disable": disable})

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists, dicts, sets and those of `collections`, read by length, order and item, and filled."""

import array
import collections
import copy
import heapq
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque

import torch
from torch import randn

from capture.corpus import Case, call, program


def three():
    return call(randn(3))


@program
def list_by_length():
    values = [5, 6, 7]
    return Case(lambda x: x * len(values), three)


@program
def list_by_item():
    values = [5.0, 6.0, 7.0]
    return Case(lambda x: x * values[1] + values[-1], three)


@program
def list_truth():
    values = []
    return Case(lambda x: x * 2 if values else x * 3, three)


@program
def list_membership():
    values = ["a", "b"]
    return Case(lambda x: x * 2 if "c" in values else x * 3, three)


@program
def list_slices():
    values = [1.0, 2.0, 3.0, 4.0]
    return Case(lambda x: x * sum(values[1:3]) + values[::-1][0], three)


@program
def list_of_lists():
    values = [[1.0, 2.0], [3.0]]
    return Case(lambda x: x * values[0][1] + sum(map(len, values)), three)


@program
def list_of_modules():
    layers = [torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)]

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    return Case(f, three)


@program
def list_built():
    def f(x):
        out = []
        for k in range(3):
            out.append(x * k)
        out.insert(0, x)
        out.extend([x + 1])
        last = out.pop()
        out.reverse()
        return out, last, len(out)

    return Case(f, three)


@program
def list_sorted():
    values = [3.0, 1.0, 2.0]

    def f(x):
        ordered = sorted(values, key=lambda value: -value)
        return x * ordered[0] + max(values) - min(values)

    return Case(f, three)


@program
def tuple_unpacked():
    pair = (2.0, (3.0, 4.0))

    def f(x):
        first, (second, *rest) = pair
        return x * first + second + rest[0]

    return Case(f, three)


@program
def dict_by_key():
    table = {"a": 1.0, "b": 2.0, 3: 4.0}
    return Case(lambda x: x * table["a"] + table[3], three)


@program
def dict_by_order():
    table = {"a": 1.0, "b": 2.0}

    def f(x):
        for number, (name, value) in enumerate(table.items()):
            x = x * value + number * len(name) * ord(name)
        return x

    return Case(f, three)


@program
def dict_default_of_get():
    table = {}
    return Case(lambda x: x * table.get("a", 2.0), three)


@program
def dict_merged():
    first, second = {"a": 1.0}, {"b": 2.0}
    return Case(lambda x: x * sum((first | second).values()) + len({**first, **second}), three)


@program
def dict_of_tensors():
    table = {"w": torch.ones(3), "b": torch.zeros(3)}
    return Case(lambda x: x * table["w"] + table["b"], three)


@program
def dict_with_other_keys():
    table = {(1, 2): 2.0, None: 3.0, True: 4.0}
    return Case(lambda x: x * table[(1, 2)] + table[None] + table[1], three)


@program
def set_of_strings():
    names = {"a", "b"}
    return Case(lambda x: x * len(names) + (1 if "a" in names else 2), three)


@program
def set_operations():
    first, second = {1, 2, 3}, frozenset({2, 3, 4})
    return Case(
        lambda x: x * len(first & second) + max(first | second) - min(first ^ second), three
    )


@program
def set_of_objects():
    class Item:
        def __init__(self, value):
            self.value = value

    item = Item(2.0)
    items = {item}

    def change():
        item.value = 5.0
        return lambda: setattr(item, "value", 2.0)

    return Case(lambda x: x * sum(each.value for each in items), three, {"change it": change})


@program
def deque_read():
    values = deque([1.0, 2.0, 3.0], maxlen=3)

    def push():
        values.append(9.0)
        return lambda: (values.clear(), values.extend([1.0, 2.0, 3.0]))

    return Case(lambda x: x * values[0] + values[-1] + len(values), three, {"push": push})


@program
def deque_filled():
    window = deque(maxlen=2)

    def f(x):
        window.append(x * 2)
        return sum(window)

    return Case(f, three)


@program
def defaultdict_read():
    table = defaultdict(lambda: 2.0, a=3.0)
    return Case(lambda x: x * table["a"], three)


@program
def defaultdict_fills():
    table = defaultdict(list)

    def f(x):
        table["seen"].append(1)
        return x * len(table["seen"])

    return Case(f, three)


@program
def counter():
    counts = Counter("abca")
    return Case(lambda x: x * counts["a"] + counts["missing"], three)


@program
def counter_most_common():
    counts = Counter(a=1, b=2)
    return Case(lambda x: x * counts.most_common(1)[0][1], three)


@program
def ordered_dict_order():
    table = OrderedDict(a=1.0, b=2.0)

    def move():
        table.move_to_end("a")
        return lambda: table.move_to_end("b")

    return Case(lambda x: x * next(iter(table.values())), three, {"move to the end": move})


@program
def chain_map():
    first, second = {"a": 2.0}, {"a": 3.0, "b": 4.0}
    chained = ChainMap(first, second)
    return Case(lambda x: x * chained["a"] + chained["b"], three)


@program
def user_dict():
    class Table(collections.UserDict):
        pass

    table = Table(a=2.0)
    return Case(lambda x: x * table["a"], three)


@program
def list_subclass():
    class Values(list):
        scale = 2.0

        def total(self):
            return sum(self) * self.scale

    values = Values([1.0, 2.0])
    return Case(lambda x: x * values.total(), three)


@program
def dict_subclass():
    class Options(dict):
        def __getattr__(self, name):
            return self[name]

    options = Options(scale=2.0)
    return Case(lambda x: x * options.scale, three)


@program
def mapping_proxy():
    table = {"a": 2.0}
    view = types.MappingProxyType(table)

    def change():
        table["a"] = 5.0
        return lambda: table.__setitem__("a", 2.0)

    return Case(lambda x: x * view["a"], three, {"change the dict behind it": change})


@program
def dict_view_kept():
    table = {"a": 2.0}
    values = table.values()

    def change():
        table["b"] = 5.0
        return lambda: table.pop("b")

    return Case(lambda x: x * sum(values), three, {"change the dict behind it": change})


@program
def simple_namespace():
    options = types.SimpleNamespace(scale=2.0, inner=types.SimpleNamespace(bias=1.0))
    return Case(lambda x: x * options.scale + options.inner.bias, three)


@program
def array_and_bytes():
    values, text = array.array("d", [1.0, 2.0]), bytearray(b"ab")

    def change():
        values[0] = 5.0
        return lambda: values.__setitem__(0, 1.0)

    def change_text():
        text[0] = 99
        return lambda: text.__setitem__(0, 97)

    changes = {"an item": change, "a byte": change_text}
    return Case(lambda x: x * values[0] + text[0], three, changes)


@program
def heap():
    def f(x):
        values = [3, 1, 2]
        heapq.heapify(values)
        heapq.heappush(values, 0)
        return x * heapq.heappop(values) + heapq.nlargest(1, values)[0]

    return Case(f, three)


@program
def copies():
    nested = {"a": [1.0, 2.0]}

    def f(x):
        mine = copy.deepcopy(nested)
        mine["a"].append(3.0)
        return x * sum(mine["a"]) + len(copy.copy(nested)["a"])

    return Case(f, three)


@program
def equality_of_containers():
    first, second = [1, [2]], [1, [2]]
    return Case(lambda x: x * 2 if first == second else x * 3, three)


@program
def class_with_container_protocol():
    class Items:
        def __init__(self):
            self.values = [1.0, 2.0]

        def __len__(self):
            return len(self.values)

        def __getitem__(self, index):
            return self.values[index]

        def __contains__(self, value):
            return value in self.values

        def __iter__(self):
            return iter(self.values)

    items = Items()
    return Case(lambda x: x * len(items) + sum(items) + items[0] * (2.0 in items), three)


@program
def recursive_list():
    values = [2.0]
    values.append(values)
    return Case(lambda x: x * values[1][1][0], three)


@program
def results_of_classes_in_c():
    names = {1, 5}

    def f(x):
        made = defaultdict(list)
        made["a"].append(x)
        return {3, *names}, deque([x + 1, len(names)], maxlen=2), made

    return Case(f, three)


@program
def tensors_as_keys():
    factors = [2.0, 3.0]

    def f(x):
        y = x + 1
        by_tensor = {x: factors[0], y: factors[1]}
        return y * by_tensor[y] + x * by_tensor[x]

    return Case(f, three)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What observed calls read of NumPy, sets of objects and data that is set: each with its guard."""

import inspect
import random

import numpy
import pytest
import torch
from observing import answers, compiled, is_without_breaks
from torch import nn
from torch._dynamo import mutation_guard

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


TABLE = numpy.arange(6, dtype=numpy.float32)
SCALE = numpy.float32(2.5)
ROWS = numpy.int64(3)
NAMES = [(number, str(number)) for number in range(6)]
ARRAYS = {
    "numbers": lambda x: x * int(numpy.floor(3.7)) + numpy.prod([2, 3]) * SCALE,
    "an array of the call": lambda x: torch.from_numpy(numpy.arange(6.0)) * x,
    "an array from outside": lambda x: x + torch.from_numpy(TABLE[:6]) + float(TABLE.sum()),
    "a size": lambda x: x.reshape(ROWS, -1) * TABLE.shape[0],
    "items that are set": lambda x: x * torch.from_numpy(filled(6)),
    "a tensor's own": lambda x: torch.tensor(x.numpy() * 2 + 1),
    "items for Python": lambda x: (
        x * sum(map(int, TABLE)) + sorted(TABLE, key=lambda each: -each)[0] + (3.0 in TABLE)
    ),
    "an item as an index": lambda x: x * NAMES[TABLE[:6].argmax()][0] + [1, 2, 3][ROWS - 1],
    "items as arguments": lambda x: x * max(*TABLE) + torch.tensor([*TABLE]) + second(*TABLE),
    "a comparison": lambda x: torch.from_numpy(numpy.where(TABLE > 2, TABLE, 0 * TABLE)) + x,
}


def second(first, item, *others):
    return item


def filled(size):
    made = numpy.zeros(size)
    made[1] = 2.0
    made += 1
    return made


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_are_read_anew(what, monkeypatch):
    program = ARRAYS[what]
    fast = compiled(program)

    def agrees():
        x = torch.randn(6)
        assert torch.equal(fast(x), program(x)), what

    for _ in range(3):
        agrees()
    assert answers(fast), weft.stats(fast)
    old = TABLE.copy()
    TABLE[2] = 50.0
    agrees()
    TABLE[:] = old
    changes = {"TABLE": TABLE.astype(numpy.float64), "SCALE": numpy.float32(3.5),
               "ROWS": numpy.int64(2)}  # fmt: skip
    for name, value in changes.items():
        monkeypatch.setitem(globals(), name, value)
        agrees()
    monkeypatch.setitem(globals(), "TABLE", numpy.arange(6.0))
    agrees()


def test_equal_numbers_of_other_types_are_other_numbers():
    fast = compiled(lambda x, k: x * k)
    x = torch.ones(2, dtype=torch.int64)
    for number in (2, 2.0, numpy.float32(2), numpy.float64(2), numpy.int64(2), -0.0, 0.0,
                   numpy.float64(0.0), numpy.float64(-0.0)):  # fmt: skip
        for _ in range(2):
            result, expected = fast(x, number), x * number
            assert result.dtype == expected.dtype and torch.equal(
                torch.signbit(result.double()), torch.signbit(expected.double())
            )


def test_arrays_from_outside_are_not_written():
    array = numpy.zeros(3)
    programs = [
        lambda x: [array.__setitem__(0, 1.0), x][1],
        lambda x: torch.from_numpy(array).add_(1) + x,
        lambda x: x + torch.from_numpy(numpy.add(array, 1, array)),
    ]
    for program in programs:
        fast = compiled(program)
        for _ in range(3):
            fast(torch.ones(3))
        assert weft.stats(fast)["graphs"] == 0


@pytest.mark.parametrize("draw", [random.random, numpy.random.rand])
def test_generators_of_numbers_go_on_as_in_eager(draw):
    """Also where the number sends a replay another way half way."""
    fast = compiled(lambda x: x * 2 if draw() < 0.5 else x * 3)
    for seed in range(8):
        states = []
        for function in (fast, lambda x: x * 2 if draw() < 0.5 else x * 3):
            random.seed(seed), numpy.random.seed(seed)
            value = function(torch.ones(2))
            states.append((value.tolist(), random.random(), numpy.random.rand()))
        assert states[0] == states[1]


class Clamped(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-2, 2, 5))

    def forward(self, x):
        self.weight.data = torch.clamp(self.weight.data, -1, 1)
        return x * self.weight if x.sum() > 0 else x - self.weight


def test_data_that_is_set_is_set_by_each_call():
    model, twin = Clamped(), Clamped()
    fast = compiled(model)
    for number in range(8):
        x = torch.ones(5) * (-1) ** (number // 3)
        assert torch.equal(fast(x), twin(x)) and torch.equal(model.weight, twin.weight)
        with torch.no_grad():
            model.weight.mul_(3)
            twin.weight.mul_(3)
    assert weft.stats(fast)["hits"] > 0


def test_data_of_another_form_ends_the_capture():
    model = nn.Linear(2, 2)

    def f(x):
        model.weight.data = x
        return model.weight.shape[0]

    fast = compiled(f)
    assert [fast(torch.ones(n, 2)) for n in (2, 3, 3, 2)] == [2, 3, 3, 2]


def test_identities_that_sets_compare_are_guarded():
    def different(*given):
        return given[0] * len({id_free for id_free in given}) if given else None

    class Item:
        pass

    def count(x, first, second):
        seen = set()
        seen.add(first)
        return x * (2 if second in seen else 3)

    a, b, x = Item(), Item(), torch.ones(1)
    fast = compiled(count)
    for first, second in ((a, b), (a, b), (a, a), (b, b), (b, a)) * 2:
        assert fast(x, first, second) == count(x, first, second)
    assert weft.stats(fast)["hits"] > 0
    fast = compiled(different)
    y = torch.ones(1)
    for given in ((x, y), (x, y), (x, x), (y, y), (y, x)) * 2:
        assert fast(*given) == different(*given)


def test_modules_and_parameters_are_walked():
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, nn.ReLU(), nn.Linear(3, 3))

    def f(x):
        for _, each in model.named_parameters():
            x = x + each.sum()
        return x * len(list(model.modules()))

    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        assert torch.equal(fast(x), f(x))
    assert answers(fast)
    model[2] = shared
    assert torch.equal(fast(x), f(x))
    shared.bias = shared.weight
    assert torch.equal(fast(x), f(x))


def test_sorting_by_a_tensor_ends_the_capture():
    fast = compiled(lambda x, y: sorted([x, y], key=lambda each: each.sum())[0] * 2)
    small, large = torch.ones(1), torch.ones(1) * 5
    for pair in ((small, large), (large, small)) * 2:
        assert fast(*pair) == 2
    fast = compiled(lambda x: sorted([(2, x), (1, x * 2)], key=lambda each: each[0])[0][1])
    assert [fast(large).item() for _ in range(3)] == [10] * 3 and answers(fast)


@pytest.mark.parametrize("tagged", [False, True])
def test_constructors_of_tensors(tagged, monkeypatch):
    # Once torch.compile has been used, torch notes which modules have been made since.
    closure = inspect.getclosurevars(nn.Module.__init__).nonlocals
    monkeypatch.setattr(nn.Module, "__init__", closure.get("init", nn.Module.__init__))
    if tagged:
        monkeypatch.setattr(nn.Module, "__setstate__", nn.Module.__setstate__)
        monkeypatch.setattr(nn.Module, "___needs_generation_tag_patch", True, raising=False)
        mutation_guard.install_generation_tagging_init()

    def f(x):
        made = torch.FloatTensor([1.0, 2.0]) + torch.Tensor([3.0, 4.0])
        return torch.autograd.Variable(x * 2) + made + nn.Linear(2, 2)(x) * 0

    fast = compiled(f)
    for _ in range(3):
        x = torch.randn(2)
        assert torch.allclose(fast(x), x * 2 + torch.tensor([4.0, 6.0]))
    assert answers(fast) and (nn.Module.__init__.__name__ == "patched_init") == tagged


def test_scripted_functions_are_operations():
    unit = torch.jit.CompilationUnit(
        "def doubled(x):\n  return x * 2 + x.sum()\ndef fills(x):\n  x.add_(1)\n  return x\n"
    )
    for function, whole in ((unit.doubled, True), (unit.fills, False)):
        fast = compiled(lambda x, function=function: function(x))
        for _ in range(4):
            x, y = torch.ones(3), torch.ones(3)
            assert torch.equal(fast(x), function(y)) and torch.equal(x, y)
        assert answers(fast) == whole


NUMBERS = {
    "scaled": lambda x: x * x.sum().item() + float(x.max()) / 2,
    "compared": lambda x: x * 2 if x.sum().item() > 0 else x * 3,
    "given": lambda x: (x, x.sum().item(), [float(x.max())]),
    "formatted": lambda x: (x, f"{x.sum().item():.1f}"),
    "a key": lambda x: (x, {x.sum().item(): 1}),
    "rounded": lambda x: x * int(x.sum().item()),
    "in a container": lambda x: x * (2 if x.sum().item() in [3.0, 6.0] else 5),
    "in a tuple": lambda x: x * (2 if (x.sum().item(), 1) == (3.0, 1) else 5),
    "largest": lambda x: x * max(x.sum().item(), 1.0),
    "a method": lambda x: x * (2 if (x.sum().item() / 3).is_integer() else 5),
    "removed": lambda x: [each.remove(3.0) or x * len(each) for each in [[x.sum().item(), 3.0]]][0],
    "a shape": lambda x: x.new_zeros(int(x.sum().item() + 6)),
    "drawn": lambda x: x * random.uniform(1, 2) + numpy.random.rand(),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_numbers_that_operations_gave_are_of_each_call(what):
    program = NUMBERS[what]
    fast = compiled(program)
    for value in (1.0, 2.0, 1.0, 0.5, -1.0, 2.0, 1.25):
        results = []
        for function in (fast, program):
            random.seed(value), numpy.random.seed(int(value * 4) + 9)
            results.append(function(torch.ones(3) * value))
        assert repr(results[0]) == repr(results[1]), value
    if what in ("scaled", "given", "drawn"):
        assert answers(fast) and weft.stats(fast)["graphs"] == 1


def test_each_path_that_data_takes_becomes_a_program():
    def f(x):
        return x * 2 if x.sum() > 0 else x * 3 if x.sum() < -5 else x * 4

    fast = compiled(f)
    for number in range(12):
        x = torch.ones(3) * (1, -1, -4)[number % 3]
        assert torch.equal(fast(x), f(x))
    stats = weft.stats(fast)
    assert stats["graphs"] == 3 and stats["hits"] == 9 and not stats["breaks"]


def test_operators_of_torch_ops():
    fast = compiled(lambda x: torch.ops.aten.relu.default(x) + torch.ops.aten.sigmoid(x))
    writes = compiled(lambda x: torch.ops.aten.add_.Tensor(x, x))
    for _ in range(3):
        x, y = torch.randn(3), torch.ones(3)
        assert torch.equal(fast(x), torch.relu(x) + torch.sigmoid(x))
        assert writes(y) is y and y.tolist() == [2, 2, 2]
    assert answers(fast) and weft.stats(writes)["graphs"] == 0


def test_parameters_are_written_where_gradients_are_off():
    weight, twin = (nn.Parameter(torch.ones(3)) for _ in range(2))

    def f(x, weight=weight):
        with torch.no_grad():
            weight.mul_(1.5)
        return x * weight

    fast = compiled(lambda x: f(x))
    for _ in range(4):
        x = torch.randn(3)
        assert torch.equal(fast(x), f(x, twin)) and torch.equal(weight, twin)
        assert weight._version == twin._version and fast(x).requires_grad
        f(x, twin)
    assert answers(fast)


class Refusal(Exception):
    def __init__(self, message, value):
        super().__init__(message)
        self.value = value


ERRORS = {
    "an error": lambda x: (x + 1, ValueError("a size", 3)),
    "without arguments": lambda x: (x + 1, RuntimeError()),
    "with a tensor": lambda x: KeyError(x * 2, "key"),
    "of a class of its own": lambda x: Refusal("no", x * 3),
    "twice": lambda x: [ValueError(x + 1)] * 2,
}


@pytest.mark.parametrize("name", list(ERRORS))
def test_errors_that_are_given_and_not_raised(name):
    f = ERRORS[name]
    fast = compiled(f)
    for _ in range(3):
        x = torch.randn(3)
        found, wanted = fast(x), f(x)
        assert isinstance(found, type(wanted))
        if isinstance(found, list):
            assert found[0] is found[1]
            found, wanted = found[0], wanted[0]
        if isinstance(found, tuple):
            found, wanted = found[1], wanted[1]
        assert type(found) is type(wanted) and list(vars(found)) == list(vars(wanted))
        for mine, other in zip(
            [*found.args, *vars(found).values()], [*wanted.args, *vars(wanted).values()]
        ):
            assert torch.equal(mine, other) if isinstance(mine, torch.Tensor) else mine == other
        assert found.__traceback__ is None and found.__context__ is None
    assert answers(fast)


def test_errors_that_were_raised_and_those_that_C_fills_are_left_to_pytorch():
    def caught(x):
        try:
            raise ValueError("no")
        except ValueError as error:
            return x + 1, error

    for f in (caught, lambda x: (x + 1, OSError(2, "no file")), lambda x: (x, StopIteration(1))):
        fast, x = compiled(f), torch.ones(2)
        for _ in range(2):
            found, wanted = fast(x)[1], f(x)[1]
            assert found.args == wanted.args
            assert (found.__traceback__ is None) == (wanted.__traceback__ is None)
        assert weft.stats(fast)["graphs"] == 0


def test_the_dict_of_a_module_ends_a_capture():
    fast, x = compiled(lambda x: x * len(inspect.__dict__["__name__"])), torch.ones(2)
    assert torch.equal(fast(x), x * 7) and torch.equal(fast(x), x * 7)


@pytest.mark.parametrize(
    "read",
    [
        lambda table: sorted(table, reverse=True)[1],
        lambda table: max(table),
        lambda table: min(table),
        lambda table: sum(table),
        lambda table: any(table > 6),
        lambda table: all(table < 8),
    ],
)
def test_functions_of_python_over_an_array_see_what_it_holds_now(read):
    table = numpy.arange(6, dtype=numpy.float32)
    fast, x = compiled(lambda x: x * float(read(table))), torch.arange(3.0)
    for value in [4, 4, 9, 9, 5]:
        table[2] = value
        assert torch.equal(fast(x), x * float(read(table)))
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] >= 2

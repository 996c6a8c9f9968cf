# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that write attributes: those that settle run compiled from then on, others never do."""

import copy
import types

import pytest
import torch
from counting import latest, programs

import weft
from weft.capture.tracing import Tracing

pytestmark = pytest.mark.usefixtures("no_grad")

nn = torch.nn


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("bidirectional", "layers"), [(False, 1), (True, 2)])
def test_recurrent_modules(kind, batch_first, bidirectional, layers, compiled_only):
    model = kind(5, 7, layers, batch_first=batch_first, bidirectional=bidirectional).eval()
    weights = list(model._flat_weights)
    compiled = weft.compile(model)
    for _ in range(2):
        x = torch.randn(3, 4, 5)
        torch.testing.assert_close(compiled(x), model(x))
    assert programs(compiled) == 1
    assert all(a is b for a, b in zip(model._flat_weights, weights, strict=True))
    model.weight_hh_l0.mul_(1.5)
    torch.testing.assert_close(compiled(x), model(x))


def test_recurrent_module_with_another_parameter():
    model = nn.GRU(5, 7).eval()
    compiled, x = weft.compile(model), torch.randn(3, 4, 5)
    compiled(x)
    model.weight_ih_l0 = nn.Parameter(torch.randn_like(model.weight_ih_l0))
    for _ in range(3):  # the first of these brings the module's own list up to date
        torch.testing.assert_close(compiled(x), model(x))
    assert programs(compiled) == 2
    assert sum(compiled.eager_reasons.values()) <= 1


def test_recurrent_module_of_a_function(compiled_only):
    model = nn.GRU(5, 7).eval()
    compiled = weft.compile(lambda x: model(x)[0] + 1)
    x = torch.randn(3, 4, 5)
    torch.testing.assert_close(compiled(x), model(x)[0] + 1)
    assert all(type(weight) is nn.Parameter for weight in model._flat_weights)
    torch.testing.assert_close(compiled(x), model(x)[0] + 1)


def small_classifier():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        vocab_size=50,
        max_position_embeddings=16,
        num_labels=3,
    )
    return transformers.BertForSequenceClassification(config).eval()


def test_classifier_that_notes_its_kind_of_problem():
    model = small_classifier()
    twin = copy.deepcopy(model)
    compiled = weft.compile(model)
    for _ in range(3):
        tokens, labels = torch.randint(0, 50, (2, 7)), torch.tensor([2, 0])
        expected, found = twin(tokens, labels=labels), compiled(tokens, labels=labels)
        torch.testing.assert_close(found.loss, expected.loss)
        torch.testing.assert_close(found.logits, expected.logits)
        assert model.config.problem_type == "single_label_classification"
    assert programs(compiled) == 1
    assert not compiled.eager_reasons  # the first call, which notes it, is PyTorch's anyway
    # Another kind of problem is another program.
    labels = torch.rand(2, 3)
    for each in (model, twin):
        each.config.problem_type = "multi_label_classification"
    expected, found = twin(tokens, labels=labels), compiled(tokens, labels=labels)
    torch.testing.assert_close(found.loss, expected.loss)


class Lazy(nn.Module):
    """Makes what it needs in the first call."""

    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(4.0)
        return x + self.table


def test_a_table_made_by_the_first_call():
    model = Lazy()
    compiled = weft.compile(model)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(4)), torch.arange(1.0, 5.0))
    assert programs(compiled) == 1
    assert type(model.table) is torch.Tensor


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


_EFFECTS = "the call changes attributes of the module, its arguments or globals"


def test_a_counter_counts(monkeypatch):
    traced = []
    capture = Tracing.capture
    monkeypatch.setattr(
        "weft.capture.tracing.Tracing.capture",
        lambda *call, **how: traced.append(1) or capture(*call, **how),
    )
    model = Counter()
    compiled = weft.compile(model, capture="export")
    for number in range(1, 8):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), float(number)))
        assert model.calls == number
    assert programs(compiled) == 0
    assert len(traced) == 3
    line = Counter.forward.__code__.co_firstlineno + 1
    assert set(compiled.eager_reasons) == {f"{_EFFECTS} ({__file__}:{line} (forward))"}


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        x = x + 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
            with torch.autocast("cpu", enabled=False):
                z = self.linear(x)
            y = torch.relu(y @ self.linear.weight)
        return y * 2, z


def test_autocast_region(compiled_only):
    model, x = Mixed(), torch.randn(5, 8)
    compiled = weft.compile(model)
    for _ in range(2):
        found, expected = compiled(x), model(x)
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
        assert [each.dtype for each in found] == [torch.bfloat16, torch.float32]
    first = Mixed.forward.__code__.co_firstlineno
    calls = latest(compiled).manifest["entries"]["main"]["calls"]
    lines = {line for call in calls for _, line, _ in call["locs"]}
    assert {first + 3, first + 5, first + 6} <= lines
    assert all(file == __file__ for call in calls for file, _, _ in call["locs"])


_count, _last = 0, None


class _Counted:
    made = 0


library = types.ModuleType("library")


def _count_globally(x):
    global _count
    _count += 1
    return x + 1


def _keep_globally(x):
    global _last
    _last = x
    return x + 1


def _count_in_class(x):
    _Counted.made += 1
    return x + _Counted.made


def _set_in_module(x):
    library.last = x
    return x + 1


@pytest.mark.parametrize(
    ("function", "found", "expected"),
    [
        (_count_globally, lambda: _count, 4),
        (_keep_globally, lambda: _last, None),
        (_count_in_class, lambda: _Counted.made, 4),
        (_set_in_module, lambda: library.last, None),
    ],
)
def test_names_that_each_call_binds(function, found, expected):
    compiled = weft.compile(function)
    for _ in range(4):
        x = torch.randn(3)
        compiled(x)
        if expected is None:
            assert found() is x
    if expected is not None:
        assert found() == expected
    assert programs(compiled) == 0


def test_a_closure_that_counts():
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x * count

    compiled, x = weft.compile(function), torch.ones(2)
    for number in range(1, 5):
        assert torch.equal(compiled(x), x * number)
    assert count == 4 and programs(compiled) == 0


def test_a_name_bound_once():
    """The first call binds it for all; from then on they run compiled."""
    table = None

    def function(x):
        nonlocal table
        if table is None:
            table = torch.arange(3.0)
        return x + table

    compiled, x = weft.compile(function), torch.randn(3)
    for _ in range(3):
        assert torch.equal(compiled(x), x + torch.arange(3.0))
    assert type(table) is torch.Tensor and programs(compiled) == 1


class Kept(torch.nn.Module):
    """Writes a tensor that is no buffer; at first its values stay what they are."""

    def __init__(self):
        super().__init__()
        self.plain = torch.ones(3)

    def forward(self, x):
        self.plain.clamp_(min=0)
        return x + self.plain


def test_writes_to_tensors_that_are_no_buffers():
    own, twin = Kept(), Kept()
    compiled, x = weft.compile(own), torch.tensor([1.0, 2.0, 3.0])
    compiled(x), twin(x)
    own.plain[1] = twin.plain[1] = -2.0
    for scale in (2.0, 3.0):
        assert torch.equal(compiled(x * scale), twin(x * scale))
        assert torch.equal(own.plain, twin.plain)

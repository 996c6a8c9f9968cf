# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call writes: buffers, its arguments, random numbers drawn, memory shared."""

import copy
import math

import pytest
import torch
from counting import programs

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


def test_batch_norm_in_training():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    twin = copy.deepcopy(model)
    compiled = weft.compile(model)
    for _ in range(3):
        x = torch.randn(6, 3)
        torch.testing.assert_close(compiled(x), twin(x))
        for name, value in twin.state_dict().items():
            torch.testing.assert_close(model.state_dict()[name], value)
    assert model[1].num_batches_tracked == 3
    assert programs(compiled) == 1


def test_dropout_draws_what_eager_draws():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5))
    compiled = weft.compile(model)
    x = torch.randn(4, 8)
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        expected, state = model(x), torch.get_rng_state()
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), expected)
        assert torch.equal(torch.get_rng_state(), state)


def test_argument_written_in_place():
    def function(x, y):
        x.add_(y)
        return x * 2

    compiled = weft.compile(function)
    for _ in range(2):
        x, y = torch.ones(3), torch.arange(3.0)
        result = compiled(x, y)
        assert torch.equal(x, torch.tensor([1.0, 2.0, 3.0]))
        assert torch.equal(result, x * 2)


def test_argument_written_in_place_and_returned():
    compiled = weft.compile(lambda x: x.mul_(2))
    for _ in range(2):
        x = torch.ones(3)
        assert compiled(x) is x
        assert torch.equal(x, torch.full((3,), 2.0))


def test_written_argument_that_overlaps_another():
    def function(x, y):
        x.add_(1)
        return y * 2

    compiled = weft.compile(function)
    base = torch.arange(6.0)
    assert torch.equal(compiled(torch.ones(4), torch.ones(4)), torch.full((4,), 2.0))
    twin = base.clone()
    assert torch.equal(compiled(base[:4], base[2:]), function(twin[:4], twin[2:]))
    assert torch.equal(base, twin)
    assert any("shares memory" in reason for reason in compiled.eager_reasons)


def test_views_of_arguments_are_views():
    compiled = weft.compile(lambda x: (x.view(-1), x.t(), x[1:, 1], x))
    for _ in range(2):
        x = torch.zeros(2, 3)
        flat, turned, part, same = compiled(x)
        assert same is x
        x.add_(1)
        assert flat.sum() == 6 and turned.shape == (3, 2) and turned.sum() == 6
        assert torch.equal(part, torch.ones(1))


def lies_as_in_eager(function, x):
    """The result is the argument, shows its memory and lies there as in eager mode."""
    compiled = weft.compile(function)
    for _ in range(3):
        expected, found = function(x), compiled(x)
        memory = x.untyped_storage().data_ptr()
        assert (found is x) == (expected is x)
        assert [t.untyped_storage().data_ptr() == memory for t in (found, expected)] in (
            [True, True],
            [False, False],
        )
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.stride() == expected.stride()
        if found.untyped_storage().data_ptr() == memory:
            assert found.storage_offset() == expected.storage_offset()
        assert torch.equal(found, expected)
    return compiled


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "function",
    [
        torch.positive,
        torch.real,
        torch.ravel,
        torch.atleast_2d,
        lambda x: torch.broadcast_tensors(x, x)[0],
        lambda x: torch.nn.functional.dropout(x, 0.5, False),
        lambda x: x.contiguous(),
        lambda x: x.flatten(),
        lambda x: x.expand(*x.shape),
        lambda x: x.unsqueeze(0).expand(2, *x.shape),
        lambda x: x.view(x.dtype),
        lambda x: x.view(torch.int32),
        lambda x: x.view(torch.uint8),
        lambda x: x.view(torch.uint8).view(torch.float32),
        lambda x: x.view(torch.float64)[..., 1:],
        lambda x: x.flatten().view(torch.int16)[2:],
    ],
)
@pytest.mark.parametrize(
    "x",
    [
        torch.arange(4.0),
        torch.arange(20.0)[4:16].view(3, 4),
        torch.arange(12.0).view(4, 3).t(),
        torch.arange(24.0).view(3, 8)[:, ::2],
        torch.arange(4.0).expand(3, 4),
    ],
    ids=["vector", "behind-others", "transposed", "with-gaps", "expanded"],
)
def test_views_lie_as_in_eager_mode(function, x):
    try:
        function(x)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            weft.compile(function)(x)
    else:
        lies_as_in_eager(function, x)


def test_views_of_one_image_in_channels_last():
    image = torch.arange(16.0).view(1, 2, 2, 4).permute(0, 3, 1, 2)
    for function in (lambda x: x.view(x.shape), lambda x: x.unflatten(0, (1, -1))):
        lies_as_in_eager(function, image)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_views_of_results_as_other_types(dtype):
    def function(x):
        y = x + 1
        return y, y.view(dtype)

    y, other = weft.compile(function)(torch.zeros(2, 2))
    y.zero_()
    assert other.dtype == dtype and not other.any()


def turned(x):
    x.transpose_(0, 1)
    x.add_(1)
    return x


def squeezed(x):
    x.squeeze_()
    x.mul_(2)
    return x.sum(0)


def turned_without_gradients(x):
    with torch.no_grad():
        x.t_()
    return x + 1


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (turned, (3, 5)),
        (turned, (4, 4)),
        (squeezed, (3, 1, 5)),
        (turned_without_gradients, (4, 4)),
        (lambda x: x.unsqueeze_(0), (2, 3)),
        (lambda x: x.squeeze_() + 1, (2, 3)),
        (lambda x: x.detach_().add_(1), (2, 3)),
    ],
)
def test_arguments_whose_shape_changes_in_place(function, shape):
    compiled = weft.compile(function)
    for _ in range(3):
        expected, found = (
            torch.arange(float(math.prod(shape))).view(shape).clone() for _ in range(2)
        )
        assert torch.equal(compiled(found), function(expected))
        assert (found.shape, found.stride()) == (expected.shape, expected.stride())
        assert found._version == expected._version
        assert torch.equal(found, expected)
    assert not any("torch.export" in reason for reason in weft.stats(compiled)["breaks"])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x.mul_(x.t()),
        lambda x: (x + 1).t_().sub_(x).add_(x.t()),
        lambda x: (lambda y: y[:, 1:].copy_(y[:, :-1]))(x + 1),
        lambda x: x[:2].add_(x[2:]),
        lambda x: x.add_(x),
    ],
)
def test_writes_to_what_the_op_reads(function):
    compiled = weft.compile(function)
    for _ in range(3):
        expected, found = torch.arange(16.0).view(4, 4), torch.arange(16.0).view(4, 4)
        try:
            result = function(expected)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                compiled(found)
        else:
            assert torch.equal(compiled(found), result)
        assert torch.equal(found, expected)


def test_views_of_results_share_memory():
    def function(x):
        y = x + 1
        return y, y.view(-1)

    y, flat = weft.compile(function)(torch.zeros(2, 2))
    y.zero_()
    assert flat.sum() == 0


@pytest.mark.parametrize("start", [2, 3, 0])
def test_empty_views_of_results_share_memory(start):
    compiled = weft.compile(lambda x: ((y := x * 2)[:, :3], y[:, 3:], y[:, start:start], y))
    x = torch.rand(2, 3)
    for _ in range(2):
        found = compiled(x)
        assert len({each.untyped_storage()._cdata for each in found}) == 1
        assert [each.storage_offset() for each in found] == [0, 3, start, 0]
        assert [each.stride() for each in found] == [(3, 1)] * 4
    assert programs(compiled) == 1


def test_views_of_what_is_no_result_share_memory():
    def function(x):
        y = (x + 1).permute(1, 0)
        y.mul_(2)
        return y, y.t()[1:]

    for each in (function, weft.compile(function)):
        y, rows = each(torch.ones(2, 3))
        y.zero_()
        assert rows.sum() == 0


@pytest.mark.parametrize("shared", [True, False])
def test_parts_of_what_is_no_result(shared):
    def function(x):
        y = x + 1
        return (y[1:], y[:-1]) if shared else (y[2:], y[:2], y[2:].t()[:0])

    compiled = weft.compile(function)
    for each in (function, compiled):
        parts = each(torch.ones(4, 2))
        parts[0].zero_()
        assert parts[1].sum() == (2 * 2 if shared else 4 * 2)
    assert not compiled.eager_reasons


OF_WHAT_IS_NO_RESULT = {
    "windows": lambda x: (lambda y: (y[1:], y[:-1], y[0]))(x + 1),
    "of a stack": lambda x: (lambda y: (y[:, 1:], y[-1].unsqueeze(0)))(torch.stack([x, x * 2])),
    "of a convolution": lambda x: (lambda y: (y[:, 0], y[0], y[:, 1:]))(
        torch.nn.functional.conv1d(x[None], torch.ones(3, 5, 2))
    ),
    "of two": lambda x: (lambda y, z: (y[1:], z[0], y[:2], z[:1]))(x + 1, x.exp()),
}


@pytest.mark.parametrize("name", OF_WHAT_IS_NO_RESULT)
def test_views_of_hidden_tensors(name, compiled_only):
    function = OF_WHAT_IS_NO_RESULT[name]
    compiled = weft.compile(function)
    for _ in range(3):
        x = torch.randn(5, 5)
        found, expected = compiled(x), function(x)
        for own, eager in zip(found, expected):
            torch.testing.assert_close(own, eager)
            assert own.stride() == eager.stride() and own.storage_offset() == eager.storage_offset()
        found[0].zero_(), expected[0].zero_()
        for own, eager in zip(found, expected):
            torch.testing.assert_close(own, eager)


PARTS = {
    "chunks": lambda x: (x + 1).chunk(2),
    "rows": lambda x: (x * 2).unbind(0),
    "columns": lambda x: (x * 2).split(1, 1),
    "heads": lambda x: torch.nn.functional.linear(x, torch.ones(9, 5)).chunk(3, -1),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_share_memory_as_in_eager(name, verified, no_grad):
    compiled = weft.compile(function := PARTS[name])
    for _ in range(3):
        x = torch.randn(4, 5)
        for own, eager in zip(compiled(x), function(x), strict=True):
            torch.testing.assert_close(own, eager)
            assert own.stride() == eager.stride() and own.storage_offset() == eager.storage_offset()
    assert weft.stats(compiled)["graphs"] == 1 and not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("compiles", [True, False])
def test_views_of_a_hidden_tensor_that_is_written(compiles):
    def function(x):
        y = x + 1
        y.add_(1) if compiles else y.cumprod_(1).add_(1)
        return y[1:], y[:-1]

    compiled = weft.compile(function, capture="export")
    for _ in range(2):
        rows, others = compiled(torch.zeros(3, 2))
        rows.zero_()
        assert others.tolist() == [[2, 2], [0, 0]]
    breaks = weft.stats(compiled)["breaks"]
    assert not breaks if compiles else "a tensor that is none" in breaks[0]


@pytest.mark.parametrize("fresh", [True, False])
def test_writes_to_what_shows_an_element_twice(fresh):
    def function(x):
        rows = (x + 1 if fresh else x).expand(2, 12, 5).select(1, 10)
        rows.masked_fill_(rows > 0, 0.5)
        return rows + 0

    x = torch.randn(12, 5)
    y = x.clone()
    assert torch.equal(weft.compile(function)(x), function(y))
    assert torch.equal(x, y)


def test_writes_to_windows():
    def function(x):
        y = x + 0
        y.unfold(0, 1, 2).squeeze(-1).mul_(2)
        x.unfold(0, 2, 3)[1].zero_()
        return y

    x = torch.arange(8.0)
    y = x.clone()
    assert torch.equal(weft.compile(function)(x), function(y))
    assert torch.equal(x, y)


def test_writes_to_windows_that_tile(compiled_only):
    def function(x):
        y = x + 0
        y.unfold(0, 2, 2).mul_(2)
        return y

    assert torch.equal(weft.compile(function)(torch.arange(8.0)), torch.arange(8.0) * 2)


def test_copies_are_copies():
    compiled = weft.compile(lambda x: (x.clone(), x + 0, x.clone()))
    x = torch.ones(3)
    a, b, c = compiled(x)
    a.zero_()
    assert x.sum() == 3 and b.sum() == 3 and c.sum() == 3


def test_outputs_stay_when_called_again():
    compiled = weft.compile(lambda x: x * 2)
    first = compiled(torch.ones(3))
    compiled(torch.zeros(3))
    assert torch.equal(first, torch.full((3,), 2.0))


def test_compilation_leaves_the_generators_alone():
    model = torch.nn.Dropout(0.5)
    torch.manual_seed(5)
    expected = model(torch.ones(100))
    torch.manual_seed(5)
    assert torch.equal(weft.compile(model)(torch.ones(100)), expected)


def test_attribute_written_by_forward():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.seen = []

        def forward(self, x):
            self.calls += 1
            self.seen.append(self.calls)
            return x + self.calls

    model = Counter()
    compiled = weft.compile(model, capture="export")
    for call in (1, 2, 3):
        assert compiled(torch.zeros(1)).item() == call
    assert model.calls == 3 and model.seen == [1, 2, 3]
    assert any("attributes" in reason for reason in compiled.eager_reasons)


def test_nothing_is_written_when_the_program_fails():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(4, 2)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, index):
            self.calls.add_(1)
            return self.table(index)

    model, twin = Model(), Model()
    compiled = weft.compile(model)
    compiled(torch.tensor([1, 3]))
    assert model.calls == 1
    with pytest.raises(IndexError):
        twin(torch.tensor([1, 9]))
    with pytest.raises(IndexError):
        compiled(torch.tensor([1, 9]))
    assert model.calls == 1 + twin.calls


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_of_several_failed_asserts_is_told_and_nothing_is_written(threads):
    def program(x, table, rows, columns):
        found = table[rows] + torch.nn.functional.embedding(columns, table.t())
        x.mul_(2)
        return found @ x

    compiled = weft.compile(program, threads=threads)
    table, good, bad = torch.randn(64, 64), torch.arange(64), torch.full((64,), 64)
    x = torch.randn(64, 64)
    compiled(x.clone(), table, good, good)
    assert programs(compiled) == 1
    for rows, columns in ((bad, good), (good, bad), (bad, bad)):
        ours, eagers = x.clone(), x.clone()
        with pytest.raises(IndexError) as expected:
            program(eagers, table, rows, columns)
        for _ in range(20):  # threads that left at different verdicts would not return
            with pytest.raises(IndexError) as told:
                compiled(ours, table, rows, columns)
        assert str(told.value) == str(expected.value)
        assert torch.equal(ours, x) and torch.equal(eagers, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_writes_are_counted_as_in_eager_mode(dtype):
    def function(x, y):
        x.copy_(y)
        return y.clone()

    x, compiled = torch.zeros(3, 5, dtype=dtype), weft.compile(function)
    for target in (x, x.T, torch.zeros(0, 5, dtype=dtype), torch.zeros((), dtype=dtype)):
        source = torch.ones(target.shape, dtype=dtype)
        twin = target.clone(memory_format=torch.preserve_format)
        for _ in range(3):
            before, expected = target._version, twin._version
            compiled(target, source)
            function(twin, source)
            assert target._version - before == twin._version - expected == 1
            assert torch.equal(target, twin)


def test_writes_that_eager_mode_refuses_are_refused():
    def function(x):
        x.add_(1)
        return x * 2

    compiled = weft.compile(function)
    compiled(torch.zeros(3))
    with torch.inference_mode():
        frozen = torch.zeros(3)
    for call in (function, compiled, compiled):
        with pytest.raises(RuntimeError, match="inference tensor"):
            call(frozen)
    expanded = torch.zeros(1).expand(3)
    for call in (function, compiled, compiled):
        with pytest.raises(RuntimeError, match="single memory location"):
            call(expanded)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that stand for a range of sizes, against PyTorch."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.nn.functional as F
from processes import python

import weft

LONGEST = 70
pytestmark = pytest.mark.usefixtures("verified")


def softmaxed_rows(x):
    return torch.softmax(x, 0), torch.log_softmax(x, -1), x.mean(0), x.sum(), x.amax(0)


def found(x):
    return x.argmax(0), x.argmin(-1), (x > 0).any(0), (x > 0).all(), x.std(0), x.prod(0)


def running(x):
    return x.cumsum(0), torch.where(x > 0, x, x.new_zeros(())), x.clamp(-1, 1).exp()


def moved(x):
    return x[-1] + 1, x[1:] * 2, x[:-1] * 2, x[-2:].exp(), x.flip(0), x[0] - 1


def joined(x):
    ones = torch.ones(3, x.shape[1])
    return torch.cat([ones, x]), torch.cat([x, ones]), torch.cat([x, x * 2]), F.pad(x, (0, 0, 2, 1))


def numbered(x):
    n = x.shape[0]
    places = torch.arange(n)
    return x * n, x / n, places + n, x.new_full((n,), 2.0), x[places // 2], torch.ones(n, n).tril()


def contracted(x):
    return x @ x.T, x.T @ x, (x.T @ x).sum(), torch.einsum("nd,md->nm", x, x).softmax(-1)


def regrouped(x):
    n = x.shape[0]
    return x.reshape(n * 2, 4).sum(-1), x.reshape(-1).sum(), x.view(n, 2, 4).transpose(0, 1) * 2


def retaken(x):
    """By which relative positions are shifted: an element of each row more, or two."""
    n, scores = x.shape[0], x @ x.T
    once = F.pad(scores, (1, 0)).reshape(n + 1, n)[1:]
    twice = F.pad(torch.stack([scores, -scores]), (2, 0)).reshape(2, n + 2, n).softmax(-1)
    return once * 2, twice, twice.sum(1)


def normed(x):
    return F.layer_norm(x, (8,)), F.gelu(x), F.silu(x), F.normalize(x, dim=0)


def transcended(x):
    y = x.abs() + 1
    return x.exp2(), x.expm1(), y.log2(), y.log10(), y.log1p(), torch.atan2(x, y)


def attended(x):
    q = x.reshape(1, -1, 2, 4).transpose(1, 2)
    plain = F.scaled_dot_product_attention(q, q, q)
    causal = F.scaled_dot_product_attention(q, q * 2, q, is_causal=True)
    near = (torch.arange(x.shape[0])[:, None] - torch.arange(x.shape[0])).abs() < 3
    masked = F.scaled_dot_product_attention(q, q, q, attn_mask=near)
    added = F.scaled_dot_product_attention(q, q, q, attn_mask=near.float())
    return plain, causal, masked, added


def embedded(x):
    ids = (x[:, 0].abs() * 5).long().clamp(0, 9)
    table = torch.arange(40.0).reshape(10, 4)
    return F.embedding(ids, table), table[ids] + 1, F.one_hot(ids, 10), x[ids % x.shape[0]]


def convolved(x):
    signal = x.T[None]
    weight = torch.ones(2, 8, 3) / 24
    return F.conv1d(signal, weight, padding=1), F.conv1d(signal, weight, padding=2).mean(-1)


def ordered(x):
    gaps = torch.where(x > 1, torch.nan, x)
    gaps = torch.where(x < -1, torch.inf, torch.where(x < -1.5, -torch.inf, gaps))
    whole = (x * 3).long()
    return (
        *(gaps.sort(0).values, gaps.sort(0, descending=True).values, (x > 0).sort(0).values),
        *(*whole.sort(dim=0, stable=True), *gaps.sort(dim=0, descending=True, stable=True)),
        *(x.topk(2, 0).values, x.topk(1, 0, largest=False).values, x.msort()),
    )


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.both = torch.nn.LSTM(8, 4, 2, bidirectional=True)
        self.gru, self.rnn = torch.nn.GRU(8, 5), torch.nn.RNN(8, 3, nonlinearity="relu")

    def forward(self, x):
        steps, state = self.both(x)
        rows = torch.stack([x, x * 2, x.sin()], 1)
        return steps, *state, *self.gru(rows, torch.ones(1, 3, 5)), *self.rnn(rows)


RECURRENT = Recurrent()


def recurrent(x):
    return RECURRENT(x)


FAMILIES = [
    *(softmaxed_rows, found, running, moved, joined, numbered, contracted, regrouped, retaken),
    *(normed, transcended, attended, embedded, convolved, ordered, recurrent),
]


def agree(actual, expected):
    actual, expected = (each if isinstance(each, tuple) else (each,) for each in (actual, expected))
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=1e-5, equal_nan=True)
        if not {0, 1} & {*other.shape}:  # where strides mean nothing
            assert one.stride() == other.stride()
            assert one.untyped_storage().nbytes() == other.untyped_storage().nbytes()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.__name__)
def test_every_size(family, monkeypatch):
    """Nothing but this comparison stands between a wrong program and the user."""
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(family, shapes={"x": {0: weft.Range(0, LONGEST)}})
    torch.manual_seed(0)
    with torch.no_grad():
        for size in (9, *range(3, LONGEST + 1)):
            x = torch.randn(size, 8)
            agree(compiled(x), family(x))
        stats = compiled.stats()
        assert stats["specialized"] == [] and stats["breaks"] == []
        assert sum(stats["ranges"].values()) == LONGEST - 1 and stats["graphs"] == 1
        for size in (2, 1, 0):
            x = torch.randn(size, 8)
            agree_or_raise(compiled, family, x)


def agree_or_raise(compiled, function, x):
    """PyTorch refuses some of these for one row, or for none."""
    try:
        expected = function(x)
    except (IndexError, RuntimeError) as error:
        with pytest.raises(type(error)) as raised:
            compiled(x)
        assert str(raised.value) == str(error)
    else:
        agree(compiled(x), expected)


class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm = torch.nn.LayerNorm(8)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x, other=None):
        x = self.linear(self.norm(x))
        return x if other is None else x + other


def test_two_symbols_and_the_relation_between_them():
    compiled = weft.compile(
        lambda x, y: (x @ y, x.sum(0), y.softmax(1)),
        shapes={"x": {0: weft.Range(2, 20), 1: weft.Range(2, 30)}, "y": {0: weft.Range(2, 30)}},
    )
    with torch.no_grad():
        for rows, inner in ((5, 7), (20, 30), (2, 2), (3, 30), (20, 2), (11, 13)):
            x, y = torch.randn(rows, inner), torch.randn(inner, 6)
            agree(compiled(x, y), (x @ y, x.sum(0), y.softmax(1)))
        # Sizes that are not outermost in memory: within a factor of two.
        assert list(compiled.stats()["ranges"]) == [
            "f32[2..20, 2..16], f32[2..16, 6]", "f32[2..20, 17..30], f32[17..30, 6]"
        ]  # fmt: skip
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            compiled(torch.randn(5, 7), torch.randn(8, 6))


def test_equal_sizes_that_differ_raise_pytorchs_error():
    module = Rows().eval()
    ranges = {0: weft.Range(1, 40)}
    compiled = weft.compile(module, shapes={"x": ranges, "other": ranges})
    with torch.no_grad():
        for size in (6, 40, 3):
            x, other = torch.randn(size, 8), torch.randn(size, 4)
            agree(compiled(x, other), module(x, other))
        assert compiled.stats()["graphs"] == 1
        with pytest.raises(RuntimeError, match="must match the size"):
            compiled(torch.randn(6, 8), torch.randn(5, 4))


def test_sizes_beyond_a_range():
    module = Rows().eval()
    strict = weft.compile(module, shapes={"x": {0: weft.Range(2, 8, beyond="error")}})
    free = weft.compile(module, shapes={"x": {0: weft.Range(2, 8)}})
    with torch.no_grad():
        agree(strict(torch.ones(4, 8)), module(torch.ones(4, 8)))
        with pytest.raises(weft.errors.SizeError, match=r"'x': expected a size of 2\.\.8 in dim 0"):
            strict(torch.ones(9, 8))
        for size in (4, 9):
            agree(free(torch.ones(size, 8)), module(torch.ones(size, 8)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: torch.export.Dim("n", min=2, max=50)}},
        {"x": (torch.export.Dim.DYNAMIC, None)},
        {"x": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.STATIC}},
        {"x": {0: (2, 50)}},
    ],
)
def test_descriptions_of_torch_export(shapes):
    module = Rows().eval()
    compiled = weft.compile(module, shapes=shapes)
    with torch.no_grad():
        for size in (12, 16, 9, 11):
            agree(compiled(torch.ones(size, 8)), module(torch.ones(size, 8)))
    assert compiled.stats()["graphs"] == 1


def test_marked_tensors():
    module = Rows().eval()
    compiled = weft.compile(module)
    with torch.no_grad():
        for size in (12, 16, 9):
            x = torch.ones(size, 8)
            torch._dynamo.mark_dynamic(x, 0)
            agree(compiled(x), module(x))
    assert list(compiled.stats()["ranges"].values()) == [2]


def test_a_second_value_makes_a_size_a_symbol(automatic_sizes):
    module = Rows().eval()
    automatic = weft.compile(module)
    fixed = weft.compile(module, automatic=False)
    with torch.no_grad():
        for size in (12, 16, 9, 10, 14):
            x = torch.randn(size, 8)
            agree(automatic(x), module(x))
            agree(fixed(x), module(x))
    assert automatic.stats()["graphs"] == 2 and list(automatic.stats()["ranges"].values()) == [3]
    assert fixed.stats()["graphs"] == 5 and fixed.stats()["ranges"] == {}


def test_sizes_are_symbols_by_default():
    code = "import weft; print(weft.config.automatic_sizes)"
    assert python(code, WEFT_AUTOMATIC_SIZES="").stdout.strip() == "True"


def test_the_65th_size_is_as_the_second(automatic_sizes):
    """A program for each power of two, and those of 0 and 1."""
    module = Rows().eval()
    compiled = weft.compile(module)
    with torch.no_grad():
        for size in (*range(70), *range(69, -1, -7)):
            x = torch.randn(size, 8)
            agree(compiled(x), module(x))
    stats = compiled.stats()
    assert list(stats["ranges"]) == [f"f32[{sizes}, 8]" for sizes in
                                     ("2..16", "17..32", "33..64", "65..128")]  # fmt: skip
    assert stats["graphs"] == stats["captures"] == 6 and stats["breaks"] == []
    assert stats["specialized"] == []


def test_a_size_that_is_no_symbol_has_a_program_for_each_value(automatic_sizes):
    """And the report says why; it is looked for once."""

    def drawn(x):
        return torch.poisson(x * 0) + x

    compiled = weft.compile(drawn)
    for size in (6, 7, 8, 9):
        x = torch.randn(size, 3)
        agree(compiled(x), drawn(x))
    stats = compiled.stats()
    assert stats["graphs"] == 4 and stats["ranges"] == {} and stats["captures"] == 5
    (reason,) = stats["specialized"]
    assert "with symbolic sizes" in reason


def test_what_requires_gradients_is_no_call_of_a_range_without(automatic_sizes):
    def doubled(x):
        return (x * 2).exp()

    compiled = weft.compile(doubled)
    for size in (3, 5, 7):
        compiled(torch.randn(size))
    assert sum(compiled.stats()["ranges"].values()) == 1
    x = torch.randn(6, requires_grad=True)
    compiled(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * doubled(x))


def test_what_is_not_contiguous_has_programs_of_its_own(automatic_sizes):
    module = Rows().eval()
    compiled = weft.compile(module)
    with torch.no_grad():
        for size in (12, 16, 9):
            x = torch.randn(8, size).T
            agree(compiled(x), module(x))
    stats = compiled.stats()
    assert stats["graphs"] == 3 and stats["captures"] == 3
    assert stats["specialized"] == ["an argument whose size is a symbol is not contiguous"]


def test_guards_bound_the_range():
    def branching(x):
        return x * 2 if x.shape[0] > 10 else x + 1

    compiled = weft.compile(branching, shapes={"x": {0: weft.Range(2, 30)}})
    for size in (6, 2, 10, 11, 30, 20, 3):
        x = torch.randn(size, 3)
        agree(compiled(x), branching(x))
    assert list(compiled.stats()["ranges"]) == ["f32[2..10, 3]", "f32[11..30, 3]"]


def test_what_no_range_covers_has_a_program_for_each_size():
    def drawn(x):
        return torch.poisson(x * 0) + x

    compiled = weft.compile(drawn, shapes={"x": {0: weft.Range(2, 30)}})
    for size in (6, 7):
        x = torch.randn(size, 3)
        agree(compiled(x), drawn(x))
    stats = compiled.stats()
    assert stats["graphs"] == 2 and stats["ranges"] == {}
    (reason,) = stats["specialized"]
    assert "with symbolic sizes" in reason


def test_places_in_rows_that_are_padded_one_by_one(monkeypatch):
    """A bag begins at a multiple of the size, and its padded row at one of the largest size."""
    monkeypatch.setattr(weft.config, "verify", "off")
    table = torch.arange(40.0).reshape(10, 4).sin()

    def bagged(ids):
        return F.embedding_bag(ids, table)

    compiled = weft.compile(bagged, shapes={"ids": {1: weft.Range(2, 20)}})
    for size in (5, 9, 20):
        ids = torch.randint(0, 10, (3, size), generator=torch.Generator().manual_seed(size))
        agree(compiled(ids), bagged(ids))
    stats = compiled.stats()
    assert sum(stats["ranges"].values()) == 3 and not stats["specialized"]


def test_weights_are_read_live():
    module = Rows().eval()
    compiled = weft.compile(module, shapes={"x": {0: weft.Range(1, 40)}})
    with torch.no_grad():
        for size in (6, 40):
            agree(compiled(torch.ones(size, 8)), module(torch.ones(size, 8)))
        module.linear.weight.mul_(2)
        agree(compiled(torch.ones(7, 8)), module(torch.ones(7, 8)))
        module.linear.weight = torch.nn.Parameter(torch.randn(4, 8))
        agree(compiled(torch.ones(9, 8)), module(torch.ones(9, 8)))


def test_a_row_has_the_same_bits_in_every_batch():
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(48, 100), torch.nn.GELU(), torch.nn.LayerNorm(100), torch.nn.Linear(100, 7)
    ).eval()
    compiled = weft.compile(module, batch_invariant=True)
    x = torch.randn(150, 48)
    with torch.no_grad():
        whole = compiled(x[:64])
        torch.testing.assert_close(whole, module(x[:64]), rtol=2e-5, atol=1e-5)
        for batch in range(1, 65):
            assert torch.equal(compiled(x[:batch]), whole[:batch])
            row = compiled(x[batch - 1 : batch])
            assert row.shape == (1, 7) and torch.equal(row, whole[batch - 1 : batch])
        assert torch.equal(compiled(x)[:64], whole)
    assert compiled.stats()["graphs"] == 1


def test_rows_that_depend_on_one_another_are_computed_together():
    compiled = weft.compile(lambda x: x.softmax(0), batch_invariant=True)
    for batch in (1, 5, 64, 100):
        x = torch.randn(batch, 3)
        torch.testing.assert_close(compiled(x), x.softmax(0))


def test_threads_with_random_lengths():
    module = Rows().eval()
    compiled = weft.compile(module, shapes={"x": {0: weft.Range(1, 40)}})
    failures = []

    def call(seed):
        generator = torch.Generator().manual_seed(seed)
        try:
            with torch.no_grad():
                for _ in range(30):
                    size = int(torch.randint(2, 41, (), generator=generator))
                    x = torch.randn(size, 8, generator=generator)
                    torch.testing.assert_close(compiled(x), module(x), rtol=2e-5, atol=1e-5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_compiled_beside_the_calls():
    module = Rows().eval()
    compiled = weft.compile(module, background=True, shapes={"x": {0: weft.Range(1, 40)}})
    with torch.no_grad():
        for size in (6, 9):
            agree(compiled(torch.ones(size, 8)), module(torch.ones(size, 8)))
        assert compiled.wait(600)
        for size in (6, 9, 40):
            agree(compiled(torch.ones(size, 8)), module(torch.ones(size, 8)))
    assert list(compiled.stats()["ranges"].values()) == [3] and compiled.stats()["graphs"] == 1


def test_a_program_that_is_wrong_at_other_sizes_is_kept_away(monkeypatch):
    """Without what hides padding."""
    from weft.frontend.sizes.padding import Padding

    monkeypatch.setattr(Padding, "hide", lambda self, new, dims, which, number: new)
    compiled = weft.compile(lambda x: x.exp().sum(0), shapes={"x": {0: weft.Range(2, 30)}})
    for size in (30, 6, 7):
        x = torch.randn(size, 3)
        agree(compiled(x), x.exp().sum(0))
    stats = compiled.stats()
    assert stats["ranges"] == {}
    assert any("does not reproduce eager execution" in each for each in stats["specialized"])


def test_parts_of_a_larger_result_share_a_program(verified, automatic_sizes):
    """A slice begins within its memory, as eager execution shows it."""

    def last(x):
        return torch.cat([x, x * 2], -1)[..., 4:]

    compiled = weft.compile(last)
    for size in (4, 5, 6, 9, 5, 6):
        x = torch.randn(size, 4)
        found, expected = compiled(x), last(x)
        assert torch.equal(found, expected) and found.stride() == expected.stride()
        assert found.storage_offset() == expected.storage_offset()
    stats = weft.stats(compiled)
    assert stats["specialized"] == [] and sum(stats["ranges"].values()) > 0


class Unrolled(torch.nn.Module):
    """A loop whose first state is zeros: what that gives depends on weights alone."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(8, 48), torch.nn.Linear(12, 48)

    def forward(self, xs):
        state = xs.new_zeros(xs.shape[1], 12)
        for x in xs.unbind(0):
            i, f, g, o = (self.outer(state) + self.inner(x)).chunk(4, -1)
            state = torch.tanh(i.sigmoid() * g.tanh() + f.sigmoid() * state) * o.sigmoid()
        return state


def test_a_step_that_is_prepared_with_the_weights(automatic_sizes, no_grad):
    module = Unrolled().eval()
    compiled = weft.compile(module)
    for batch in (2, 3, 5, 16, 2):
        xs = torch.randn(7, batch, 8)
        torch.testing.assert_close(compiled(xs), module(xs), rtol=1e-5, atol=1e-5)
    assert len(weft.stats(compiled)["ranges"]) == 1

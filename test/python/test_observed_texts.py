# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts that tell of numbers which are others in each call: printed, logged, kept and returned by
one program. Whatever looks into such a text has a program for each."""

import logging

import pytest
import torch
from observing import compiled, whole
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


PERCENT, BRACES = "step %d: %.2f", "{:>9.2f}|{}"


class Told(logging.Handler):
    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


class State:
    a10 = a20 = a30 = a40 = 2.0

    def __init__(self):
        self.messages, self.last, self.entries = [], "", {}
        self.meters = [Meter(), Named()]
        self.logger = logging.Logger("told", logging.INFO)
        self.logger.addHandler(Told())

    def seen(self):
        return self.messages, self.last, self.entries, self.logger.handlers[0].messages


def prints(state, x):
    loss = (x * x).mean().item()
    print("loss", f"{loss:.3f} of {loss}", tuple(x.shape))
    print(PERCENT % (3, loss), BRACES.format(loss, 4), str(loss))
    return x * 2


def logs(state, x):
    loss, note = (x * x).mean().item(), f"{x[0].item():.1f}!"
    state.logger.info("loss %s, %.2f", note, loss)
    state.logger.info(f"again {loss}")
    return x * 2


def keeps(state, x):
    text = f"loss {x.sum().item():.2f}"
    state.messages.append(text)
    state.last = f"<{text}>"
    state.entries["last"] = [text, (text, 1)]
    return x + 1, text, [f"{text}{text:>12}"]


class Meter:
    def __init__(self):
        self.value = self.sum = 0.0
        self.count = 0

    def update(self, value):
        self.value, self.sum, self.count = value, self.sum + value, self.count + 1

    def __repr__(self):
        return f"{self.value:.4f} ({self.sum / self.count:.4f})"


class Named(Meter):
    def __str__(self):
        return f"loss {self.value:.2f} of {Meter.__repr__(self)}"


def meters(state, x):
    for each in state.meters:
        each.update(x.mean().item())
        print(str(each), f"{each}")
    return x * 2, str(state.meters[1])


SERVED = (prints, logs, keeps, meters)


@pytest.mark.parametrize("program", SERVED)
def test_texts_of_numbers_are_made_anew(program, capsys):
    state, twin = State(), State()
    fast = compiled(lambda x: program(state, x))
    for step in range(5):
        x = torch.arange(3.0) * (step + 1.37)
        found, said = fast(x), capsys.readouterr().out
        expected = program(twin, x)
        assert said == capsys.readouterr().out
        assert str(found) == str(expected) and state.seen() == twin.seen()
    assert whole(fast, 3)


def test_compiled_code_gives_what_is_told(capsys):
    losses, x = [], torch.arange(12.0).reshape(3, 4)

    def f(x):
        y = (x * 0.1).exp()
        losses.append(y.mean().item())
        print(f"loss {losses[-1]:.2f}", y.sum())
        return y, float(y[0, 0])

    fast = weft.compile(f)
    for step in range(4):
        with torch.no_grad():
            (found, number), said = fast(x * step), capsys.readouterr().out
            (expected, other), again = f(x * step), capsys.readouterr().out
        torch.testing.assert_close(found, expected)
        assert abs(number - other) < 1e-5 and abs(losses[-2] - losses[-1]) < 1e-4
        assert said.split()[:2] == again.split()[:2]
    stats = weft.stats(fast)
    assert stats["hits"] >= 2 and not stats["breaks"] and not stats["replayed"]


def tenths(x):
    return f"a{int(x[0].item())}0"


LOOKS = {
    "as a name": lambda x: getattr(State, tenths(x)),
    "as a key": lambda x: {"a10": 1, "a20": 2}.get(tenths(x), 3),
    "in a set": lambda x: len({tenths(x), "a10"}),
    "its length": lambda x: len(f"{x[0].item() ** 9:.0f}"),
    "its items": lambda x: [*f"{x[0].item()}"][0],
    "unpacked": lambda x: (lambda a, b, c: b)(*tenths(x)),
    "in a loop": lambda x: "".join(reversed([c for c in tenths(x)])),
    "a method": lambda x: tenths(x).upper(),
    "a part": lambda x: tenths(x)[1],
    "compared": lambda x: tenths(x) == "a20",
    "contained": lambda x: "2" in tenths(x),
    "as a number": lambda x: int(tenths(x)[1:]),
    "added": lambda x: tenths(x) + "b",
    "joined": lambda x: "-".join([tenths(x), tenths(x)]),
    "sorted": lambda x: sorted([tenths(x), "a15"]),
    "raised": lambda x: said(ValueError(tenths(x))),
    "tested": lambda x: 1 if f"{tenths(x)}" else 2,
    "shortest": lambda x: f"{int(x[0].item())}",
    "by keyword": lambda x: dict(**{tenths(x): 1}),
    "its class": lambda x: type(tenths(x)).__name__,
    "the same": lambda x: tenths(x) is tenths(x),
    "with repr": lambda x: f"{tenths(x)!r}",
    "a spec": lambda x: f"{3.0:{tenths(x)[1:]}}",
    "matched": lambda x: matched(tenths(x)),
}


def said(error):
    try:
        raise error
    except ValueError as caught:
        return f"{caught}", str(caught)


def matched(text):
    match text:
        case "a10" | "a20":
            return 1
        case str():
            return 2


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_looks_into_a_text_sees_each(look):
    fast = compiled(lambda x: (x * 2, look(x)))
    for first in (1.0, 2.0, 3.0, 2.0, 4.0):
        x = torch.full((2,), first)
        assert str(fast(x)) == str((x * 2, look(x)))


class Chunks(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def rows(self, x, /, *more, first=0, **named):
        yield from (row * self.scale + first + len(more) + len(named) for row in x)
        return first

    def forward(self, x):
        y = x.relu()
        return self.rows(y, 1, 2, first=3, last=4), (y * k for k in range(3)), self.kept(y, x)

    @staticmethod
    def kept(*tensors):
        def inner(by):
            yield from (each * by for each in tensors)
            yield tensors

        return inner(5)


def test_entries_by_texts_that_count():
    """One program sets another entry in each call, until the call reads the dict."""

    class Steps:
        def __init__(self):
            self.step, self.kept = 0, {}

    def sets(state, x):
        state.step += 1
        state.kept[f"step{state.step}"] = x.sum()
        state.kept[f"{state.step}"] = f"{state.step}"
        return x * 2 if x.sum() < 9 else x - state.step

    def reads(state, x):
        state.step += 1
        state.kept[f"a{state.step % 3}"] = state.step
        return x * state.kept.get("a1", 0) + len(state.kept)

    for function in (sets, reads):
        own, twin = Steps(), Steps()
        fast = compiled(lambda x, own=own, function=function: function(own, x))
        for number in range(14):
            x = torch.full((2,), 9.0 if number in (5, 9) else 1.0)
            assert torch.equal(fast(x), function(twin, x))
            assert str(own.kept) == str(twin.kept)
        if function is sets:
            assert whole(fast, 8)


def test_texts_of_one_character_are_no_objects_of_their_own():
    def f(state, x):
        state.step += 1
        text = f"{state.step % 4}"
        return x, text, text == "1", text is str(state.step % 4), text is None

    class Steps:
        step = 0

    own, twin = Steps(), Steps()
    fast = compiled(lambda x: f(own, x))
    for _ in range(8):
        assert str(fast(torch.ones(1))) == str(f(twin, torch.ones(1)))


def test_generators_that_have_not_begun_are_made_anew():
    module = Chunks()
    fast = compiled(module)
    for step in range(4):
        x = torch.randn(2, 3)
        found, expected = fast(x), module(x)
        assert str(next(found[0])) == str(next(expected[0]))
        module.scale = float(step)  # which they read as they go on
        assert str([list(each) for each in found]) == str([list(each) for each in expected])
    assert whole(fast, 1)


def test_a_generator_that_is_kept_may_go_on_within_the_call():
    def f(state, x):
        state.made = (each * k for k, each in enumerate([x, x + 1, x + 2]))
        return x * 2, next(state.made)

    own, twin = State(), State()
    fast = compiled(lambda x: f(own, x))
    for step in range(4):
        x = torch.full((2,), float(step))
        assert str(fast(x)) == str(f(twin, x))
        assert str(list(own.made)) == str(list(twin.made))


def test_a_generator_that_has_begun_is_left_to_the_interpreter():
    def f(x):
        made = (x * k for k in range(3))
        next(made)
        return made

    fast = compiled(f)
    for _ in range(3):
        assert len(list(fast(torch.ones(2)))) == 2
    assert "generator" in weft.stats(fast)["breaks"][0]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Python keeps outside of objects' attributes: what functions and classes are called, which
names a module has, the levels of loggers, the context of `decimal`."""

import ctypes
import decimal
import logging
import random
import string
import types

import numpy
import pytest
import torch

import weft
from weft.capture.reachability import find_references
from weft.capture.state import snapshot

pytestmark = [
    pytest.mark.usefixtures("no_grad"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]


def called(a: int, b=1):
    """Text."""


class Left:
    """Text."""

    value = 2


class Right:
    value = 3


class Kind(Left):
    pass


settings = types.ModuleType("settings")
logger, adapter = logging.getLogger("state.of"), logging.LoggerAdapter(logging.getLogger("adapted"))
own = decimal.Context(prec=3)
number = ctypes.c_int(3)
handler, added, filtered = logging.NullHandler(), logging.NullHandler(), logging.Filter()


def names(x):
    return x * len(called.__name__ + called.__doc__ + str(called.__annotations__))


def kinds(x):
    return x * len(Kind.__name__) * Kind.value


def contents(x):
    return x * len(vars(settings)) * (len(vars(called)) + 1)


def own_dict(x):
    return x * len(settings.__dict__)


def levels(x):
    return x * 2 if logger.isEnabledFor(logging.DEBUG) else x * 3


def any_level(x):
    return x * logging.getLogger("of no name").getEffectiveLevel()


def of_adapter(x):
    return x * 2 if adapter.isEnabledFor(logging.DEBUG) else x * 3


def named_level(x):
    return x * len(logging.getLevelName(15))


def memory(x):
    return x * number.value


def checked(x):
    return torch.distributions.Normal(x, 1.0).loc


def divided(x):
    return x * float(own.divide(decimal.Decimal(1), decimal.Decimal(3)))


def rounded(x):
    return x * float(decimal.Decimal(1) / decimal.Decimal(3))


def _bases(*kinds):
    return lambda: setattr(Kind, "__bases__", kinds)


def _to(owner, name, value):
    return lambda: setattr(owner, name, value)


CHANGES = {
    "a function's name": (names, _to(called, "__name__", "other")),
    "a function's text": (names, _to(called, "__doc__", "Another.")),
    "annotations": (names, _to(called, "__annotations__", {"a": float})),
    "an annotation": (names, lambda: called.__annotations__.update(b=int)),
    "a class's name": (kinds, _to(Kind, "__name__", "Other")),
    "a class's bases": (kinds, _bases(Right)),
    "names of a module": (contents, _to(settings, "other", 1)),
    "names in a module's dict": (own_dict, _to(settings, "another", 1)),
    "attributes of a function": (contents, _to(called, "other", 1)),
    "a logger's level": (levels, lambda: logger.setLevel(logging.DEBUG)),
    "its parent's level": (levels, lambda: logging.getLogger("state").setLevel(logging.DEBUG)),
    "all levels": (levels, lambda: logging.disable(logging.INFO)),
    "handlers": (levels, lambda: logger.addHandler(added)),
    "a handler's level": (levels, lambda: handler.setLevel(logging.ERROR)),
    "filters": (levels, lambda: logger.addFilter(filtered)),
    "a logger by its name": (any_level, lambda: logging.getLogger("of no name").setLevel(7)),
    "an adapter's level": (of_adapter, lambda: adapter.setLevel(logging.DEBUG)),
    "the name of a level": (named_level, lambda: logging.addLevelName(15, "FIFTEEN")),
    "a number of C's": (memory, _to(number, "value", 4)),
    "checks of distributions": (
        checked,
        lambda: torch.distributions.Distribution.set_default_validate_args(False),
    ),
    "digits of a context in hand": (divided, lambda: setattr(own, "prec", 5)),
    "digits": (rounded, lambda: setattr(decimal.getcontext(), "prec", 5)),
    "a context": (rounded, lambda: decimal.setcontext(decimal.Context(prec=3))),
}


@pytest.fixture(scope="module", autouse=True)
def _put_back():
    """What other tests share."""
    before = decimal.getcontext().copy()
    torch.distributions.Distribution.set_default_validate_args(True)
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    logger.removeHandler(added)
    decimal.setcontext(before)
    torch.distributions.Distribution.set_default_validate_args(True)
    logging.disable(logging.NOTSET)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_watched(name):
    function, change = CHANGES[name]
    snapshot(find_references(function))  # makes the annotations that have not been asked for
    before = snapshot(find_references(function))
    assert before.guards.hold()
    assert before.same_as(snapshot(find_references(function)))
    change()
    assert not before.guards.hold()
    assert not before.same_as(snapshot(find_references(function)))


def test_loggers_that_others_make_change_nothing():
    before = snapshot(find_references(any_level))
    logging.getLogger("made by another library")
    assert before.same_as(snapshot(find_references(any_level)))


def test_programs_for_levels_and_contexts():
    """Results, and the flags that rounding leaves."""

    def f(x):
        y = x * 2 if logger.isEnabledFor(logging.INFO) else x * 3
        return y * float(decimal.Decimal(1) / decimal.Decimal(3))

    compiled, x = weft.compile(f), torch.ones(2)
    logging.disable(logging.NOTSET)
    context = decimal.getcontext()
    for level, digits in ((logging.INFO, 3), (logging.ERROR, 5)):
        logger.setLevel(level)
        context.prec = digits
        context.clear_flags()
        assert compiled(x).tolist() == f(x).tolist()
        context.clear_flags()
        compiled(x)
        assert context.flags[decimal.Inexact]
        for _ in range(3):
            assert compiled(x).tolist() == f(x).tolist()
    assert weft.stats(compiled)["hits"]


def test_names_of_a_library(monkeypatch):
    compiled = weft.compile(lambda x: x * len(dir(string)))
    compiled(torch.ones(2))
    monkeypatch.setattr(string, "other", 1, raising=False)
    assert compiled(torch.ones(1)).item() == len(dir(string))
    (reason,) = weft.stats(compiled)["breaks"]
    assert "names of a module" in reason


def test_names_of_a_module_that_code_does_not_read():
    """No code asks for attributes by text."""

    def f(x):
        return x * settings.scale

    settings.scale = 2.0
    before = snapshot(find_references(f))
    settings.step = 1
    assert before.guards.hold()
    settings.scale = 3.0
    assert not before.guards.hold()


def test_states_of_generators():
    found = snapshot(find_references(lambda x: x * random.getstate()[1][0]))
    assert found.reason is not None


def _text(x):
    return x * len(str(x))


def _quotient(x):
    return x * (numpy.ones(1) / 0.0 > 0)


@pytest.mark.parametrize("function, what", [(_text, "__repr__"), (_quotient, "floating point")])
def test_what_settings_decide(function, what):
    compiled = weft.compile(function)
    with numpy.errstate(divide="ignore"):
        for _ in range(2):
            compiled(torch.ones(1))
    (reason,) = weft.stats(compiled)["breaks"]
    assert what in reason

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fallbacks through torch's C dispatcher: what it takes, and that it does what torch.ops does."""

import gc
import io
import json
import threading
import warnings

import pytest
import torch
from counting import latest
from test_steady_state import resident_bytes
from threads import in_threads

import weft
from weft.artifacts import dispatcher
from weft.frontend.lowered import Decline

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

aten = torch.ops.aten


def matrix():
    return torch.randn(5, 7)


def image():
    return torch.randn(2, 4, 6, 6)


# What each takes besides tensors stands in its name; all inputs are tensors.
TAKEN = {
    "no-argument": (lambda x: aten.sinc(x), [matrix()]),
    "int": (lambda x: aten.cumsum(x, 1), [matrix()]),
    "bools": (lambda x: aten.topk(x, 3, 1, False, True), [matrix()]),
    "two-results": (lambda x: aten.sort(x, 0, True), [matrix()]),
    "three-results": (lambda x: aten.linalg_svd(x, False), [matrix()]),
    "lists-and-flags": (
        lambda x: aten.avg_pool2d(x, [3, 2], [2, 1], [1, 0], True, False),
        [image()],
    ),
    "negative-int": (lambda x: aten.diagonal_copy(x, -1, -2, -1), [matrix()]),
    "float": (lambda x: aten.native_layer_norm(x, [7], None, None, 1e-3)[0], [matrix()]),
    "int-for-float": (lambda x: aten.logit(x, 0), [torch.rand(9)]),
    "infinite-float": (lambda x: aten.nan_to_num(x, None, float("inf"), -1.5), [torch.rand(3) / 0]),
    "optional-ints": (lambda x: aten.repeat_interleave.self_int(x, 3, 1), [matrix()]),
    "optional-int-absent": (lambda x: aten.repeat_interleave.self_int(x, 3), [matrix()]),
    "optional-list": (lambda x: aten.upsample_bilinear2d.vec(x, [9, 5], True, None), [image()]),
    "optional-floats": (lambda x: aten.upsample_nearest2d.vec(x, None, [1.5, 2.0]), [image()]),
    "dtype": (lambda x: aten.sum.dim_IntList(x, [1], True, dtype=torch.float64), [matrix()]),
    "dtype-absent": (lambda x: aten.cumprod(x, 0, dtype=None), [matrix()]),
    "device": (
        lambda x: aten.hann_window(7, dtype=torch.float64, device="cpu", layout=torch.strided),
        [matrix()],
    ),
    "memory-format": (
        lambda x: aten.clone(x, memory_format=torch.channels_last) * 2,
        [image()],
    ),
    "string": (
        lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="floor"),
        [matrix(), matrix()],
    ),
    "string-absent": (lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode=None), [matrix()] * 2),
    "tensors": (lambda x, y: aten.cat([x, y, x], 1), [matrix(), matrix()]),
    "list-result": (lambda x: aten.unbind_copy.int(x, 1), [matrix()]),
    "optional-tensors": (
        lambda x, w, b: aten.convolution(x, w, b, [1, 1], [1, 0], [1, 1], False, [0, 0], 1),
        [image(), torch.randn(3, 4, 2, 2), torch.randn(3)],
    ),
    "optional-tensor-absent": (
        lambda x, w: aten.convolution(x, w, None, [2, 1], [1, 0], [1, 1], True, [0, 0], 1),
        [image(), torch.randn(4, 3, 2, 2)],
    ),
    "list-of-optional-tensors": (
        lambda x, i: aten.index.Tensor(x, [None, i]),
        [matrix(), torch.tensor([3, 0, 3])],
    ),
    "integers": (lambda x: aten.searchsorted.Tensor(x, x * 2), [torch.arange(6)]),
    "bool-tensor": (lambda x: aten.logical_xor(x > 0, x > 1), [matrix()]),
    "half": (lambda x: aten.cumsum(x, 0), [matrix().bfloat16()]),
    "no-elements": (lambda x: aten.cumsum(x, 0), [torch.randn(0, 3)]),
    "no-dims": (lambda x: aten.sinc(x), [torch.tensor(0.5)]),
    "strided": (lambda x: aten.cumsum(x, 0), [matrix().t()]),
    "alias-of-its-argument": (lambda x: aten.contiguous(aten.sinc(x)), [matrix()]),
    "negative-bit": (lambda x: aten._neg_view(aten.sinc(x)) + x, [matrix()]),
}

NOT_TAKEN = {
    "scalar": (lambda x: aten.add.Scalar(x, 2), "other is a Scalar"),
    "scalar-with-tensor": (lambda x: aten.add.Tensor(x, x, alpha=2), "alpha is a Scalar"),
    "optional-scalar": (lambda x: aten.clamp(x, None, 0.5), "max is a Scalar"),
    "number-for-tensor": (lambda x: aten.mul.Tensor(x, 3), "other is 3 for a Tensor"),
}


@pytest.fixture
def all_fall_back(monkeypatch):
    """No op has a lowering or decomposition."""

    def refuse(*_):
        raise Decline("for the test")

    monkeypatch.setattr("weft.frontend.walk.Walk._native", refuse)


@pytest.fixture
def never_dispatched(monkeypatch):
    monkeypatch.setattr("weft.artifacts.fallbacks.describe_call", lambda target, arguments: None)


def ways(compiled) -> list[str]:
    found = latest(compiled).lowered.fallbacks
    return [dispatcher.way_of(each.target, each.arguments) for each in found]


def assert_same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def tuple_or_tensor(value):
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TAKEN)
def test_does_what_torch_does(name, all_fall_back):
    function, inputs = TAKEN[name]
    compiled = weft.compile(function)
    expected = tuple_or_tensor(function(*inputs))
    for _ in range(2):
        assert_same(tuple_or_tensor(compiled(*inputs)), expected)
    assert "dispatcher" in ways(compiled)


def test_results_lie_where_the_program_wants_them():
    """Ops are given the memory of their results, unless they draw numbers or have no such form."""
    arguments = json.dumps([{"tensor": 0}, 1, False])
    name, overload, described, _ = dispatcher.describe_call("aten.sort.default", arguments)
    assert (name, overload, described[3:]) == ("aten::sort", "values", ((6, 0), (6, 1)))
    arguments = json.dumps([{"tensor": 0}, None])
    assert dispatcher.describe_call("aten.bernoulli.default", arguments)[1] == ""
    arguments = json.dumps([{"tensor": 0}, 0])
    assert dispatcher.describe_call("aten.unbind_copy.int", arguments)[1] == "int"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TAKEN)
def test_both_ways_are_the_same(name, all_fall_back, never_dispatched):
    function, inputs = TAKEN[name]
    assert_same(
        tuple_or_tensor(weft.compile(function)(*inputs)), tuple_or_tensor(function(*inputs))
    )


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_the_rest_goes_through_torch_ops(name, all_fall_back):
    function, why = NOT_TAKEN[name]
    compiled, x = weft.compile(function), matrix()
    assert_same(compiled(x), function(x))
    assert ways(compiled) == [f"torch.ops: {why}"]


def test_every_overload_has_a_way():
    """Whatever the schema, an answer: required arguments without one are not taken."""
    for name in dir(aten):
        packet = getattr(aten, name)
        for overload in getattr(packet, "overloads", list)():
            op = getattr(packet, overload)
            template = [
                argument.default_value if isinstance(argument.default_value, (int, list)) else None
                for argument in op._schema.arguments
            ]
            way = dispatcher.way_of(f"aten.{name}.{overload}", json.dumps(template))
            assert way == "dispatcher" or way.startswith("torch.ops: ")


@pytest.mark.parametrize(
    ("target", "template"),
    [
        ("aten.cumsum.default", [{"tensor": 0}, 1.0, None]),
        ("aten.cumsum.default", [{"tensor": 0}, 2**63, None]),
        ("aten.cumsum.default", [{"tensor": 0}, 1, "f32"]),
        ("aten.cumsum.default", [None, 1, None]),
        ("aten.cat.default", [{"tensor": 0}, 1]),
        ("aten.cat.default", [[{"tensor": 0}, None], 1]),
        ("aten.topk.default", [{"tensor": 0}, 3, 1, 1, True]),
        ("aten.hann_window.default", [7, {"dtype": "f32"}, 0, {"device": "cpu"}, None]),
        ("aten.hann_window.default", [7, {"dtype": "f32"}, None, {"device": "cuda:0"}, None]),
        ("aten.logit.default", [{"tensor": 0}, True]),
        ("aten.item.default", [{"tensor": 0}]),
    ],
)
def test_a_value_of_another_type_is_not_taken(target, template):
    text = json.dumps(template)
    assert dispatcher.way_of(target, text).startswith("torch.ops: ")
    assert dispatcher.describe_call(target, text) is None


def test_report_names_the_way(all_fall_back):
    compiled = weft.compile(lambda x: aten.add.Scalar(aten.sinc(x), 2))
    compiled(matrix())
    text = io.StringIO()
    compiled.report(text)
    report = " ".join(text.getvalue().split())
    assert "dispatcher for the test" in report
    assert "torch.ops: other is a Scalar for the test" in report


@pytest.mark.parametrize("load", [False, True], ids=["compiled", "loaded"])
def test_a_failing_op_raises_torchs_own_error(load, all_fall_back, monkeypatch):
    compiled = weft.compile(lambda x: aten.linalg_cholesky_ex(x, check_errors=True)[0])
    good, bad = torch.eye(3), -torch.eye(3)
    assert_same(compiled(good), good)
    assert ways(compiled) == ["dispatcher"]
    monkeypatch.setattr(
        "weft.compiled.compiled.Compiled._failed", lambda self, why, a, k, *_: self.original(*a)
    )
    call = weft.load(compiled.artifact_path) if load else compiled
    for _ in range(3):
        with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
            call(bad)
    result = call(good)
    assert_same(result[0] if load else result, good)


def test_random_numbers_come_in_program_order(all_fall_back):
    def function(x):
        drawn = aten.bernoulli.p(x, 0.5), aten.rand_like(x), aten.native_dropout(x, 0.25, True)[0]
        return drawn[0] * drawn[1] - drawn[2]

    compiled, x = weft.compile(function), torch.rand(16, 3)
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected, after = function(x), torch.get_rng_state()
        torch.manual_seed(seed)
        assert_same(compiled(x), expected)
        assert torch.equal(torch.get_rng_state(), after)
    assert ways(compiled).count("dispatcher") >= 2


def observed(states):
    """A custom op that notes the state of the thread it is called on."""
    library = torch.library.Library("weft_test", "FRAGMENT")
    library.define("observe(Tensor x) -> Tensor")

    def observe(x):
        state = (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        states.append((*state, torch.is_autocast_enabled("cpu"), threading.get_ident()))
        return x.clone()

    library.impl("observe", observe, "CompositeExplicitAutograd")
    return library


@pytest.mark.parametrize("mode", ["no_grad", "enable_grad", "inference", "autocast"])
def test_an_op_sees_its_callers_state(mode):
    states = []
    library = observed(states)
    compiled = weft.compile(lambda x: torch.ops.weft_test.observe(x * 2))
    context = {
        "no_grad": torch.no_grad,
        "enable_grad": torch.enable_grad,
        "inference": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    }[mode]
    with context():
        grad = torch.is_grad_enabled()
        compiled(torch.ones(3))
        states.clear()
        assert_same(compiled(torch.ones(3)), torch.full((3,), 2.0))
        assert torch.is_grad_enabled() == grad
    assert states == [(False, mode == "inference", False, threading.get_ident())]
    assert ways(compiled) == ["dispatcher"]
    library._destroy()


def test_two_threads(all_fall_back):
    compiled = weft.compile(lambda x: aten.sort(aten.sinc(x), 1)[0])
    inputs = [torch.randn(64, 33) for _ in range(2)]
    expected = [aten.sort(aten.sinc(x), 1)[0] for x in inputs]
    compiled(inputs[0])

    def work(number):
        for _ in range(500):
            assert torch.equal(compiled(inputs[number]), expected[number])

    in_threads(2, work)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", ["optional-floats", "tensors", "list-result", "string", "list-of-optional-tensors"]
)
def test_nothing_is_left_behind(name, all_fall_back):
    function, inputs = TAKEN[name]
    compiled = weft.compile(function)
    for _ in range(2000):
        compiled(*inputs)

    def growth() -> int:
        gc.collect()
        before = resident_bytes()
        for _ in range(10_000):
            compiled(*inputs)
        return resident_bytes() - before

    # The allocator may take a page or two at any time; what leaks does so each time.
    assert min(growth() for _ in range(3)) < 512 * 1024


def test_the_loaded_artifact_dispatches_too(all_fall_back, monkeypatch):
    compiled, x = weft.compile(lambda x: aten.sinc(x)), matrix()
    compiled(x)

    def refuse(*_):
        raise AssertionError("ran through torch.ops")

    monkeypatch.setattr("weft.artifacts.fallbacks._function", lambda target, arguments: refuse)
    assert_same(weft.load(compiled.artifact_path)(x)[0], aten.sinc(x))


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", weft.errors.WeftWarning)
        yield

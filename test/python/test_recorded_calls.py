# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that record gradients without a Python frame, and what of them Python is asked for."""

from __future__ import annotations

import copy
import ctypes
import gc
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn

import weft
from weft import _autograd
from weft.compiled import autograd_nodes, recorded_calls


def made_in_cpp(tensor):
    node = tensor.grad_fn
    following, _ = node.next_functions[0]
    if type(following).__name__ == "_StepBackward":  # of the call, behind the result's own
        node = following
    return type(node) is _autograd.StepBackward


class Two(nn.Module):
    """Results of which none is computed of another."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.first(x).tanh()
        return {"out": self.second(hidden), "rest": (x.exp() * 2, (x > 0).sum())}


@pytest.fixture(scope="module")
def two():
    """The module, compiled, with the program there."""
    module = Two()
    compiled = weft.compile(module)
    compiled(batch())
    assert made_in_cpp(compiled(batch())["out"])
    return module, compiled


def batch(seed=1):
    return torch.randn(5, 3, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def leaf():
    return torch.linspace(-1, 1, 4).requires_grad_()


def compared(two, trained):
    """What `trained(call, module)` gives for the compiled module and for one of its kind."""
    module, compiled = two
    twin = copy.deepcopy(module)
    for each in (module, twin):
        each.zero_grad()
    hits = weft.stats(compiled)["hits"]
    found, expected = trained(compiled, module), trained(twin, twin)
    assert weft.stats(compiled)["hits"] > hits and not weft.stats(compiled)["breaks"]
    torch.testing.assert_close(found, expected)
    return found


def gradients_of(module):
    return [each.grad for each in module.parameters()]


def test_no_python_function_runs(two):
    _, compiled = two
    x, given, rest = batch(), torch.ones(5, 2), torch.zeros(5, 3)
    folder, seen = Path(weft.__file__).parent, []

    def note(frame, event, argument):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(folder):
            seen.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        results = compiled(x)
        torch.autograd.backward([results["out"], results["rest"][0]], [given, rest])
        compiled(x)["out"].backward(given)  # the others are used by nobody
    finally:
        sys.setprofile(None)
    assert made_in_cpp(results["out"]) and not seen
    assert results["out"].grad_fn.name() == "_StepBackward"
    assert isinstance(results["out"].grad_fn, torch.autograd.graph.Node)
    assert not results["rest"][1].requires_grad


@pytest.mark.parametrize(
    "given",
    [
        torch.ones(1, 1).expand(5, 2),
        torch.randn(2, 5).t(),
        torch.randn(5, 4)[:, ::2],
        nn.Parameter(torch.ones(5, 2)),
        torch.complex(torch.zeros(5, 2), torch.ones(5, 2)).conj().imag,  # the negative bit
    ],
    ids=["expanded", "transposed", "strided", "a parameter", "negated"],
)
def test_cotangents_of_any_layout(two, given):
    def trained(call, module):
        x = batch()
        results = call(x)
        torch.autograd.backward([results["out"], results["rest"][0]], [given, torch.ones(5, 3)])
        return [x.grad, *gradients_of(module)]

    compared(two, trained)


def test_results_that_nobody_used_and_inputs_that_nobody_asked_for(two):
    def trained(call, module):
        x = batch()
        results = call(x)
        weights = [*module.parameters()]
        first = torch.autograd.grad(
            results["rest"][0].sum(), [x, *weights], retain_graph=True, allow_unused=True
        )
        assert first[1:] == (None,) * 4
        results["out"].sum().backward(inputs=[weights[0]], retain_graph=True)
        assert x.grad is None and weights[1].grad is None
        results["out"].sum().backward(retain_graph=True)
        results["rest"][0].sum().backward()
        return [first[0], x.grad, *gradients_of(module)]

    compared(two, trained)


def test_hooks_run_where_and_when_they_do_in_eager_execution(two):
    def trained(call, module):
        order, x = [], batch()

        def noting(what):
            return lambda *_: order.append(what)

        results = call(x)
        results["out"].retain_grad()
        results["out"].register_hook(lambda g: order.append("out") or 2 * g)
        results["out"].grad_fn.register_prehook(noting("ahead of the node"))
        handles = [x.register_hook(noting("x"))]
        for name, each in module.named_parameters():
            handles.append(each.register_hook(noting(name)))
        (results["out"].sum() + results["rest"][0].sum()).backward()
        for each in handles:
            each.remove()
        return order[:2], sorted(order), [results["out"].grad, x.grad, *gradients_of(module)]

    module, compiled = two
    twin = copy.deepcopy(module)
    for each in (module, twin):
        each.zero_grad()
    found, expected = trained(compiled, module), trained(twin, twin)
    assert found[:2] == expected[:2]
    torch.testing.assert_close(found[2], expected[2])


@pytest.mark.parametrize("used", ["out", "rest"])
def test_hooks_of_a_result_that_nobody_used_are_not_called(two, used):
    def trained(call, module):
        called, x = [], batch()
        results = call(x)
        both = {"out": results["out"], "rest": results["rest"][0]}
        for name, each in both.items():
            each.retain_grad()
            each.register_hook(lambda given, name=name: called.append((name, given.shape)))
        both[used].sum().backward()
        assert [name for name, _ in called] == [used]
        return [each.grad for each in both.values()]

    compared(two, trained)


def test_backward_once_more_and_once_too_often(two):
    def trained(call, module):
        x = batch()
        total = sum(each.sum() for each in (call(x)["out"], call(x)["rest"][0]))
        total.backward(retain_graph=True)
        total.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            total.backward()
        return [x.grad, *gradients_of(module)]

    compared(two, trained)


def test_results_apart_are_gone_backwards_from_one_by_one(two):
    """Each frees what it comes by."""

    def trained(call, module):
        x = batch()
        results = call(x)
        totals = results["out"].square().sum(), results["rest"][0].sum()
        for each in totals:
            each.backward()
        for each in totals:
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                each.backward()
        return [x.grad, *gradients_of(module)]

    compared(two, trained)


def test_results_with_something_in_common_are_not_apart():
    def function(x, y):
        middle = x.tanh()
        return middle.exp(), middle.sin(), y.cos() * y

    compiled = weft.compile(function)
    compiled(leaf(), leaf())
    for call in (function, compiled):
        x, y = leaf(), leaf()
        first, second, third = call(x, y)
        first.sum().backward(retain_graph=True)
        first.sum().backward()
        third.sum().backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            second.sum().backward()
        torch.testing.assert_close(y.grad, (y.cos() - y * y.sin()).detach())
    assert made_in_cpp(first) and not weft.stats(compiled)["breaks"]


def test_what_has_been_written_since_is_noticed(two):
    def trained(call, module):
        results = call(batch())
        with torch.no_grad():
            module.second.weight.add_(0)
        with pytest.raises(RuntimeError) as raised:
            results["out"].sum().backward()
        assert "modified by an inplace operation" in str(raised.value)
        return torch.tensor(["expected version" in str(raised.value)])

    compared(two, trained)


def test_gradients_that_can_be_differentiated():
    module = Two()
    two = module, weft.compile(module)
    two[1](batch())
    assert made_in_cpp(two[1](batch())["out"])

    def trained(call, module):
        x = batch()
        results = call(x)
        total = results["out"].square().sum() + results["rest"][0].sum()
        (slope,) = torch.autograd.grad(total, x, create_graph=True)
        slope.square().sum().backward()
        return [slope.detach(), x.grad, *gradients_of(module)]

    for _ in range(4):  # by the programs of these gradients, too
        compared(two, trained)
    assert not made_in_cpp(two[1](batch())["out"]), "calls show autograd what they save"


def test_cotangents_that_stand_for_many(two):
    def trained(call, module):
        x = batch()
        out = call(x)["out"]
        many = torch.eye(10).reshape(10, 5, 2)
        return torch.autograd.grad(out, x, many, is_grads_batched=True)

    compared(two, trained)


def test_a_subclass_as_cotangent(two):
    class Own(torch.Tensor):
        pass

    def trained(call, module):
        x = batch()
        given = torch.ones(5, 2).as_subclass(Own)
        (found,) = torch.autograd.grad(call(x)["out"], x, given)
        return found.as_subclass(torch.Tensor)

    compared(two, trained)


def test_hooks_of_saved_tensors_are_left_to_python(two):
    def trained(call, module):
        x = batch()
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda each: each):
            results = call(x)
        assert not made_in_cpp(results["out"])
        results["out"].sum().backward()
        return [x.grad, *gradients_of(module)]

    compared(two, trained)


def test_anomaly_mode_of_a_backward_alone_names_the_call(two):
    def trained(call, module):
        out = call(batch())["out"]
        with torch.autograd.detect_anomaly(check_nan=True), pytest.warns(UserWarning):
            with pytest.raises(RuntimeError, match="returned nan values"):
                out.backward(torch.full((5, 2), float("nan")))
        return torch.zeros(0)

    compared(two, trained)


def test_several_threads(two):
    def trained(call, module):
        found = {}

        def run(number):
            for _ in range(20):
                x = batch(number)
                results = call(x)
                found[number] = torch.autograd.grad(
                    [results["out"], results["rest"][0]], x, [torch.ones(5, 2), torch.ones(5, 3)]
                )

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return [found[number] for number in range(4)]

    compared(two, trained)


def test_an_error_on_the_way_is_raised(two, monkeypatch):
    _, compiled = two

    def refuse(*_):
        raise KeyError("of the test's")

    monkeypatch.setattr(recorded_calls, "gradients_along", refuse)
    x = batch()
    with pytest.raises(KeyError, match="of the test's"):
        torch.autograd.grad(compiled(x)["out"].sum(), x, create_graph=True)


def _allocated():
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]

    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Info
    return libc.mallinfo2().h  # uordblks: bytes in use


def test_calls_leave_nothing_behind(two):
    _, compiled = two
    x, given = batch(), [torch.ones(5, 2), torch.ones(5, 3)]

    def run(count):
        for number in range(count):
            results = compiled(x)
            if number % 4:  # else the graph is dropped as it is
                torch.autograd.backward([results["out"], results["rest"][0]], given)
        del results
        gc.collect()

    run(1000)
    before, blocks = _allocated(), sys.getallocatedblocks()
    run(10_000)
    assert _allocated() - before < 200_000
    assert sys.getallocatedblocks() - blocks < 2_000


def test_saved_tensors_are_freed_by_the_backward():
    compiled = weft.compile(lambda x, y: x * y)
    for _ in range(2):
        x, y = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True) * 1
        out = compiled(x, y)
    assert made_in_cpp(out)
    there = weakref.ref(y)
    del y
    assert there() is not None
    out.sum().backward()
    assert there() is None


def test_a_graph_outlives_its_callable():
    def function(x):
        return (x**3).sum()

    compiled = weft.compile(function)
    x = torch.randn(4, requires_grad=True)
    compiled(x)
    out = compiled(x)
    assert made_in_cpp(out)
    del compiled
    gc.collect()
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(slope.sum(), x)[0], 6 * x.detach())


def test_a_module_that_holds_its_result_is_freed():
    module = nn.Linear(3, 2)
    compiled = weft.compile(module)
    for _ in range(2):
        out = compiled(batch())
    assert made_in_cpp(out)
    module.latest = out
    there = weakref.ref(module)
    del module, compiled, out
    gc.collect()
    assert there() is None


def test_a_gradient_that_is_its_cotangent_has_memory_of_its_own():
    compiled, x = weft.compile(lambda x: x + 1), torch.zeros(2, 3, requires_grad=True)
    compiled(x)
    for given in (torch.ones(2, 3), torch.ones(1).expand(2, 3), torch.ones(3, 2).t()):
        out = compiled(x)
        assert made_in_cpp(out)
        (found,) = torch.autograd.grad(out, x, given)
        assert found.data_ptr() != given.data_ptr() and found.equal(torch.ones(2, 3))
    (found,) = torch.autograd.grad(compiled(x), x, torch.ones(2, 3).to_sparse())
    assert found.to_dense().equal(torch.ones(2, 3))


def test_another_torch_than_it_was_built_for(monkeypatch):
    monkeypatch.setattr(autograd_nodes._build, "TORCH_VERSION", "2.0.0")
    autograd_nodes.are_there.cache_clear()
    try:
        compiled, x = weft.compile(lambda x: x * 2), torch.randn(4, requires_grad=True)
        compiled(x)
        total = compiled(x)
        assert type(total.grad_fn).__name__ == "_StepBackward" and not made_in_cpp(total)
        assert weft.stats(compiled)["hits"] == 2
        for _ in range(2):  # nothing has been saved that the first one could free
            total.backward(torch.ones(4))
        assert x.grad.equal(torch.full((4,), 4.0))
    finally:
        autograd_nodes.are_there.cache_clear()

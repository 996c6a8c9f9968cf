# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a last bit decides on a slope, gradients may be those of either, and no others."""

import copy
from dataclasses import replace

import pytest
import torch
from wrong_gradients import all_nan, largest_halved

import weft
from weft.compiled import gradient_check, range_verification
from weft.compiled.rounded import Rounded
from weft.compiled.verification import Differs, Verdict
from weft.frontend.random_rounding import RandomRounding
from weft.training.step_check import StepCheck

nn = torch.nn
UNDECIDED = Verdict.INCONCLUSIVE


class _AtKinks(nn.Module):
    """The activation's input is zero but for a last bit at so many places, and positive in float64
    as in float32."""

    def __init__(self, activation, x, count):
        super().__init__()
        self.first, self.norm = nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8)
        self.activation, self.last = activation, nn.Linear(8, 3)
        self.register_buffer("bounds", torch.zeros(len(x), 8))
        self.put_at_kinks(x, count)

    def put_at_kinks(self, x, count):
        norm = copy.deepcopy(self.norm)
        with torch.no_grad():
            values = norm(self.first(x))
            exact = norm.double()(x.double() @ self.first.weight.double().T)
        below = torch.nextafter(values, torch.tensor(-torch.inf))
        places = ((values > below) & (exact > below)).nonzero()[:: len(values)][:count]
        self.bounds.zero_()
        self.bounds[places.unbind(1)] = below[places.unbind(1)]

    def forward(self, x):
        return self.last(self.activation(self.norm(self.first(x)) - self.bounds))


def _swapped(gradient):
    low, high = gradient.argmin(), gradient.argmax()
    swapped = gradient.clone()
    flat = swapped.view(-1)
    flat[low], flat[high] = gradient.view(-1)[high], gradient.view(-1)[low]
    return swapped


FAULTS = {
    "sign": torch.neg,
    "halved": largest_halved,
    "factor": lambda gradient: gradient * (1 + 1e-3),
    "swapped": _swapped,
    "nan": all_nan,
}


@pytest.mark.usefixtures("verified")
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.LeakyReLU(0.2), nn.Hardtanh(0, 2), torch.abs])
@pytest.mark.parametrize("count", [1, 2])
def test_either_slope_is_right_and_nothing_else(monkeypatch, activation, count):
    plain, compared = gradient_check.compare_values, []
    monkeypatch.setattr(
        gradient_check, "compare_values", lambda *each: compared.append(each) or plain(*each)
    )
    torch.manual_seed(0)
    x = torch.randn(16 + count, 6)
    model = _AtKinks(activation, x, count)
    weft.compile(model)(x)
    ((eager, own, exact, (given,), coarsest, rounded, _),) = compared
    other = _of_other_slopes(eager, rounded)
    assert not plain(eager, other, exact, [given], coarsest, rounded)
    with pytest.raises(Differs):
        plain(eager, other, exact, [given], coarsest)
    of_one_row = _of_one_row(model, x, given, eager)
    for right in (own, other):
        for place, gradient in enumerate(right):
            faults = [fault(gradient) for fault in FAULTS.values()]
            for wrong in (*faults, gradient - of_one_row[place]):
                gradients = [wrong if n == place else each for n, each in enumerate(right)]
                with pytest.raises(Differs):
                    plain(eager, gradients, exact, [given], coarsest, rounded)


@pytest.mark.usefixtures("verified")
@pytest.mark.parametrize("unlucky", [0, 1, 2, 3])
def test_another_call_decides(monkeypatch, unlucky):
    """Of three calls: with the same data the fourth would be at the same kink."""
    plain, left = gradient_check.compare_values, [unlucky]

    def compare(eager, own, *rest):
        left[0] -= 1
        return plain(eager, eager if left[0] < 0 else _of_other_slopes(eager, rest[3]), *rest)

    monkeypatch.setattr(gradient_check, "compare_values", compare)
    torch.manual_seed(1)
    x = torch.randn(20 + unlucky, 6)
    compiled = weft.compile(_AtKinks(nn.LeakyReLU(0.3), x, 1))
    for _ in range(5):
        compiled(x).sum().backward()
    breaks, hits = weft.stats(compiled)["breaks"], weft.stats(compiled)["hits"]
    if unlucky < 3:
        assert (breaks, hits) == ([], 4 - unlucky)
    else:
        assert ["decides on a slope" in each for each in breaks] == [True] and not hits


@pytest.mark.usefixtures("verified")
@pytest.mark.parametrize("unlucky", [2, 3])
def test_another_call_decides_on_a_range_of_sizes(monkeypatch, unlucky):
    plain, left = range_verification.compare_gradients, [unlucky]

    def compare(training, check, finding):
        left[0] -= 1
        found = plain(training, check, finding)
        return found if left[0] < 0 else replace(found, verdict=UNDECIDED, is_explained=True)

    monkeypatch.setattr(range_verification, "compare_gradients", compare)
    torch.manual_seed(2)
    layers = (nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    compiled = weft.compile(nn.Sequential(*layers), automatic=True)
    for size in (9, 7, 12, 11, 10, 13, 9, 14):
        compiled(torch.randn(size, 6)).sum().backward()
    assert len(weft.stats(compiled)["ranges"]) == (unlucky < 3)
    assert left[0] < 1


@pytest.mark.usefixtures("verified")
@pytest.mark.parametrize("unlucky", [2, 3])
@pytest.mark.parametrize("kind, rate", [(torch.optim.SGD, 10.0), (torch.optim.Adam, 0.01)])
def test_another_step_decides(monkeypatch, unlucky, kind, rate):
    """On the program of a whole step, whose updates are those along other slopes and no others."""
    plain, verdicts = StepCheck.agree, []

    def agree(check, eager, own, gradients):
        verdict = plain(check, eager, own, gradients)
        if len(verdicts) < unlucky:
            other = _of_other_slopes(gradients, Rounded(check._gradients, b"", ""))
            verdict = plain(check, eager, _updates(check, other), gradients)
            for place, gradient in enumerate(other):
                for name, fault in FAULTS.items():
                    wrong = [fault(gradient) if n == place else x for n, x in enumerate(other)]
                    found = plain(check, eager, _updates(check, wrong), gradients)
                    assert found is Verdict.DIFFERENT, name
        verdicts.append(verdict)
        return verdict

    monkeypatch.setattr(StepCheck, "agree", agree)
    torch.manual_seed(3)
    batches = [torch.randn(16 + unlucky, 6) for _ in range(8)]
    model = _AtKinks(nn.LeakyReLU(0.3), batches[0], 0)
    optimizer = kind(model.parameters(), rate)
    step = weft.compile_step(model, lambda out, y: (out * y).mean(), optimizer)
    for number, x in enumerate(batches):
        model.put_at_kinks(x, count=int(number > 0))
        step(x, torch.randn(16 + unlucky, 3))
    assert verdicts[:unlucky] == [UNDECIDED] * unlucky
    if unlucky < 3:
        assert step.steps >= 2 and not step.reasons
    else:
        (reason,) = step.reasons
        assert "decides on a slope" in reason and not step.steps


def _updates(check, gradients):
    return [check._updated(n, gradient.double()) for n, gradient in enumerate(gradients)]


def _of_other_slopes(eager, rounded):
    """The gradients of a computation in which values have other slopes than in PyTorch's."""
    for seed in range(100, 200):
        found = rounded.compute(RandomRounding(seed))
        if any((x - y).abs().max() > 2e-3 * x.abs().max() for x, y in zip(eager, found)):
            return found
    raise AssertionError("no rounding gives another slope")


def _of_one_row(model, x, given, eager):
    """The part of each gradient that one row of the batch gives."""
    result = model(x)
    params = [*model.parameters()]
    whole = torch.autograd.grad(result, params, given, retain_graph=True)
    row = torch.zeros_like(given)
    row[3] = given[3]
    part = torch.autograd.grad(result, params, row)
    return [
        min(zip(whole, part), key=lambda pair: _distance(pair[0], gradient))[1]
        for gradient in eager
    ]


def _distance(one, other):
    return (one - other).abs().max() if one.shape == other.shape else float("inf")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients in float64 may differ from PyTorch's by what rounding does to them, and by no more."""

import pytest
import torch
from wrong_gradients import all_nan, largest_halved

import weft
from weft.compiled import gradient_check, rounded
from weft.compiled.distances import MOST_IN_FLOAT64, Exact
from weft.compiled.verification import Differs
from weft.frontend.random_rounding import RandomRounding, Spread

nn = torch.nn


class _Rounded(nn.Module):
    """The gradients of `steep` lose five digits, those of `positions` have float32's."""

    def __init__(self):
        super().__init__()
        self.plain, self.steep = nn.Linear(4, 4, bias=False), nn.Linear(3, 4, bias=False)
        self.positions = nn.Linear(5, 4, bias=False)

    def forward(self, x):
        places = torch.arange(5, dtype=torch.float32) * x.shape[0] ** 0.5 / 2
        h = self.plain(x)
        kept = torch.where(h == h.amax(-1, keepdim=True), h, h / 2)
        positions = self.positions(torch.sin(places).to(x.dtype))
        steep = torch.sin(3e5 * self.steep(x[:, :3])) / 3e5
        return kept + steep + torch.tanh(positions + x) / 1000


FAULTS = {
    "sign": torch.neg,
    "factor": lambda gradient: gradient * (1 + 1e-6),
    "element": largest_halved,
    "nan": all_nan,
}


@pytest.mark.usefixtures("verified")
def test_rounding_excuses_as_much_as_it_explains(monkeypatch):
    """Where it explains nothing, a factor of 1 + 1e-9 is refused."""
    compared = []

    def compare(eager, own, exact, given, coarsest, of_rounding, allowed):
        compared.append((eager, own, exact, given, coarsest, of_rounding))
        return plain(eager, own, exact, given, coarsest, of_rounding, allowed)

    plain = gradient_check.compare_values
    other = []
    spread = rounded.spreads_of

    def spreads_of(compute, most):
        other[:] = compute(RandomRounding(99))
        return spread(compute, most)

    monkeypatch.setattr(gradient_check, "compare_values", compare)
    monkeypatch.setattr(rounded, "spreads_of", spreads_of)
    torch.manual_seed(0)
    model = _Rounded().double()
    compiled = weft.compile(model)
    x = torch.randn(7, 4, dtype=torch.float64)
    for _ in range(2):
        compiled(x).sum().backward()
    assert (weft.stats(compiled)["breaks"], weft.stats(compiled)["hits"]) == ([], 1)

    ((eager, own, *rest, of_rounding),) = compared
    names = [{3: "steep", 4: "plain", 5: "positions"}[each.shape[1]] for each in eager]
    spreads = of_rounding.spreads
    # Another computation that is right in float64.
    other = [other[n] if name == "steep" else own[n] for n, name in enumerate(names)]
    plain(eager, other, *rest, of_rounding)
    with pytest.raises(Differs):
        plain(eager, other, *rest)
    sizes = dict(zip(names, (each.spread.max() / each.value.abs().max() for each in spreads)))
    assert sizes["plain"] < 1e-14 < 1e-12 < sizes["steep"] < 1e-9 < sizes["positions"] < 1e-6
    for place, name in enumerate(names):
        slight = {"plain": 1e-9, "steep": 1e-8, "positions": 1e-5}[name]
        faults = FAULTS | {"factor": lambda gradient, slight=slight: gradient * (1 + slight)}
        for fault in faults.values():
            wrong = [fault(each) if n == place else each for n, each in enumerate(own)]
            with pytest.raises(Differs, match="differs"):
                plain(eager, wrong, *rest, of_rounding)


def test_whatever_the_spread_values_agree_to_some_digits():
    """One last bit may change a comparison, and so all of a gradient."""
    eager = torch.ones(3, dtype=torch.float64)
    spread = Spread(eager, eager, MOST_IN_FLOAT64)
    assert spread.excuses(eager, eager * (1 + 1e-10)) and not spread.excuses(eager, eager + 1e-8)
    assert not spread.excuses(eager + 1e-8, eager + 1e-8)  # another one than the graph's
    assert not Spread(eager, 1e-13 * eager, MOST_IN_FLOAT64).excuses(eager, eager + 1e-10)


def test_a_spread_excuses_results_in_float64():
    value, eps = torch.ones(3, dtype=torch.float64), 2.0**-52
    for size, is_excused in ((1e-11, True), (1e-14, False)):
        spread = Spread(value, size * value, MOST_IN_FLOAT64)
        result = Exact(value, value, 1.0, 0.0, eps, lambda spread=spread: spread)
        assert result.excuses(value, value + 1e-11) == is_excused

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.distributions made within a call, arguments checked: log-probabilities, samples of one
seed, divergences and their gradients."""

import pytest
import torch
from torch import distributions as D

import weft


def positive(x):
    return torch.nn.functional.softplus(x) + 0.1


MAKERS = {
    "Beta": lambda a, b: D.Beta(positive(a), positive(b)),
    "Cauchy": lambda a, b: D.Cauchy(a, positive(b)),
    "Gumbel": lambda a, b: D.Gumbel(a, positive(b)),
    "HalfNormal": lambda a, b: D.HalfNormal(positive(a)),
    "Laplace": lambda a, b: D.Laplace(a, positive(b)),
    "LogNormal": lambda a, b: D.LogNormal(a, positive(b)),
    "LogitNormal": lambda a, b: D.TransformedDistribution(
        D.Normal(a, positive(b)), [D.SigmoidTransform()]
    ),
    "MultivariateNormal": lambda a, b: D.MultivariateNormal(
        a, scale_tril=torch.diag_embed(positive(b))
    ),
    "OneHotCategorical": lambda a, b: D.OneHotCategorical(logits=a),
    "Pareto": lambda a, b: D.Pareto(positive(a), positive(b)),
    "RelaxedBernoulli": lambda a, b: D.RelaxedBernoulli(torch.tensor(0.7), logits=a),
    "StudentT": lambda a, b: D.StudentT(positive(a) + 3, b, positive(b)),
}
WITH_DIVERGENCE = {"Gumbel", "LogNormal", "LogitNormal", "MultivariateNormal", "Pareto"}


def used(name, a, b, value):
    made = MAKERS[name](a, b)
    results = [made.log_prob(value), made.rsample() if made.has_rsample else made.sample()]
    if name in WITH_DIVERGENCE:
        results.append(D.kl_divergence(made, MAKERS[name](a + 0.1, b)))
    return results


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", MAKERS)
def test_distributions(name, verified):
    a, b = torch.randn(4, 5), torch.randn(4, 5)
    value = MAKERS[name](a, b).sample()
    used(name, a, b, value)  # PyTorch remembers which divergence it is, past what is observed
    compiled = weft.compile(lambda a, b, value: used(name, a, b, value))
    for seed in range(4):
        found, expected = (
            _run(call, a, b, value, seed) for call in (compiled, lambda *x: used(name, *x))
        )
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=3e-5, atol=3e-5, equal_nan=True)
    assert weft.stats(compiled)["hits"], weft.stats(compiled)


def _run(call, a, b, value, seed):
    torch.manual_seed(seed)
    a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
    results = call(a, b, value)
    reached = [each for each in results if each.requires_grad]
    gradients = torch.autograd.grad(sum(each.sum() for each in reached), [a, b], allow_unused=True)
    return [*results, *(each for each in gradients if each is not None)]


def test_checks_of_arguments_stay():
    """A later call with what is no scale raises as in eager execution."""

    def f(a, b):  # torch.compile, once used, turns these checks off
        return D.Laplace(a, b, validate_args=True).log_prob(a)

    compiled = weft.compile(f)
    a, b = torch.randn(3), torch.rand(3) + 0.1
    for _ in range(3):
        compiled(a, b)
    with pytest.raises(ValueError, match="constraint"):
        compiled(a, -b)
    torch.testing.assert_close(compiled(a, b), f(a, b))


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return self.factor == other.factor

    __hash__ = None

    @property
    def shown(self):
        return self.factor


def test_what_lists_are_compared_by_is_guarded():
    left, right = [Scaled(1.0), Scaled(2.0)], [Scaled(1.0), Scaled(2.0)]
    compiled = weft.compile(lambda x: x * 2 if left == right else x - 1, capture="observe")
    x = torch.randn(3)
    for _ in range(3):
        assert torch.equal(compiled(x), x * 2)
    assert weft.stats(compiled)["hits"]
    right[1].factor = 3.0
    assert torch.equal(compiled(x), x - 1)
    right[1] = left[1]
    right[0].factor = 1.0
    assert torch.equal(compiled(x), x * 2)
    left.append(Scaled(4.0))
    assert torch.equal(compiled(x), x - 1)
    right.append(left[2])
    assert torch.equal(compiled(x), x * 2)


def test_properties_of_classes_are_guarded():
    compiled = weft.compile(
        lambda x: x + isinstance(getattr(Scaled, "shown", None), property), capture="observe"
    )
    x = torch.randn(3)
    before = Scaled.shown
    for _ in range(3):
        assert torch.equal(compiled(x), x + 1)
    assert weft.stats(compiled)["hits"]
    try:
        Scaled.shown = 3
        assert torch.equal(compiled(x), x + 0)
        Scaled.shown = before
        assert torch.equal(compiled(x), x + 1)
        del Scaled.shown
        assert torch.equal(compiled(x), x + 0)
    finally:
        Scaled.shown = before

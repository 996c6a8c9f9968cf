# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules in training: steps of compiled and eager ones side by side."""

from __future__ import annotations

import copy
import functools

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import weft


@pytest.fixture(autouse=True)
def compare_first_calls(verified):
    pass


def train(module, inputs, targets, loss, steps: int, optimizer=torch.optim.SGD, seed=None):
    """The losses; the module ends up trained."""
    optimizer = optimizer(module.parameters(), lr=0.05)
    losses = []
    for step in range(steps):
        if seed is not None:
            torch.manual_seed(seed + step)
        optimizer.zero_grad()
        found = loss(module(inputs), targets)
        found.backward()
        optimizer.step()
        losses.append(found.item())
    return losses


def assert_trains_alike(module, inputs, targets, loss, steps=5, tolerance=1e-4, **how):
    eager, compiled = copy.deepcopy(module), weft.compile(copy.deepcopy(module))
    expected = train(eager, inputs, targets, loss, steps, **how)
    found = train(compiled, inputs, targets, loss, steps, **how)
    stats = weft.stats(compiled)
    assert not stats["breaks"] and stats["hits"] >= steps - 1, stats
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    state = compiled.state_dict()
    for name, tensor in eager.state_dict().items():
        torch.testing.assert_close(state[name], tensor, rtol=10 * tolerance, atol=tolerance)
    return compiled


def images(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_mlp(optimizer):
    torch.manual_seed(0)
    mlp = nn.Sequential(
        nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 4)
    )
    targets = torch.arange(8) % 4
    tolerance = 1e-4 if optimizer is torch.optim.SGD else 5e-3  # divides by small moments
    assert_trains_alike(
        mlp, images(8, 20), targets, F.cross_entropy, 6, tolerance, optimizer=optimizer
    )


def test_loss_within():
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 3)

        def forward(self, x):
            return F.cross_entropy(self.linear(x), torch.tensor([0, 1, 2, 0]))

    torch.manual_seed(0)
    assert_trains_alike(WithLoss(), images(4, 6), None, lambda loss, _: loss)


def test_convolutions_with_batch_norm():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    targets = torch.arange(4)
    compiled = assert_trains_alike(net, images(4, 3, 8, 8), targets, F.cross_entropy)
    assert compiled[1].num_batches_tracked == 5
    compiled.eval()
    with torch.no_grad():
        compiled(images(4, 3, 8, 8))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_transformer_encoder_layer(dropout):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout, batch_first=True, activation="gelu")
    assert_trains_alike(layer, images(2, 6, 32), images(2, 6, 32), F.mse_loss, seed=3)


def test_language_model():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(16, 24)
            self.norm = nn.LayerNorm(24)
            self.project = nn.Linear(24, 72)
            self.head = nn.Linear(24, 16, bias=False)
            self.head.weight = self.embedding.weight  # shared

        def forward(self, tokens):
            x = self.embedding(tokens)
            q, k, v = self.project(self.norm(x)).view(2, 5, 2, 36).transpose(1, 2).chunk(3, -1)
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.head(x + attended.transpose(1, 2).reshape(2, 5, 24)).flatten(0, 1)

    torch.manual_seed(0)
    tokens = torch.tensor([[1, 2, 3, 1, 0], [4, 4, 9, 15, 7]])
    assert_trains_alike(Model(), tokens, tokens.flatten(), F.cross_entropy)


def test_dropout_draws_the_same_masks():
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.Linear(8, 2))
    assert_trains_alike(module, images(4, 8), images(4, 2), F.mse_loss, seed=0)


def test_frozen_parameters_and_toggling():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 2))
    module[0].requires_grad_(False)
    compiled = assert_trains_alike(module, images(3, 5), images(3, 2), F.mse_loss)
    assert compiled[0].weight.grad is None
    graphs = weft.stats(compiled)["graphs"]
    compiled[0].requires_grad_(True)
    for _ in range(2):
        compiled(images(3, 5)).sum().backward()
    assert weft.stats(compiled)["graphs"] == graphs + 1
    assert compiled[0].weight.grad is not None and not weft.stats(compiled)["breaks"]
    compiled.requires_grad_(False)
    for _ in range(2):
        assert not compiled(images(3, 5)).requires_grad
    with torch.no_grad():
        compiled(images(3, 5))


def test_gradients_of_a_type_that_parameters_no_longer_have():
    layer = nn.Linear(4, 2)
    layer(torch.ones(4)).sum().backward()
    for each in layer.parameters():
        each.data = each.data.double()
    x, compiled = torch.randn(3, 4, dtype=torch.float64), weft.compile(layer)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), F.linear(x, layer.weight, layer.bias))
    assert weft.stats(compiled)["hits"] == 2 and not weft.stats(compiled)["breaks"]


def test_a_parameter_that_is_not_read_has_no_gradient():
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.used(x), self.unused(x)

    compiled = weft.compile(Partly())
    for _ in range(3):
        compiled.zero_grad()
        compiled(images(2, 3))[0].sum().backward()
        assert compiled.used.weight.grad is not None
        assert compiled.unused.weight.grad is None
    assert weft.stats(compiled)["hits"] == 2


def test_pytorch_differentiates_what_it_runs():
    def function(x, y):
        return (x.i0() * y).sin()

    compiled = weft.compile(function)
    x, y = torch.rand(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    inputs = [x.requires_grad_(), y.requires_grad_()]
    for _ in range(3):
        found = torch.autograd.grad(compiled(*inputs).sum(), inputs)
        torch.testing.assert_close(found, torch.autograd.grad(function(*inputs).sum(), inputs))
    stats = weft.stats(compiled)
    assert stats["hits"] == 2 and not stats["breaks"], stats
    assert torch.autograd.gradgradcheck(compiled, inputs, atol=1e-5)


@pytest.mark.parametrize("name", ["dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_other_dropouts_draw_the_same_masks(name):
    function = getattr(F, name)
    compiled = weft.compile(lambda x: function(x.transpose(2, 3), 0.4, True))
    for _ in range(3):
        found = []
        for each in (compiled, lambda x: function(x.transpose(2, 3), 0.4, True)):
            torch.manual_seed(5)
            x = images(3, 4, 5, 6).double().requires_grad_()
            value = each(x)
            found.append((value.detach(), *torch.autograd.grad(value.square().sum(), x)))
        torch.testing.assert_close(found[0], found[1])
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats


def test_padding_of_an_embedding_has_no_gradient():
    module = nn.Embedding(7, 3, padding_idx=2).double()
    compiled = weft.compile(module)
    index = torch.tensor([[2, 1, 2], [6, 6, 0]])
    for _ in range(3):
        (found,) = torch.autograd.grad(compiled(index).square().sum(), module.weight)
        (expected,) = torch.autograd.grad(module(index).square().sum(), module.weight)
        torch.testing.assert_close(found, expected)
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats


def test_what_has_no_derivative_runs_in_pytorch():
    @functools.partial(weft.compile, capture="export")
    def function(x):
        return torch.normal(x, torch.ones(4)).sum()

    x = torch.rand(4, requires_grad=True)
    with pytest.warns(weft.errors.WeftWarning, match="has no derivative"):
        function(x).backward()
    (reason,) = weft.stats(function)["breaks"]
    assert "test_training_modules.py" in reason
    function(x)
    with torch.no_grad():  # which needs none
        function(x), function(x)
    assert weft.stats(function)["hits"] >= 1


def test_gradients_of_rounding_alone_are_pytorchs():
    """Of a bias ahead of a batch norm in training, whose gradient is zero but for rounding: no two
    computations agree on a digit of it. So little as it is in a small net, it does not matter."""
    torch.manual_seed(0)
    for bias, size, is_refused in ((False, 32, False), (True, 32, True), (True, 3, False)):
        x = torch.rand(4, 8, size, size)
        module = nn.Sequential(nn.Conv2d(8, 4, 1, bias=bias), nn.BatchNorm2d(4), nn.ReLU())
        compiled = weft.compile(module, capture="export")
        for _ in range(2):
            compiled(x).sum().backward()
        breaks = weft.stats(compiled)["breaks"]
        assert ["rounding noise alone" in each for each in breaks] == [True] * is_refused


def test_gradients_enabled_within_inference_mode_are_not_recorded() -> None:
    module = torch.nn.Linear(4, 4)
    compiled = weft.compile(module)
    x = torch.randn(3, 4)
    for _ in range(2):
        compiled(x)
    with torch.inference_mode(), torch.enable_grad():
        for _ in range(3):
            result = compiled(x)
            assert not result.requires_grad and result.is_inference()
            torch.testing.assert_close(result, module(x))
    assert compiled(x).requires_grad


class Passes(torch.autograd.Function):
    """A clamp that passes all gradients on."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def test_functions_with_a_backward_of_their_own():
    """For what the first call is given, the clamp has the same derivative."""
    compiled = weft.compile(lambda x: Passes.apply(x) * 2)
    for scale in (0.1, 0.1, 10.0):
        x = (torch.linspace(-1, 1, 8) * scale).requires_grad_()
        compiled(x).sum().backward()
        torch.testing.assert_close(x.grad, torch.full((8,), 2.0))
    assert weft.stats(compiled)["hits"] >= 2


class Scales(torch.autograd.Function):
    """Another slope than its values have, in the newer form."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7


passes, scales = Passes.apply, Scales.apply  # as extensions keep them


@pytest.mark.parametrize("kept", [passes, scales], ids=["passes", "scales"])
def test_a_backward_of_its_own_behind_a_name_that_was_kept(kept, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    for function in (kept, lambda x: kept(x) * 2, lambda x: torch.func.vjp(kept, x)[1](x)[0]):
        compiled = weft.compile(function)
        for _ in range(3):
            x = torch.linspace(-3, 3, 8, requires_grad=True)
            expected = error = None
            try:
                (expected,) = torch.autograd.grad(function(x).sum(), x)
            except RuntimeError as raised:
                error = raised
            if error is not None:
                with pytest.raises(type(error)):
                    torch.autograd.grad(compiled(x).sum(), x)
                continue
            (found,) = torch.autograd.grad(compiled(x).sum(), x)
            torch.testing.assert_close(found, expected)


def test_where_a_backward_of_its_own_is_not_asked_for():
    compiled = weft.compile(lambda x: Passes.apply(x) * 2)
    x = torch.linspace(-3, 3, 8)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), x.clamp(-1, 1) * 2)
    assert weft.stats(compiled)["hits"] >= 1


class Iterates(nn.Module):
    """Writes a buffer without gradients, and reads what it has written, as spectral norms do."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4, dtype=torch.float64))
        self.register_buffer("state", torch.randn(4, dtype=torch.float64))

    def forward(self, x):
        with torch.no_grad():
            self.state.copy_(F.normalize(self.weight @ self.state, dim=0))
        return x @ (self.weight / torch.dot(self.state.clone(), self.weight @ self.state.clone()))


def test_buffers_written_without_gradients_are_constants():
    torch.manual_seed(0)
    module = Iterates()
    twin = copy.deepcopy(module)
    compiled = weft.compile(module)
    for seed in range(4):
        x = torch.randn(3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        for each in (compiled, twin):
            each.zero_grad()
            each(x).square().sum().backward()
        torch.testing.assert_close(compiled.weight.grad, twin.weight.grad, rtol=1e-9, atol=1e-11)
    assert weft.stats(compiled)["hits"] >= 2 and not weft.stats(compiled)["breaks"]


class Weighs(nn.Module):
    """Weights of its results that are no part of the derivative."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        with torch.no_grad():
            weights = self.a(x).softmax(-1)
        return self.b(self.a(x) * weights)


def test_constants_under_autocast():
    torch.manual_seed(0)
    module = Weighs()
    twin = copy.deepcopy(module)
    compiled = weft.compile(module)
    for seed in range(3):
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(seed))
        for each in (compiled, twin):
            each.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                result = each(x)
            result.float().square().sum().backward()
        for mine, theirs in zip(compiled.parameters(), twin.parameters()):
            scale = theirs.grad.abs().max()
            torch.testing.assert_close(mine.grad / scale, theirs.grad / scale, rtol=0, atol=0.03)
    assert weft.stats(compiled)["hits"] >= 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(6, 5), (2, 5, 3, 4)], ids=["classes", "images"])
def test_losses_of_classes_under_autocast(shape):
    """`nll_loss` casts within, to float32."""
    x = torch.randn(shape).log_softmax(1).bfloat16().requires_grad_()
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    compiled = weft.compile(torch.nn.functional.nll_loss)
    for _ in range(3):
        found = []
        for function in (compiled, torch.nn.functional.nll_loss):
            with torch.autocast("cpu", torch.bfloat16):
                loss = function(x, target)
            found += [loss, *torch.autograd.grad(loss, x)]
        assert found[0].dtype is torch.float32
        torch.testing.assert_close(found[:2], found[2:])
    stats = weft.stats(compiled)
    assert stats["hits"] and not stats["breaks"], stats

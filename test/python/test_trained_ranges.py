# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that record gradients, in programs for ranges of sizes, against PyTorch."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import weft
from weft.compiled.module import callable_of

SIZES = (9, 16, 3, 7, 13)


def infinite_in_padding(x, w, b):
    """Zeros have no logarithm, no inverse and no direction."""
    y = x * w
    return (
        y.abs().log() @ b.outer(w),
        1 / y + b,
        F.normalize(y, dim=1) * b,
        y.rsqrt().nan_to_num(),
    )


def moved(x, w, b):
    y = x * w + b
    ahead = torch.cat([y[1:], y[:1].exp()]) * w
    return (
        *(
            ahead.flip(0),
            F.pad(y, (0, 0, 2, 1)) * 2,
            y[:-1] - y[1:],
            torch.cat([y, y * b]).cumsum(0),
        ),
        *(y[(x[:, 0].abs() * 5).long() % x.shape[0]], y.sort(0).values, y.reshape(-1)[3:]),
        *(torch.take_along_dim(y, y.argsort(0), 0), y * math.log(x.shape[0])),
    )


def reduced(x, w, b):
    y = x * w + b
    return (
        *(y.softmax(0) @ b, y.log_softmax(0)[-1], y.mean(), y.std(0), y.amax(0), y.var(), y.norm()),
        F.cross_entropy(y, (x[:, 1].abs() * 5).long() % 8, label_smoothing=0.1),
        y.detach().mean(0) * y,
        # Of equal ones the first has the gradient.
        F.max_pool2d(torch.cat([y, y.detach()])[None], (2 * x.shape[0], 8)),
        F.avg_pool2d(y[None], kernel_size=(x.shape[0], 8)),
    )


def contracted(x, w, b):
    y = F.layer_norm(x * w, (8,), w, b)
    q = y.reshape(1, -1, 2, 4).transpose(1, 2)
    places = torch.arange(x.shape[0])
    near = (places[:, None] - places).abs() < 3
    scores = (y @ x.T).masked_fill(~near, -torch.inf)
    return (
        *(F.scaled_dot_product_attention(q, q * 2, q, is_causal=True), scores.softmax(-1) @ y),
        F.scaled_dot_product_attention(q, q, q, attn_mask=near),
        F.group_norm(y.T[None], 2, w, b),
        F.layer_norm(y, y.shape),
        F.rms_norm(y.mT * 2, x.shape[:1], eps=1e-3),
        torch.einsum("nc,cd,nd->n", y, w.outer(b), x * w),
    )


def convolved(x, w, b):
    signal = (x * w).T[None]
    rows = F.conv2d((x + b).reshape(-1, 2, 2, 2), w.reshape(1, 2, 2, 2), padding=1)
    return (
        F.conv1d(signal, b.expand(2, 8)[..., None].repeat(1, 1, 3), padding=1),
        *(F.avg_pool1d(signal, 3, 1, 1), F.max_pool1d(signal, 3, 1, 1)),
        F.batch_norm(rows, None, None, training=True),
    )


def run_by_pytorch(x, w, b):
    """Ops that are given what counts."""
    n, y = x.shape[0], (x * w + b).exp()
    spectrum = torch.stft(y.flatten(), 8, 4, window=torch.hann_window(8), return_complex=True)
    return (
        *(torch.view_as_real(spectrum), torch.fft.irfft(torch.fft.rfft(y, dim=0), n, dim=0)),
        *(y.sort(0, descending=True).values, y.median(0).values, y.topk(n // 2 + 1, 0).values),
        *(y.topk(2).values, torch.linalg.inv(torch.eye(8) + y[:, :, None] * x[:, None].exp())),
        torch.linspace(-1, 2, n)[:, None] * y,
    )


def views(x, w, b):
    y = x * w + b
    return y, y[-1], y.T, y[:, :2]


FAMILIES = (infinite_in_padding, moved, reduced, contracted, convolved, run_by_pytorch, views)


def gradients(function, *arguments):
    """The results, and the gradients along random cotangents."""
    torch.manual_seed(1)
    results = function(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    given = [torch.randn(each.shape) for each in results]
    leaves = [each for each in arguments if each.requires_grad]
    return *results, *torch.autograd.grad(results, leaves, given)


def agree(actual, expected, of=""):
    for place, (own, other) in enumerate(zip(actual, expected, strict=True)):
        assert own.stride() == other.stride()
        largest = other[other.isfinite()].abs().max().item() if other.isfinite().any() else 0.0
        message = f"{of}, {place}"
        torch.testing.assert_close(
            own, other, rtol=1e-4, atol=1e-5 * (1 + largest), equal_nan=True,
            msg=lambda text, message=message: f"{message}: {text}",
        )  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.__name__)
def test_padding_has_no_part_in_gradients(family, monkeypatch):
    """Nothing but this comparison stands between a wrong program and the user."""
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(family, shapes={"x": {0: weft.Range(2, 16)}})
    w, b = (torch.randn(8, requires_grad=True) for _ in range(2))
    for size in SIZES:
        x = torch.randn(size, 8, requires_grad=True)
        agree(gradients(compiled, x, w, b), gradients(family, x, w, b), size)
    stats = compiled.stats()
    assert stats["specialized"] == [] and stats["breaks"] == [] and stats["graphs"] == 1
    assert list(stats["ranges"].values()) == [len(SIZES)]
    x = torch.randn(2, 8, requires_grad=True)  # which some have a program of its own for
    agree(gradients(compiled, x, w, b), gradients(family, x, w, b))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(4, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(self.drop(x.mean((2, 3))))


def trained(module, function, *arguments):
    """The loss, the gradients of the parameters, and the buffers behind a step."""
    module.zero_grad()
    torch.manual_seed(2)
    loss = function(*arguments).logsumexp(-1).mean()
    loss.backward()
    return (
        loss,
        *(p.grad.clone() for p in module.parameters()),
        *(b.clone() for b in module.buffers()),
    )


def test_batches_of_more_than_two_sizes(automatic_sizes):
    """Masks are those of eager execution, and running variances know the batch's size."""
    module = Classifier()
    twin, compiled = copy.deepcopy(module), weft.compile(module)
    for size in (16, 16, 11, 16, 9, 13):
        x = torch.randn(size, 3, 8, 8)
        agree(trained(module, compiled, x), trained(twin, twin, x), size)
    assert compiled.stats()["graphs"] == 3
    assert compiled.stats()["ranges"] == {"f32[2..16, 3, 8, 8]": 2}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(8, 8)

    def forward(self, x, padding, mask):
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        ahead = self.layers(x, mask=causal)
        return self.layers(ahead, mask=mask, src_key_padding_mask=padding), self.head(ahead)


def test_encoders_with_masks(monkeypatch):
    """The layers ask whether a mask is causal, and run sequences with padding by kernels of their
    own where nobody asks for gradients."""
    monkeypatch.setattr(weft.config, "verify", "off")
    module = Encoder()
    tokens = weft.Range(2, 16)
    sizes = {0: weft.Range(2, 8), 1: tokens}
    shapes = {"x": sizes, "padding": sizes, "mask": {0: tokens, 1: tokens}}
    compiled = weft.compile(module, shapes=shapes)
    for batch, size in ((3, 7), (8, 16), (2, 3), (5, 12)):
        x = torch.randn(batch, size, 8, requires_grad=True)
        padding = torch.arange(size) >= torch.randint(1, size + 1, (batch, 1))
        given = x, padding, torch.ones(size, size, dtype=torch.bool).triu(1)
        found = gradients(lambda x, *_: compiled(*given), x, *module.parameters())  # noqa: B023
        expected = gradients(lambda x, *_: module(*given), x, *module.parameters())  # noqa: B023
        agree(found, expected, (batch, size))
    stats = compiled.stats()
    assert stats["breaks"] == [] and list(stats["ranges"].values()) == [4]


def next_tokens(tokens, targets, table):
    scores = F.embedding(tokens, table) @ table.T
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def test_tokens_and_those_that_follow(automatic_sizes, monkeypatch):
    """Two slices of one tensor, and scores whose rows are two dims made one."""
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(next_tokens)
    table = torch.randn(20, 8, requires_grad=True)
    for batch, length in ((3, 10), (4, 13), (5, 8), (2, 17), (7, 5)):
        text = torch.randint(0, 20, (batch, length))
        call = text[:, :-1], text[:, 1:], table
        agree(gradients(compiled, *call), gradients(next_tokens, *call), length)
    stats = compiled.stats()
    assert stats["graphs"] == 3 and list(stats["ranges"].values()) == [3]


def noisy(x, w):
    y = x * w
    mean, deviation = y.chunk(2, -1)
    noise = torch.randn_like(deviation) * deviation + torch.rand_like(mean)
    noise = noise + torch.randn(x.shape[0], 4) + torch.rand(x.shape[0])[:, None]
    return mean * noise, y * torch.bernoulli(torch.full_like(y, 0.5))


def test_as_many_numbers_are_drawn_as_count(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(noisy, shapes={"x": {0: weft.Range(2, 16)}})
    w = torch.randn(8, requires_grad=True)
    for size in (9, 16, 3):
        x = torch.randn(size, 8)
        agree(gradients(compiled, x, w), gradients(noisy, x, w), size)
    assert compiled.stats()["graphs"] == 1


def test_philox_draws_the_same_for_any_size(automatic_sizes, verified):
    compiled = weft.compile(nn.Dropout(0.5), rng="philox")
    for size in (9, 12, 5, 7):
        x = torch.ones(size, 8, requires_grad=True)
        torch.manual_seed(0)
        result = compiled(x)
        (gradient,) = torch.autograd.grad(result.sum(), x)
        assert torch.equal(gradient, result)
    assert compiled.stats()["ranges"] == {"f32[2..16, 8]": 1}


class Steps(nn.Module):
    """A network of one layer, and the same by hand."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True)
        self.read, self.keep, self.norm = nn.Linear(5, 6), nn.Linear(6, 6), nn.LayerNorm(6)

    def forward(self, x):
        steps, _ = self.lstm(x)
        state, states = x.new_zeros(len(x), 6), []
        for step in self.read(steps).unbind(1):
            state = torch.tanh(self.norm(step + self.keep(state)))
            states.append(state)
        return torch.cat([torch.stack(states, 1), weighted(self.read(steps))], -1)


def weighted(x):
    """Steps whose derivatives are no numbers at zero."""
    total, weight, means = x.new_zeros(len(x), 6), x.new_zeros(len(x), 6), []
    for step in x.unbind(1):
        factor = step.square().sqrt().exp()
        total, weight = total + factor * step, weight + factor
        means.append(total / weight)
    return torch.stack(means, 1)


def test_steps_of_any_number(automatic_sizes):
    module = Steps()
    twin, compiled = copy.deepcopy(module), weft.compile(module)
    for length in (20, 27, 18, 32):
        x = torch.randn(3, length, 4)
        agree(trained(module, compiled, x), trained(twin, twin, x), length)
    assert compiled.stats()["graphs"] == 3
    assert list(compiled.stats()["ranges"]) == ["f32[3, 17..32, 4]"]


def test_two_sizes_that_meet(automatic_sizes):
    def both(x, y, w):
        return (x @ w).tanh(), (y @ w).sum(0), x.sum()

    compiled, w = weft.compile(both), torch.randn(4, 4, requires_grad=True)
    for n, m in ((5, 7), (6, 9), (8, 3), (7, 7), (16, 2), (3, 13)):
        x, y = (torch.randn(size, 4, requires_grad=True) for size in (n, m))
        agree(gradients(compiled, x, y, w), gradients(both, x, y, w), (n, m))
    assert list(compiled.stats()["ranges"].values()) == [4]


def test_gradients_of_gradients(automatic_sizes):
    module = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    compiled = weft.compile(module)
    for size in (9, 12, 5, 7):
        x = torch.randn(size, 6, requires_grad=True)
        found = []
        for function in (compiled, module):
            (slope,) = torch.autograd.grad(function(x).pow(2).sum(), x, create_graph=True)
            penalty = (slope.norm(dim=1) - 1).pow(2).mean()
            found.append(torch.autograd.grad(penalty, [x, *module.parameters()], allow_unused=True))
        agree(*([each for each in of if each is not None] for of in found), size)
    assert list(compiled.stats()["ranges"].values()) == [2]


def test_a_backward_is_compiled_once_somebody_asks(automatic_sizes):
    module = nn.Linear(6, 3).eval()
    compiled = weft.compile(module)
    for size in (9, 12, 5):
        compiled(torch.randn(size, 6))
    programs = callable_of(compiled).face.programs
    (program,) = programs.range_programs()
    assert program.training.backward is None
    for size in (7, 9, 11, 8):
        x = torch.randn(size, 6)
        agree(trained(module, compiled, x), trained(module, module, x), size)
    (program,) = programs.range_programs()
    assert program.training.backward is not None


def test_sizes_that_have_spent_much_get_a_program(automatic_sizes):
    module = nn.Linear(6, 3)
    compiled = weft.compile(module)
    programs = callable_of(compiled).face.programs
    for size in (9, 12, 5, 5, 5):
        x = torch.randn(size, 6)
        agree(trained(module, compiled, x), trained(module, module, x), size)
        for program in programs.range_programs():
            assert set(program.spent) == {(5,)}
            program.spent[(5,)] = max(program.spent[(5,)], 0.0) + 3600.0
    stats = compiled.stats()
    assert stats["graphs"] == 4 and list(stats["ranges"].values()) == [1]


def test_transforms_have_a_program_for_each_size(automatic_sizes):
    def function(x, w):
        return (x @ w).tanh().sum()

    compiled, w = weft.compile(function), torch.randn(4, 4)
    for size in (5, 7, 6, 5, 7, 6):
        x = torch.randn(size, 4)
        agree(*([torch.func.grad(f, 1)(x, w)] for f in (compiled, function)), size)
    assert compiled.stats()["graphs"] == 3 and compiled.stats()["breaks"] == []


def test_what_is_declined_has_a_program_for_each_size(automatic_sizes):
    def scattered(x):
        return torch.zeros(9, 4).scatter_reduce(0, (x > 0).long(), x, "prod")

    compiled = weft.compile(scattered)
    for size in (9, 5, 7):
        x = torch.randn(size, 4, requires_grad=True)
        agree(gradients(compiled, x), gradients(scattered, x), size)
    (reason,) = compiled.stats()["specialized"]
    assert "gradients of weft.scatter by prod with symbolic sizes" in reason

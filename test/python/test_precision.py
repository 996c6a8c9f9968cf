# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The option `precision`: contractions of float32 that read bfloat16 and sum in float32."""

import copy
import io

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import weft
from weft import errors
from weft.artifacts.builds import Options, cache_key
from weft.compiled.gradient_values import compare_values
from weft.compiled.value_pairs import Differs


class Encoder(nn.Module):
    """A layer as BERT has them."""

    def __init__(self, width: int = 96, heads: int = 3) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        def split(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        attended = F.scaled_dot_product_attention(*(split(f(x)) for f in (self.q, self.k, self.v)))
        x = self.norm1(x + self.out(attended.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.second(F.gelu(self.first(x))))


class Residual(nn.Module):
    """Convolutions as ResNet has them, grouped ones and a pooled head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32))
        self.conv1 = nn.Sequential(nn.Conv2d(32, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32))
        self.depthwise = nn.Sequential(nn.Conv2d(32, 32, 3, 1, 1, groups=32), nn.BatchNorm2d(32))
        self.head = nn.Linear(32, 10)
        for each in self.modules():
            if isinstance(each, nn.BatchNorm2d):
                nn.init.uniform_(each.running_var, 0.5, 2)
                nn.init.normal_(each.running_mean)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        x = F.relu(x + self.conv1(x))
        x = F.relu(x + self.depthwise(x))
        return self.head(x.mean((2, 3)))


def models() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    """The same ones wherever this file is imported; each with the sizes of its input."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return {
            "encoder": (nn.Sequential(Encoder(), Encoder()), (2, 37, 96)),
            "residual": (Residual(), (2, 3, 35, 33)),
            "linear": (nn.Linear(771, 97), (37, 771)),
            "vector": (nn.Linear(390, 70), (390,)),
            "few-rows": (nn.Linear(390, 33), (5, 390)),
            "small": (nn.Sequential(nn.Linear(100, 70), nn.ReLU(), nn.Linear(70, 9)), (50, 100)),
            "conv1d": (nn.Conv1d(8, 24, 3, 2, 1), (2, 8, 41)),
            "groups": (nn.Conv2d(16, 24, 3, groups=4), (1, 16, 15, 20)),
        }


MODELS = models()


def distance(found: torch.Tensor, exact: torch.Tensor) -> float:
    return ((found.double() - exact).norm() / exact.norm()).item()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ["avx2", "native"])
@pytest.mark.parametrize("name", MODELS)
def test_error(name: str, isa: str) -> None:
    torch.manual_seed(0)
    module, shape = MODELS[name]
    module = copy.deepcopy(module).eval()
    x = torch.randn(shape)
    with torch.no_grad():
        one, two = (
            weft.compile(module, precision="bf16", isa=isa, threads=threads) for threads in (1, 2)
        )
        found = one(x)
        exact = copy.deepcopy(module).double()(x.double())
        with torch.autocast("cpu", torch.bfloat16):
            autocast = distance(module(x), exact)
        assert not one.eager_reasons
        assert found.dtype == torch.float32
        assert torch.equal(found, two(x))
    error = distance(found, exact)
    assert error <= min(0.01, 1.5 * autocast), autocast
    assert error > 1e-4  # bfloat16 was read


def gradients_of(function, module: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Of the input and of all parameters, along a cotangent of ones and twos."""
    x = x.clone().requires_grad_()
    y = function(x)
    weights = 1 + torch.arange(y.numel()).reshape(y.shape) % 2
    wrt = [x, *module.parameters()]
    return [y, *torch.autograd.grad(y.to(x.dtype), wrt, weights.to(x.dtype))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_error_of_gradients(name: str) -> None:
    """Behind convolutions of few images a rounded relu decides otherwise in some elements."""
    torch.manual_seed(0)
    module, shape = MODELS[name]
    module = copy.deepcopy(module).eval()
    x = torch.randn(shape)
    compiled = weft.compile(module, precision="bf16")
    for _ in range(2):
        found = gradients_of(compiled, module, x)
    assert not compiled.eager_reasons and compiled.stats()["hits"]
    double = copy.deepcopy(module).double()
    exact = gradients_of(double, double, x.double())

    def autocast(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return module(x)

    rounded = gradients_of(autocast, module, x)
    for own, reference, other in zip(found, exact, rounded, strict=True):
        assert own.dtype == torch.float32
        assert distance(own, reference) <= max(1.5 * distance(other, reference), 1e-5)


def test_gradients_that_no_rounding_explains_are_refused() -> None:
    eager, own = torch.randn(100), torch.randn(100)
    near = eager * (1 + 0.05 * torch.randn(100))
    compare_values([eager], [near], lambda: None, [eager], allowed=0.1)
    for wrong in (own, -eager, near.index_fill(0, torch.tensor([3]), torch.inf)):
        with pytest.raises(Differs):
            compare_values([eager], [wrong], lambda: None, [eager], allowed=0.1)
    with pytest.raises(Differs):
        compare_values([eager], [near], lambda: None, [eager])


def test_what_is_not_a_contraction_stays_float32() -> None:
    """Behind one exact contraction, everything has the error of float32."""

    def function(x, eye):
        y = x @ eye
        return F.layer_norm(y, y.shape[-1:]), F.softmax(y, -1), F.gelu(y).sum(0), y.cumsum(1)

    x, eye = torch.randn(40, 64).bfloat16().float(), torch.eye(64)
    found = weft.compile(function, precision="bf16")(x, eye)
    for got, exact in zip(found, function(x.double(), eye.double()), strict=True):
        assert distance(got, exact) < 1e-6


def test_weights_that_change_are_seen() -> None:
    module = nn.Linear(200, 150).requires_grad_(False)
    compiled = weft.compile(module, precision="bf16")
    x = torch.randn(40, 200)
    first = compiled(x)
    with torch.no_grad():
        module.weight.mul_(3)
        module.bias.zero_()
        again = compiled(x)
        assert distance(again, module.double()(x.double())) < 0.01
    assert not torch.equal(first, again)
    assert not compiled.eager_reasons


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_types_are_as_without(dtype: torch.dtype) -> None:
    module = nn.Linear(100, 70).to(dtype).requires_grad_(False)
    x = torch.randn(50, 100, dtype=dtype)
    assert torch.equal(weft.compile(module, precision="bf16")(x), weft.compile(module)(x))


def test_an_exported_program() -> None:
    module, x = nn.Linear(100, 70).requires_grad_(False), torch.randn(50, 100)
    program = torch.export.export(module, (x,))
    found = weft.from_exported_program(program, precision="bf16")(x)
    assert torch.equal(found, weft.compile(module, precision="bf16")(x))
    assert not torch.equal(found, weft.compile(module)(x))


def test_the_report_says_so() -> None:
    def report(**options) -> str:
        compiled = weft.compile(lambda x: x @ x, **options)
        compiled(torch.ones(8, 8))
        text = io.StringIO()
        compiled.report(text)
        return text.getvalue()

    line = "Matmuls and convolutions of float32 read bfloat16 and sum in float32."
    assert line in report(precision="bf16")
    assert line not in report()


def test_an_unknown_precision() -> None:
    with pytest.raises(errors.ConfigError, match="expected precision float32 or bf16, found 'f8'"):
        weft.compile(lambda x: x, precision="f8")


def test_part_of_the_cache_key() -> None:
    keys = {cache_key(b"{}", Options(precision=name)) for name in ("float32", "bf16")}
    assert len(keys) == 2

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""float32 contractions in bfloat16 parts, where the machine has a matrix unit: tails of its blocks,
numbers that bfloat16 parts do not hold, and the same bits with any number of threads. On other
machines the same must hold, but for the error: vectors sum in blocks of up to 128 steps. oneDNN's
convolutions sum in shorter ones on every machine."""

import copy
import subprocess
import sys

import pytest
import torch
from counting import programs
from processor import FLAGS
from torch.nn.functional import linear

import weft

ISA = "amx" if "amx_bf16" in FLAGS else "native"
# Against float64, beside eager mode's.
ERROR = 1.1 if ISA == "amx" else 1.4
CONVOLUTION_ERROR = 1.4


def _compiled(module: torch.nn.Module, *args: torch.Tensor) -> torch.Tensor:
    results = []
    for threads in (1, 2):
        weft.set_num_threads(threads)
        compiled = weft.compile(module, isa=ISA)
        with torch.no_grad():
            results.append(compiled(*args))
        assert programs(compiled) == 1
    weft.set_num_threads(2)
    assert torch.equal(results[0].nan_to_num(), results[1].nan_to_num())
    return results[0]


# Blocks are 32 rows by 32 lanes by 32 steps, in stages of 128 steps; 3072 steps are two chunks.
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "tokens, depth, width",
    [(64, 128, 128), (128, 768, 96), (96, 333, 300), (197, 160, 1000), (130, 3072, 257),
     (512, 129, 64), (40, 1000, 333)],
)  # fmt: skip
def test_error_against_float64(tokens: int, depth: int, width: int) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(depth, width), torch.nn.GELU()).eval()
    x = torch.randn(2, tokens, depth)
    ours = _compiled(module, x)
    with torch.no_grad():
        eager = module(x)
        exact = module.double()(x.double())
    assert (ours - exact).norm() <= ERROR * (eager - exact).norm()
    assert (ours - exact).abs().max() <= 2 * (eager - exact).abs().max()


class Transposed(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.transpose(1, 2) @ b


# Rows that lie side by side are transposed, 16 at a time; a block may have 16 rows or fewer.
@pytest.mark.parametrize("rows, depth, lanes", [(176, 256, 512), (144, 300, 512), (333, 256, 520)])
def test_batches_of_transposed_rows(rows: int, depth: int, lanes: int) -> None:
    a, b = torch.randn(3, depth, rows), torch.randn(3, depth, lanes)
    ours = _compiled(Transposed(), a, b)
    exact = a.double().transpose(1, 2) @ b.double()
    assert (ours - exact).norm() <= ERROR * (Transposed()(a, b) - exact).norm()


# Blocks of rows go through image rows; taps are unit steps of their own, whole or not.
# The first has outputs that Winograd's declines.
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "channels, outputs, kernel, stride, size",
    [(64, 80, 3, 1, 17), (96, 160, 3, 2, 23), (40, 256, 3, 1, 20), (256, 96, 1, 2, 30)],
)
def test_convolution(channels: int, outputs: int, kernel: int, stride: int, size: int) -> None:
    module = torch.nn.Conv2d(channels, outputs, kernel, stride, padding=kernel // 2).eval()
    x = torch.randn(2, channels, size, size)
    ours = _compiled(module, x)
    with torch.no_grad():
        eager = module(x)
        exact = module.double()(x.double())
    assert (ours - exact).norm() <= CONVOLUTION_ERROR * (eager - exact).norm()
    x[1, 3, 5, 7] = torch.inf
    with torch.no_grad():
        expected = module.float()(x)
    torch.testing.assert_close(_compiled(module, x), expected, equal_nan=True)


# Rows in whole blocks of whole unit steps are read where they lie; two unit steps are enough.
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "module, shape",
    [(torch.nn.Linear(768, 96), (2, 128, 768)), (torch.nn.Linear(3072, 64), (1, 70, 3072)),
     (torch.nn.Linear(96, 40), (1, 64, 96)), (torch.nn.Linear(100, 64), (1, 96, 100)),
     (torch.nn.Linear(64, 256), (1, 200, 64)), (torch.nn.Conv2d(64, 128, 1), (2, 64, 16, 16)),
     (torch.nn.Conv2d(64, 96, 1), (1, 64, 13, 11)), (torch.nn.Conv2d(32, 64, 3), (1, 32, 20, 20))],
)  # fmt: skip
def test_bfloat16(module: torch.nn.Module, shape: tuple[int, ...]) -> None:
    module, x = copy.deepcopy(module).bfloat16(), torch.randn(shape).bfloat16()
    ours = _compiled(module, x)
    with torch.no_grad():
        eager = module(x)
        exact = module.double()(x.double())
    assert (ours - exact).norm() <= 1.01 * (eager - exact).norm()


class Product(torch.nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self.weight)


def _operands() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(128, 256), torch.randn(256, 256)


def _check(x: torch.Tensor, weight: torch.Tensor) -> None:
    ours = _compiled(Product(weight), x)
    exact = linear(x.double(), weight.double())
    # What a product's parts lose must not show beside what float32 itself rounds.
    scale = linear(x.double().abs(), weight.double().abs())
    # Sums that pass the largest float32 on their way are the order's business.
    inside = scale < torch.finfo(torch.float32).max
    error = (ours.double() - exact).abs()[inside]
    assert (error <= 1e-5 * scale[inside] + 1e-44).all()
    special = ~torch.isfinite(exact)
    eager = linear(x, weight)
    assert torch.equal(ours[special].isnan(), eager[special].isnan())
    assert torch.equal(ours[special].nan_to_num(), eager[special].nan_to_num())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan, 3.4e38, 1e30, 1e-31, 1e-40])
@pytest.mark.parametrize("side", ["token", "weight"])
def test_one_unusual_number(value: float, side: str) -> None:
    x, weight = _operands()
    (x if side == "token" else weight)[70, 100] = value
    _check(x, weight)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("token_scale, weight_scale",
                         [(1e-31, 1.0), (1.0, 1e-31), (1e-16, 1e-16), (1e-19, 1e-19), (1e-40, 1.0),
                          (1e19, 1e19), (1e25, 1e-25), (0.0, 1.0)])  # fmt: skip
def test_scales(token_scale: float, weight_scale: float) -> None:
    x, weight = _operands()
    _check(x * token_scale, weight * weight_scale)


# As an activation leaves them: what the unit takes for zero does not show in sums of others.
@pytest.mark.sampled(2)
@pytest.mark.parametrize("least", [1e-31, 1e-38, 1e-44])
@pytest.mark.parametrize("weight_scale", [1e-6, 1.0, 1e6, 1e12])
def test_small_numbers_among_others(least: float, weight_scale: float) -> None:
    x, weight = _operands()
    x[:, ::3] *= torch.logspace(0, -38, 128)[:, None]
    x[:, 5::7] = least
    x[40:44] = 1e-31  # where nothing else is
    x[90] = 0.0
    _check(x, weight * weight_scale)
    weight[:, ::2] = 0.0
    _check(x, weight * weight_scale)


def test_rows_of_different_scales() -> None:
    x, weight = _operands()
    _check(x * torch.logspace(-36, 18, 128)[:, None], weight)
    _check(x, weight * torch.logspace(-36, 18, 256)[:, None])


def test_masked_tokens_stay_zero() -> None:
    x, weight = _operands()
    x[::3] = 0.0
    ours = _compiled(Product(weight), x)
    assert (ours[::3] == 0).all()


THREADS = """
import os, threading, torch, weft
torch.manual_seed(0)
module = torch.nn.Linear(768, 520).bfloat16().requires_grad_(False)
inputs = [torch.randn(250, 768).bfloat16() for _ in range(8)]
early, wrong = threading.Event(), []


def work(number):
    early.wait()
    for _ in range(20):
        if compiled(inputs[number]).view(torch.int16).numpy().tobytes() != bits[number]:
            wrong.append(number)


threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
for each in threads:
    each.start()
weft.set_num_threads(4)
compiled = weft.compile(module, isa="native")
expected = [compiled(x).clone() for x in inputs]
expected = [compiled(x).clone() for x in inputs]
assert ("matrix_unit = 1" in compiled.ir("loops")) == HAS_UNIT
for x, found in zip(inputs, expected):
    torch.testing.assert_close(found, module(x), rtol=1e-2, atol=1e-2)
bits = [each.view(torch.int16).numpy().tobytes() for each in expected]
early.set()
for each in threads:
    each.join()
child = os.fork()
if child == 0:
    work(3)
    os._exit(len(wrong))
assert os.waitpid(child, 0)[1] == 0 and not wrong
print("equal")
"""


def test_threads_that_were_there_before_and_forks() -> None:
    """The system lets the process use the unit when its first kernel is made or loaded, which
    counts for all threads; a child has what its parent had. Bytes are compared: PyTorch's own
    threads do not outlive a fork."""
    code = f"HAS_UNIT = {ISA == 'amx'}\n{THREADS}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr

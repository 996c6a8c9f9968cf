# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.warm`: the first call of a kind finds its program."""

import pytest
import torch
from processes import python

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

nn = torch.nn


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.calls = nn.Embedding(10, 8), 0

    def forward(self, ids: torch.LongTensor, scale: torch.Tensor | None = None):
        rows = self.table(ids)
        return rows if scale is None else rows * scale


@pytest.mark.parametrize("processes", [1, 3])
def test_the_first_call_is_the_programs(verified, compiled_only, processes):
    model = nn.Linear(4, 4).eval()
    compiled = weft.compile(model)
    ready = weft.warm(compiled, [(2, 4), (3, 4), ((5, 4), "float32"), (2, 4)], processes=processes)
    assert ready == [None] * 4
    captures = compiled.stats()["captures"]
    for rows in (2, 3, 5):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), model(x))
    stats = compiled.stats()
    assert (captures, stats["captures"], stats["hits"], stats["misses"]) == (3, 3, 3, 0)


def test_what_stands_for_arguments(verified, compiled_only):
    compiled = weft.compile(Embedding().eval())
    descriptions = [
        {"ids": (2, 3)},
        ((1, 5), (1, 5, 1)),
        {"ids": ((4,), torch.int32)},
        torch.zeros(2, dtype=torch.int64),
        (torch.zeros(3, dtype=torch.int64), torch.ones(8)),
        [(6, 1), ((), "float64")],
    ]
    assert weft.warm(compiled, descriptions) == [None] * 6
    compiled(ids=torch.ones(2, 3, dtype=torch.int64))
    compiled(torch.ones(1, 5, dtype=torch.int64), torch.ones(1, 5, 1))
    compiled(ids=torch.ones(4, dtype=torch.int32))
    compiled(torch.ones(2, dtype=torch.int64))
    assert compiled.stats()["hits"] == 4 and compiled.stats()["misses"] == 0


def test_nothing_is_called_here(verified):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            return x * self.count

    model = Model()
    compiled = weft.compile(model)
    assert weft.warm(compiled, [(3,)]) == [None]
    assert model.count.item() == 0
    assert compiled(torch.ones(3)).tolist() == [1, 1, 1] and model.count.item() == 1


def test_why_a_call_will_run_in_pytorch():
    def function(x):
        return x if x.sum().item() > 0 else -x

    (reason,) = weft.warm(weft.compile(function), [(3,)])
    assert reason


def test_the_next_process_finds_them(tmp_path):
    code = """
import torch, weft
torch.manual_seed(0)
torch.set_grad_enabled(False)
weft.config.verify = "first"
compiled = weft.compile(torch.nn.Linear(4, 4))
"""
    warm = python(
        code + "print(weft.warm(compiled, [(2, 4), (3, 4)], processes=2))",
        WEFT_CACHE_DIR=str(tmp_path),
    )
    assert warm.stdout.strip() == "[None, None]", warm.stderr
    call = """
import sys
compiled(torch.randn(3, 4))
print("weft._compiler" in sys.modules, compiled.stats()["hits"])
"""
    after = python(code + call, WEFT_CACHE_DIR=str(tmp_path))
    assert after.stdout.strip() == "False 1", after.stderr


def test_refusals():
    with pytest.raises(TypeError, match="expected what weft.compile returned"):
        weft.warm(nn.Linear(2, 2), [(1, 2)])
    compiled = weft.compile(nn.Linear(2, 2))
    with pytest.raises(weft.errors.ConfigError, match="processes"):
        weft.warm(compiled, [(1, 2)], processes=0)
    with pytest.raises(weft.errors.ConfigError, match="dtype"):
        weft.warm(compiled, [((1, 2), "floating")])

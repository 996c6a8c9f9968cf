# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs, outputs, aliasing, locations, determinism and refusals of the frontend."""

import inspect
import json

import pytest
import torch
import torch.nn.functional as F
from frontend_cases import Function, check
from graph_interpreter import run_module
from torch import nn

from weft.frontend import Unsupported, lower


def lowered_of(function, *args, **kwargs):
    module = function if isinstance(function, nn.Module) else Function(function)
    return lower(torch.export.export(module, args, kwargs))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("scratch", torch.ones(3), persistent=False)
        self.offset = torch.tensor([1.0, 2.0, 3.0])
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x, scale=2.0):
        self.count.add_(1)
        x.mul_(scale)
        return {"y": x * self.weight + self.offset + self.scratch, "n": 7, "count": self.count}


def test_state_is_fed_and_written_back():
    lowered = check(Counter(), torch.randn(3), scale=3.0)
    kinds = {(entry.kind, entry.name) for entry in lowered.inputs}
    assert {("parameter", "weight"), ("buffer", "count"), ("user", None)} <= kinds
    assert [(t.kind, t.name) for t in lowered.outputs if t.kind == "buffer"] == [
        ("buffer", "count")
    ]
    constants = [t.value for t in lowered.outputs if t.kind == "constant"]
    assert constants == [7]


def test_inputs_have_names_of_their_own():
    class Shadowed(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Parameter(torch.randn(3))
            self.x_ = nn.Parameter(torch.randn(3))

        def forward(self, x):
            return x * self.x + self.x_

    lowered = check(Shadowed(), torch.randn(3))
    names = [entry["name"] for entry in json.loads(lowered.graph)["inputs"]]
    assert names == ["x", "x_", "x__"]


def test_outputs_that_are_inputs_keep_identity():
    x = torch.randn(4, 6)

    def function(x):
        y = x.relu()
        return (
            x,
            x.contiguous(),
            x[1:, ::2],
            x.t(),
            x.detach(),
            y,
            y.view(-1),
            y,
            F.dropout(x, 0.5, False),
        )

    outputs, lowered = run_module(Function(function), (x,))
    same, contiguous, part, turned, detached, y, flat, again, dropped = outputs
    assert same is x and contiguous is x and dropped is x
    assert part.data_ptr() == x[1:].data_ptr() and part.stride() == (6, 2)
    assert turned.data_ptr() == x.data_ptr() and turned.stride() == (1, 6)
    assert detached is not x and detached.data_ptr() == x.data_ptr()
    assert again is y and flat.data_ptr() == y.data_ptr()
    assert len(json.loads(lowered.graph)["outputs"]) == 1


def test_mutated_inputs_that_are_returned():
    def function(x, y):
        view = x.view(-1)
        x.add_(1)
        y.copy_(x * 2)
        return x, view, y[0], x + y

    x, y = torch.zeros(2, 3), torch.zeros(2, 3)
    outputs, _ = run_module(Function(function), (x, y))
    assert outputs[0] is x and x.eq(1).all() and y.eq(2).all()
    assert outputs[1].data_ptr() == x.data_ptr() and outputs[2].data_ptr() == y.data_ptr()
    assert outputs[3].eq(3).all()


def test_dense_permutations_are_read_where_they_lie():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    lowered = check(lambda x, y: x + y, x, torch.randn(5, 4, 3, 2).permute(3, 2, 1, 0))
    orders = [entry["order"] for entry in json.loads(lowered.graph)["inputs"]]
    assert orders == [[0, 2, 3, 1], [3, 2, 1, 0]]
    assert all(entry.dense for entry in lowered.inputs)
    strided = check(lambda x: x + 1, torch.randn(4, 6)[:, ::2])
    assert not strided.inputs[0].dense


class Located(nn.Module):
    def forward(self, x):
        y = x + 1
        return F.layer_norm(y, (3,))


def test_locations_are_the_users():
    graph = json.loads(lowered_of(Located(), torch.randn(2, 3)).graph)
    _, first = inspect.getsourcelines(Located.forward)
    locs = graph["locs"]
    found = {
        node["op"]: locs["lines"][number]
        for node, number in zip(graph["nodes"], locs["nodes"], strict=True)
    }
    assert found["weft.add"] == [__file__, first + 1, "forward"]
    assert found["weft.layer_norm"] == [__file__, first + 2, "forward"]


def test_equal_programs_give_equal_bytes():
    def build():
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        return lowered_of(layer, torch.randn(2, 5, 8)).graph

    assert build() == build()


def test_unused_inputs_and_dead_ops_are_dropped():
    def function(x, unused):
        (x @ x).exp()
        return x + 1

    lowered = lowered_of(function, torch.randn(3, 3), torch.randn(2))
    assert [entry.index for entry in lowered.inputs] == [0]
    assert [node["op"] for node in json.loads(lowered.graph)["nodes"]] == [
        "weft.constant",
        "weft.add",
    ]


@torch.library.custom_op("weft_lower_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    """An op that has no lowering and never will."""
    return 2 * x


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Twice(nn.Module):
    def forward(self, x):
        return twice(x) + 1


def test_fallback_is_named_with_reason_and_line():
    lowered = check(Twice(), torch.randn(3, 4), native=False)
    (fallback,) = lowered.fallbacks
    _, first = inspect.getsourcelines(Twice.forward)
    assert fallback.target == "weft_lower_test.twice.default"
    assert (fallback.location.file, fallback.location.line) == (__file__, first + 1)
    assert "weft_lower_test.twice.default" in fallback.reason


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.dropout(x, 0.5),
        lambda x: x + torch.rand(3, 4),
        lambda x: torch.bernoulli(x.sigmoid()),
        lambda x: (torch.randn_like(x), torch.randint(0, 9, (3,)), torch.randperm(5)),
        lambda x: x.clone().uniform_() + x.clone().normal_(),
    ],
)
def test_random_ops_draw_what_eager_draws(function):
    check(function, torch.randn(3, 4), native=False)


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(33, 8).t(),
        torch.randn(2, 4, 5, 3).to(memory_format=torch.channels_last),
        torch.randn(4, 5, 6).permute(1, 2, 0),
        torch.randn(6, 18)[:, ::2],
        torch.randn(9).expand(6, 9),
    ],
    ids=["transposed", "channels-last", "permuted", "with-gaps", "expanded"],
)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.dropout(x, 0.5),
        lambda x: F.dropout(F.dropout(x, 0.5).transpose(0, 1), 0.3),
        lambda x: F.alpha_dropout(x, 0.5, True),
        lambda x: F.rrelu(x, 0.1, 0.3, True),
        torch.rand_like,
        lambda x: torch.randn_like((x * 2).transpose(0, -1)),
        lambda x: torch.randint_like(x, 9),
        lambda x: torch.bernoulli(x.sigmoid()) + torch.bernoulli(x, 0.3),
        lambda x: torch.normal(x, 1.0) + torch.poisson(x.abs()),
        lambda x: (x * 1).random_() + (x * 1).uniform_(0, 2) + (x * 1).exponential_(),
        lambda x: torch.empty_like(x).geometric_(0.3) + (x * 1).log_normal_(),
    ],
)
def test_random_ops_draw_in_the_order_of_memory(function, x):
    check(function, x, native=False)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.bernoulli_(0.3),
        lambda x: F.dropout(x, 0.5, True, inplace=True),
        lambda x: torch.empty_like(x).normal_(),
    ],
)
def test_random_writes_in_another_order_are_refused(function):
    with pytest.raises(Unsupported, match="another order"):
        lowered_of(function, torch.randn(3, 4).t())
    check(function, torch.randn(3, 4), native=False)


def test_composites_stay_whole():
    def function(x, w):
        y = F.gelu(F.linear(x, w)).add_(1)
        y = F.scaled_dot_product_attention(y[None], y[None], y[None], is_causal=True)
        y = F.silu(F.softmax(F.layer_norm(y, (4,)), -1))
        return F.conv1d(F.rms_norm(F.group_norm(y, 3), (4,)), torch.ones(2, 3, 1))

    lowered = lowered_of(function, torch.randn(3, 4), torch.randn(4, 4))
    ops = [node["op"] for node in json.loads(lowered.graph)["nodes"]]
    for op in ("gelu", "attention", "layer_norm", "softmax", "silu", "group_norm", "rms_norm"):
        assert ops.count(f"weft.{op}") == 1
    assert ops.count("weft.dot_general") == 1 and ops.count("weft.conv") == 1


def test_what_cannot_be_a_graph_is_refused():
    with pytest.raises(Unsupported, match="complex32"):
        lowered_of(lambda x: x * 2, torch.ones(3, dtype=torch.complex32))
    with pytest.raises(Unsupported, match="depends on data"):
        lowered_of(lambda x: torch.bincount(x.long()), torch.ones(3))
    with pytest.raises(Unsupported, match="PyTorch refuses aten.__and__"):
        lowered_of(lambda x: x & x, torch.ones(3))
    sizes = {"x": {0: torch.export.Dim("n", min=2)}}

    class Double(nn.Module):
        def forward(self, x):
            return x * 2

    with pytest.raises(Unsupported, match="symbolic"):
        lower(torch.export.export(Double(), (torch.randn(3),), dynamic_shapes=sizes))


def test_no_tensor_is_computed():
    """A fake's torch.broadcast_shapes gives a tuple instead of a Size."""
    with pytest.raises(Unsupported, match="it computes no tensor"):
        lowered_of(lambda x: torch.broadcast_shapes(x.shape, (2, 1)), torch.ones(3))

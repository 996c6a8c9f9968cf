# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that return objects of the user's classes: made anew by every call, as eager mode makes
them, or left to PyTorch where a call cannot have made them or they are more than attributes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from counting import programs
from torch import nn

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


class Layer:
    def __init__(self, keys: torch.Tensor, name: str) -> None:
        self.keys = keys
        self.dtype, self.device, self.shape = keys.dtype, keys.device, keys.shape
        self.names = {name: (keys, 1)}


class Cache:
    kind = "of the class"

    def __init__(self, *layers: Layer) -> None:
        self.layers = list(layers)
        self.made_of = Layer
        self.seen = sum(layer.keys.shape[0] for layer in layers)

    def total(self) -> torch.Tensor:
        return sum(layer.keys.sum() for layer in self.layers)


class Net(nn.Module):
    def __init__(self, returned: Callable[[Net, torch.Tensor, torch.Tensor], Any]) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.returned = returned
        self.existing = Layer(torch.ones(2), "existing")
        self.table = {"plain": 1}

    def forward(self, x: torch.Tensor) -> Any:
        return self.returned(self, x, self.linear(x))


def _run(returned: Callable[[Net, torch.Tensor, torch.Tensor], Any]) -> tuple[Any, Any, int]:
    """What eager mode and a second compiled call return, and how many programs there are."""
    net, x = Net(returned).eval(), torch.randn(3, 8)
    compiled = weft.compile(net)
    expected = net(x)
    compiled(x)
    return expected, compiled(x), programs(compiled)


def test_objects_are_made_anew() -> None:
    net = Net(lambda _, x, y: (y, {"cache": Cache(Layer(y.exp(), "a"), Layer(x, "b"))}))
    compiled = weft.compile(net.eval())
    for seed in range(2):
        x = torch.randn(3, 8, generator=torch.Generator().manual_seed(seed))
        expected, (_, made) = net(x)[1]["cache"], compiled(x)
        cache = made["cache"]
        assert type(cache) is Cache and cache.kind == "of the class"
        assert list(vars(cache)) == list(vars(expected))
        assert cache.made_of is Layer and cache.seen == 6
        torch.testing.assert_close(cache.total(), expected.total())
        first, second = cache.layers
        assert type(first) is Layer and type(cache.layers) is list
        assert (first.dtype, first.device) == (torch.float32, torch.device("cpu"))
        assert type(first.shape) is torch.Size and first.shape == (3, 8)
        # One tensor stays one, and the caller's stays the caller's.
        assert first.names["a"][0] is first.keys and first.names["a"][1] == 1
        assert second.keys is x and second.names["b"][0] is x
        cache.layers.append(first)
    assert len(compiled(x)[1]["cache"].layers) == 2
    assert programs(compiled) == 1


def test_the_object_alone() -> None:
    expected, found, count = _run(lambda _, x, y: Layer(y, "alone"))
    assert type(found) is Layer and count == 1
    torch.testing.assert_close(found.keys, expected.keys)


def _twice(net: Net, x: torch.Tensor, y: torch.Tensor) -> Any:
    layer = Layer(y, "twice")
    return layer, Cache(layer)


def _cyclic(net: Net, x: torch.Tensor, y: torch.Tensor) -> Any:
    layer = Layer(y, "cyclic")
    layer.itself = layer
    return layer


class Slotted:
    __slots__ = ("keys",)

    def __init__(self, keys: torch.Tensor) -> None:
        self.keys = keys


class Watched(Layer):
    def __del__(self) -> None:
        pass


class Sized(dict):
    pass


def _locked(net: Net, x: torch.Tensor, y: torch.Tensor) -> Any:
    layer = Layer(y, "locked")
    layer.lock = threading.Lock()
    return layer


def _sized(net: Net, x: torch.Tensor, y: torch.Tensor) -> Any:
    layer = Layer(y, "sized")
    layer.names = Sized()
    return layer


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "returned",
    [
        _twice,
        _cyclic,
        _locked,
        lambda _, x, y: Slotted(y),
        lambda _, x, y: Watched(y, "watched"),
        _sized,
    ],
)
def test_what_attributes_do_not_make_is_left_to_pytorch(returned: Callable) -> None:
    expected, found, count = _run(returned)
    assert type(found) is type(expected) and count == 0


def test_identity_of_what_was_there() -> None:
    net, x = Net(lambda net, x, y: (y, net.existing)).eval(), torch.randn(3, 8)
    compiled = weft.compile(net)
    assert compiled(x)[1] is net.existing
    assert compiled(x)[1] is net.existing


def test_identity_of_a_dict_in_an_object() -> None:
    """The collector does not track it, as nothing in it can be part of a cycle."""

    def returned(net: Net, x: torch.Tensor, y: torch.Tensor) -> Layer:
        layer = Layer(y, "a")
        layer.names = net.table
        return layer

    net, x = Net(returned).eval(), torch.randn(3, 8)
    compiled = weft.compile(net)
    for _ in range(2):
        assert compiled(x).names is net.table


def test_dicts_of_plain_values_are_made_anew() -> None:
    def returned(_: Net, x: torch.Tensor, y: torch.Tensor) -> Layer:
        layer = Layer(y, "a")
        layer.names, layer.empty = {0: True, 1: "b"}, {}
        return layer

    compiled, x = weft.compile(Net(returned).eval()), torch.randn(3, 8)
    for _ in range(3):
        layer = compiled(x)
        assert layer.names == {0: True, 1: "b"} and layer.empty == {}
        layer.names[2] = layer.empty[2] = "of one call"
    assert programs(compiled) == 1


_frozen = Layer(torch.ones(2), "frozen")


def test_identity_of_what_is_frozen() -> None:
    compiled, x = weft.compile(lambda x: (x + 1, _frozen)), torch.randn(3)
    gc.freeze()
    try:
        for _ in range(2):
            assert compiled(x)[1] is _frozen
    finally:
        gc.unfreeze()


def test_classes_stay_as_they_are() -> None:
    before = dict(vars(Layer))
    _run(lambda _, x, y: Layer(y, "a"))
    assert dict(vars(Layer)) == before


def test_an_object_that_is_kept_is_an_effect() -> None:
    def keep(net: Net, x: torch.Tensor, y: torch.Tensor) -> Layer:
        net.existing = Layer(y, "kept")
        return net.existing

    net, x = Net(keep).eval(), torch.randn(3, 8)
    compiled = weft.compile(net)
    for _ in range(3):
        assert compiled(x) is net.existing
    assert programs(compiled) == 0


def test_tracing_keeps_nothing_alive() -> None:
    net, x = Net(lambda _, x, y: Layer(y, "a")).eval(), torch.randn(3, 8)
    stranger = Layer(x, "stranger")
    watch = weakref.ref(stranger)
    compiled = weft.compile(net)
    compiled(x)
    del stranger
    gc.collect()
    assert watch() is None and programs(compiled) == 1


@pytest.mark.at_length
@pytest.mark.parametrize("name", ["GPT2", "Llama"])
def test_a_cache_of_keys_and_values(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {
        "GPT2": {"n_layer": 2, "n_embd": 32, "n_head": 2},
        "Llama": {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2,
                  "num_key_value_heads": 1, "intermediate_size": 48},
    }[name]  # fmt: skip
    config = getattr(transformers, f"{name}Config")(vocab_size=64, pad_token_id=0, **sizes)
    model = getattr(transformers, f"{name}Model")(config).eval()
    compiled, ids = weft.compile(model), torch.randint(64, (1, 9))
    expected, found = model(ids), compiled(ids)
    assert type(found.past_key_values) is type(expected.past_key_values)
    following = torch.randint(64, (1, 1))
    steps = [
        model(following, past_key_values=output.past_key_values).last_hidden_state
        for output in (expected, found)
    ]
    assert compiled(ids).past_key_values.get_seq_length() == 9
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state)
    torch.testing.assert_close(*steps)
    assert programs(compiled) == 1


def test_hidden_states_that_transformers_hooks_record() -> None:
    """The first call that asks for them installs the hooks, which stay."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    compiled, ids = weft.compile(model), torch.randint(64, (1, 9))
    with torch.no_grad():
        for asked in ({}, {"output_hidden_states": True}, {"output_attentions": True}, {}):
            for _ in range(2):
                expected, found = model(ids, **asked), compiled(ids, **asked)
                assert list(found) == list(expected)
                for key in expected:
                    torch.testing.assert_close(found[key], expected[key])
    assert compiled.stats()["breaks"] == []
    seen: list[int] = []
    model.encoder.layer[0].register_forward_hook(lambda *_: seen.append(1))
    with torch.no_grad():
        compiled(ids)
        compiled(ids)
    assert len(seen) == 2

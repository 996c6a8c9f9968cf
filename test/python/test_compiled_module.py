# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What weft.compile returns for a module is a module: of the user's class, with the user's
attributes, acting on the original and answering as it does."""

from __future__ import annotations

import functools
import inspect
import types
import warnings

import pytest
import torch
from torch import nn

import weft
from weft.errors import NotCompiledError, WeftWarning

pytestmark = pytest.mark.usefixtures("no_grad")

x = torch.linspace(-1, 1, 12).reshape(3, 4)


class Net(nn.Module):
    """A model with methods that call it."""

    scale = 2.0

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.register_buffer("shift", torch.ones(width))

    def forward(self, x: torch.Tensor, twice: bool = False) -> torch.Tensor:
        y = self.layer(x) * self.scale + self.shift
        return self.layer(y) if twice else y

    def generate(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        for _ in range(steps):
            x = self(x).tanh()
        return x

    def encode(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self(batch["x"], twice=True).mean(0)


def check_answers(compiled: nn.Module, original: nn.Module, *args: torch.Tensor) -> None:
    """The call of a new program, and the next, which the program answers."""
    for _ in range(2):
        torch.testing.assert_close(compiled(*(args or (x,))), original(*(args or (x,))))


def test_is_of_the_users_class():
    net = Net().eval()
    compiled = weft.compile(net)
    assert isinstance(compiled, Net) and isinstance(compiled, nn.Module)
    assert compiled.__class__ is Net and type(compiled).__name__ == "Net"
    assert compiled is not net and compiled == compiled and compiled in {compiled}
    assert repr(compiled) == repr(net) and compiled.__doc__ == net.__doc__
    assert inspect.signature(compiled.forward) == inspect.signature(net.forward)
    assert inspect.signature(compiled) == inspect.signature(net)
    assert compiled.scale == 2.0 and compiled.layer is net.layer and vars(compiled) is vars(net)
    check_answers(compiled, net)


def test_programs_are_compared_with_eager_execution_first(verified):
    net, x = Net(5).eval(), torch.ones(3, 5)
    compiled = weft.compile(net)
    assert torch.equal(compiled(x), net(x))
    check_answers(compiled, net, x)
    stats = compiled.stats()
    assert (stats["graphs"], stats["misses"], stats["hits"], stats["breaks"]) == (1, 1, 2, [])


def test_methods_that_call_the_module_use_its_programs(compiled_only):
    net = Net().eval()
    compiled = weft.compile(net)
    torch.testing.assert_close(compiled.generate(x, 4), net.generate(x, 4))
    torch.testing.assert_close(compiled.encode({"x": x}), net.encode({"x": x}))
    assert compiled.stats()["hits"] == 5 and compiled.stats()["graphs"] == 2


@pytest.mark.parametrize("inplace", [False, True])
def test_forward_uses_the_programs(inplace, verified):
    """Libraries call it, such as sentence-transformers."""
    net = Net().eval()
    expected, twice = net(x), net(x, twice=True)
    compiled = weft.compile(net, inplace=inplace)
    for _ in range(3):
        torch.testing.assert_close(compiled.forward(x), expected)
        torch.testing.assert_close(compiled.forward(x, twice=True), twice)
    stats = compiled.stats()
    assert stats["graphs"] == 2 and stats["hits"] >= 4 and not stats["breaks"]
    assert inspect.signature(compiled.forward) == inspect.signature(Net().forward)
    with torch.enable_grad():
        for _ in range(2):
            compiled.forward(x).sum().backward()
    # In eval mode one without a backward may come first.
    assert compiled.stats()["graphs"] in (3, 4) and not compiled.stats()["breaks"]
    seen = []
    with compiled.register_forward_hook(lambda *call: seen.append(call)):
        torch.testing.assert_close(compiled.forward(x), expected)
        assert not seen
        compiled(x)
        assert len(seen) == 1
    compiled.forward = weft.compile(compiled.forward)
    for _ in range(3):
        torch.testing.assert_close(net(x), expected)
        torch.testing.assert_close(compiled(x), expected)


@pytest.mark.parametrize("inplace", [False, True])
def test_a_forward_of_its_own_calls_the_one_it_replaces(inplace, verified):
    """As libraries add hooks."""
    net = Net().eval()
    expected = net(x)
    compiled = weft.compile(net, inplace=inplace)
    torch.testing.assert_close(compiled(x), expected)
    replaced = compiled.forward
    method = types.MethodType(lambda self, x: replaced(x) + 1, compiled)
    for own in (lambda x: replaced(x) + 1, method):
        compiled.forward = own
        for _ in range(3):
            torch.testing.assert_close(compiled(x), expected + 1)
            torch.testing.assert_close(compiled.forward(x), expected + 1)
        torch.testing.assert_close(replaced(x), expected)
        del compiled.forward
        torch.testing.assert_close(compiled(x), expected)
    assert not compiled.stats()["breaks"]


@pytest.mark.parametrize("inplace", [False, True])
def test_no_subclass_of_the_class_made(inplace):
    compiled = weft.compile(Net().eval(), inplace=inplace)
    with pytest.raises(TypeError, match="make a subclass of Net"):
        type("Other", (type(compiled),), {})
    other = type("Other", (compiled.__class__,), {"forward": lambda self, x: x + 1})
    check_answers(weft.compile(other()), other())


def test_attributes_of_one_are_those_of_the_other():
    net = Net().eval()
    compiled = weft.compile(net)
    compiled.scale = 3.0
    assert net.scale == 3.0
    check_answers(compiled, net)
    net.scale = 4.0
    check_answers(compiled, net)
    del compiled.scale
    assert net.scale == 2.0
    compiled.layer = nn.Linear(4, 4).eval()
    assert net.layer is compiled.layer
    check_answers(compiled, net)
    compiled.forward = lambda x: x * 2
    check_answers(compiled, net)
    assert torch.equal(net(x), x * 2)
    del compiled.forward
    check_answers(compiled, net)


def test_what_torch_lists():
    net = Net()
    compiled = weft.compile(net)
    assert list(compiled.state_dict()) == ["shift", "layer.weight", "layer.bias"]
    assert [*compiled.parameters()] == [*net.parameters()]
    assert dict(compiled.named_buffers()) == {"shift": net.shift}
    (name, first), *others = compiled.named_modules()
    assert name == "" and first is compiled and others == [("layer", net.layer)]
    assert compiled.get_submodule("layer") is net.layer
    assert compiled.get_parameter("layer.bias") is net.layer.bias
    parent = nn.ModuleDict({"net": compiled})
    assert parent["net"] is compiled and len([*parent.parameters()]) == 2
    members = dict(inspect.getmembers(compiled))
    assert members["layer"] is net.layer and "report" in members


@pytest.mark.parametrize("assign", [False, True])
def test_load_state_dict(assign):
    net, other = Net().eval(), Net().eval()
    compiled = weft.compile(net)
    check_answers(compiled, net)
    assert not torch.equal(compiled(x), other(x))
    result = compiled.load_state_dict(other.state_dict(), strict=True, assign=assign)
    assert not result.missing_keys and not result.unexpected_keys
    check_answers(compiled, other)
    with pytest.raises(RuntimeError, match="Missing key"):
        compiled.load_state_dict({}, strict=True)
    assert "shift" in compiled.load_state_dict({}, strict=False).missing_keys


RETURN_SELF = {
    "train": lambda m: m.train(),
    "eval": lambda m: m.eval(),
    "to": lambda m: m.to(torch.float64),
    "to_format": lambda m: m.to(memory_format=torch.channels_last),
    "half": lambda m: m.half(),
    "bfloat16": lambda m: m.bfloat16(),
    "double": lambda m: m.double(),
    "float": lambda m: m.float(),
    "type": lambda m: m.type(torch.float64),
    "cpu": lambda m: m.cpu(),
    "requires_grad_": lambda m: m.requires_grad_(False),
    "apply": lambda m: m.apply(lambda child: None),
    "share_memory": lambda m: m.share_memory(),
    "to_empty": lambda m: m.to_empty(device="cpu"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("act", RETURN_SELF.values(), ids=RETURN_SELF.keys())
@pytest.mark.parametrize("inplace", [False, True])
def test_methods_return_the_compiled_module(act, inplace):
    net = Net()
    compiled = weft.compile(net, inplace=inplace)
    assert act(compiled) is compiled
    assert compiled.layer.weight.dtype == net.layer.weight.dtype
    assert compiled.training == net.training


def test_results_follow_what_methods_do():
    net = Net().eval()
    compiled = weft.compile(net)
    check_answers(compiled, net)
    compiled.double()
    check_answers(compiled, net, x.double())
    compiled.float().apply(lambda child: nn.init.ones_(child.bias) if child is net.layer else None)
    check_answers(compiled, net)
    assert net.layer.bias.tolist() == [1, 1, 1, 1]


def test_registration_acts_on_the_original():
    net = Net()
    compiled = weft.compile(net)
    compiled.register_buffer("table", torch.zeros(2))
    compiled.register_parameter("extra", nn.Parameter(torch.ones(1)))
    compiled.register_module("child", nn.ReLU())
    compiled.add_module("other", nn.Tanh())
    assert net.table is compiled.table and net.extra is compiled.extra
    assert net.child is compiled.child and "other" in dict(net.named_children())
    del compiled.child
    assert not hasattr(net, "child")
    compiled.training = False
    assert net.training is False
    compiled.zero_grad()


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_hooks_run():
    net = Net().eval()
    compiled = weft.compile(net)
    plain = net(x)
    check_answers(compiled, net)
    pre = compiled.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    post = compiled.register_forward_hook(lambda module, args, output: output * 2)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), net.layer(x + 1) * 4 + 2)
    pre.remove()
    post.remove()
    torch.testing.assert_close(compiled(x), plain)
    seen = []
    compiled.register_load_state_dict_post_hook(lambda module, keys: seen.append(keys))
    compiled.load_state_dict(net.state_dict())
    assert seen


class TestContainers:
    def test_sequential(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
        compiled = weft.compile(model)
        assert len(compiled) == 3 and compiled[1] is model[1] and [*compiled] == [*model]
        assert isinstance(compiled[:2], nn.Sequential) and len(compiled[:2]) == 2
        check_answers(compiled, model)
        compiled[1] = nn.Tanh()
        assert compiled.append(nn.Tanh()) is compiled and len(model) == 4
        check_answers(compiled, model)
        del compiled[3]
        check_answers(compiled, model)

    def test_lists_and_dicts(self):
        modules = weft.compile(nn.ModuleList([nn.Linear(4, 4)]))
        modules.append(nn.ReLU())
        modules.insert(0, nn.Tanh())
        modules += [nn.Sigmoid()]
        assert len(modules) == 4 and isinstance(modules[0], nn.Tanh)
        named = weft.compile(nn.ModuleDict({"a": nn.Tanh()}))
        named["b"] = nn.ReLU()
        assert list(named) == ["a", "b"] and "b" in named and len(named) == 2
        parameters = weft.compile(nn.ParameterList([torch.ones(2)]))
        parameters.append(torch.zeros(2))
        assert len(parameters) == 2 and [p.sum().item() for p in parameters] == [2, 0]

    def test_compiled_children(self):
        blocks = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)}).eval()
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval()
        expected = model(x), blocks["b"](blocks["a"](x))
        keys = list(model.state_dict())
        model[0] = weft.compile(model[0])
        model[2] = weft.compile(model[2])
        for name in blocks:
            blocks[name] = weft.compile(blocks[name])
        for _ in range(2):
            torch.testing.assert_close(model(x), expected[0])
            torch.testing.assert_close(blocks["b"](blocks["a"](x)), expected[1])
        assert list(model.state_dict()) == keys
        assert model[0].stats()["hits"] == 2

    def test_equal_blocks_share_one_artifact(self):
        blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(3)).eval()
        expected = blocks[2](blocks[1](blocks[0](x)))
        for number, block in enumerate(blocks):
            blocks[number] = weft.compile(block)
        for _ in range(2):
            torch.testing.assert_close(blocks[2](blocks[1](blocks[0](x))), expected)
        assert len({block.artifact_path for block in blocks}) == 1

    def test_model_with_compiled_blocks_is_compiled_whole(self, compiled_only):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval()
        expected = model(x)
        model[0] = weft.compile(model[0])
        model[2] = weft.compile(model[2], inplace=True)
        compiled = weft.compile(model)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), expected)
        assert compiled.stats()["hits"] == 2


class TestOtherWays:
    def test_in_place(self):
        net = Net().eval()
        holder = {"net": net}
        expected, attributes = net(x), set(vars(net))
        assert weft.compile(net, inplace=True) is net
        for _ in range(2):
            torch.testing.assert_close(holder["net"](x), expected)
        assert isinstance(net, Net) and net.__class__ is Net and set(vars(net)) == attributes
        assert net.stats()["hits"] == 2 and weft.stats(net)["graphs"] == 1
        torch.testing.assert_close(net.generate(x, 1), expected.tanh())
        assert net.stats()["hits"] == 3
        with pytest.raises(TypeError, match="expected a module to compile in place"):
            weft.compile(lambda x: x, inplace=True)

    def test_compiled_again(self):
        net = Net().eval()
        compiled = weft.compile(net)
        again = weft.compile(compiled, threads=1)
        assert vars(again) is vars(net) and again is not compiled
        assert weft.compile(compiled, inplace=True) is compiled
        check_answers(again, net)
        check_answers(compiled, net)
        assert weft.compile(net, inplace=True) is net
        assert weft.compile(net, inplace=True, threads=1) is net
        assert weft.compile(net) is net and type(net).__mro__[3:] == Net.__mro__
        net(x)
        assert weft.stats(net)["misses"] == 1

    def test_forward_of_an_object(self, compiled_only):
        net = Net().eval()
        expected = net(x)
        net.forward = weft.compile(net.forward)
        for _ in range(2):
            torch.testing.assert_close(net(x), expected)
        assert net.forward.stats()["hits"] == 2
        net.layer.bias.add_(1)
        torch.testing.assert_close(net(x), expected + 2)

    def test_attribute_of_itself(self, compiled_only):
        net = Net().eval()
        keys = list(net.state_dict())
        net.compiled = weft.compile(net)
        check_answers(net.compiled, net)
        assert isinstance(net.compiled, Net)
        assert list(net.state_dict()) == keys == list(net.compiled.state_dict())
        assert net.eval() is net and net.compiled.eval() is net.compiled
        assert len([*net.parameters()]) == 2
        assert "Itself" in repr(net)
        torch.testing.assert_close(net.compiled.generate(x, 2), net.generate(x, 2))
        assert net.compiled.stats()["graphs"] == 1
        net.compiled = nn.ReLU()
        assert isinstance(net.compiled, nn.ReLU)

    def test_decorator_of_a_method_says_why_it_runs_eagerly(self):
        class Decorated(Net):
            @functools.partial(weft.compile, capture="export")
            def encode(self, x: torch.Tensor) -> torch.Tensor:
                return self(x).sum(0)

        net = Decorated().eval()
        with pytest.warns(WeftWarning, match="argument 0 is a .*Decorated"):
            torch.testing.assert_close(net.encode(x), net(x).sum(0))


def test_missing_names_are_missing():
    compiled = weft.compile(Net())
    assert not hasattr(compiled, "recompile") and not hasattr(compiled, "bogus")
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'bogus'"):
        _ = compiled.bogus
    with pytest.raises(TypeError, match="expected what weft.compile returned, found Net"):
        weft.report(Net())


class TestNeverSilentlyEager:
    def test_first_eager_call_warns_at_the_users_line(self):
        class Product(nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                return y if y.sum() < 1e9 else -y

        model = nn.Sequential(weft.compile(Product(4, 4), capture="export"))
        with torch.enable_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line = inspect.currentframe().f_lineno + 1
            model(x)
            model(x)
            model(x[:2])
        (warning,) = [each for each in caught if each.category is WeftWarning]
        assert (warning.filename, warning.lineno) == (__file__, line)
        assert "a branch on values" in str(warning.message)
        (reason,) = weft.stats(model[0])["breaks"]
        assert "a branch on values" in reason

    def test_reason_names_the_line_of_the_model(self, capfd):
        class Branching(nn.Module):
            def forward(self, x):
                return x + 1 if x.sum() > 0 else x - 1

        line = Branching.forward.__code__.co_firstlineno + 1
        compiled = weft.compile(Branching(), capture="export")
        with pytest.warns(WeftWarning, match=f"test_compiled_module.py:{line}"):
            check_answers(compiled, compiled.original)
        assert f"test_compiled_module.py:{line}" in compiled.stats()["breaks"][0]
        assert capfd.readouterr().err == ""  # no traceback of torch's

    @pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
    def test_fullgraph_raises_instead(self):
        linear = nn.Linear(4, 4).eval()
        compiled = weft.compile(linear, fullgraph=True, capture="export")
        seen = []

        def refused(match: str) -> None:
            for _ in range(3):
                with pytest.raises(NotCompiledError, match=match):
                    compiled(x)
            assert not seen

        check_answers(compiled, linear)
        with torch.enable_grad():
            compiled(x)
        hook = lambda *call: seen.append(call)  # noqa: E731
        handle = compiled.register_forward_hook(hook, always_call=True)
        refused("hooks")
        handle.remove()
        check_answers(compiled, linear)
        in_place = weft.compile(nn.Linear(4, 4), inplace=True, fullgraph=True, capture="export")
        with pytest.raises(NotCompiledError):
            in_place(x.to_sparse())

    def test_past_the_limit_of_programs(self, monkeypatch):
        monkeypatch.setattr("weft.compiled.programs.MOST_SPECIALIZATIONS", 2)
        linear = nn.Linear(4, 4).eval()
        compiled, strict = (
            weft.compile(linear, capture="export"),
            weft.compile(linear, fullgraph=True, capture="export"),
        )
        for rows in (1, 2):
            check_answers(compiled, linear, x[:rows])
            check_answers(strict, linear, x[:rows])
        monkeypatch.setattr("weft.compiled.eviction.Admission.admits", lambda self, hits: False)
        with pytest.warns(WeftWarning, match="more than .* programs"):
            check_answers(compiled, linear, x)
        with pytest.raises(NotCompiledError, match="more than .* programs"):
            strict(x)


def test_stats(verified):
    compiled, x = weft.compile(Net(6).eval(), capture="export"), torch.ones(3, 6)
    entries = ["graphs", "breaks", "hits", "misses", "captures"]
    seconds = ["capture_seconds", "compile_seconds", "verify_seconds"]
    assert compiled.stats() == {
        **dict.fromkeys([*entries, *seconds], 0), "breaks": [], "ranges": {}, "specialized": [],
    }  # fmt: skip
    with pytest.warns(WeftWarning):
        compiled(x.to_sparse())
    for _ in range(3):
        compiled(x)
    stats = compiled.stats()
    assert list(stats) == [*entries, *seconds, "ranges", "specialized"]
    (reason,) = stats["breaks"]
    assert "layout torch.sparse_coo" in reason
    assert [stats[each] for each in entries] == [1, [reason], 2, 2, 1]
    assert all(stats[each] > 0 for each in seconds)
    assert stats == weft.stats(compiled)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of compiled modules, in this process and in others: they are compiled too, and have
weights of their own; of a module that has been compiled in place they are plain."""

from __future__ import annotations

import copy
import io
import multiprocessing
import os
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import nn

import weft
from weft import _core
from weft.compiled.module import CompiledModule, callable_of

pytestmark = pytest.mark.usefixtures("no_grad")

x = torch.linspace(-1, 1, 12).reshape(3, 4)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.holder: list[nn.Module] = []  # of objects that are no children

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).relu() + 1


def saved_and_loaded(module: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def pickled(module: nn.Module) -> nn.Module:
    return pickle.loads(pickle.dumps(module))


DEEP = {"deepcopy": copy.deepcopy, "pickle": pickled, "torch": saved_and_loaded}
Copy = Callable[[nn.Module], nn.Module]


def clear(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.zero_()


@pytest.fixture(params=DEEP.values(), ids=DEEP.keys())
def deep(request) -> Copy:
    return request.param


def test_deep_copies_are_compiled(deep, compiled_only):
    net = Net().eval()
    compiled = weft.compile(net, threads=1)
    expected = compiled(x)
    twin = deep(compiled)
    assert type(twin) is type(compiled) and isinstance(twin, Net) and not twin.training
    for _ in range(2):
        torch.testing.assert_close(twin(x), expected)
    assert twin.stats()["hits"] == 2 and callable_of(twin).settings["threads"] == 1
    assert twin.artifact_path == compiled.artifact_path
    clear(twin)
    torch.testing.assert_close(twin(x), torch.ones(3, 4))
    torch.testing.assert_close(compiled(x), expected)


def test_a_shallow_copy_shares_the_weights(compiled_only):
    net = Net().eval()
    compiled = weft.compile(net)
    twin = copy.copy(compiled)
    assert twin is not compiled and twin.layer is net.layer and vars(twin) is not vars(net)
    for _ in range(2):
        torch.testing.assert_close(twin(x), net(x))
    twin.note = 1
    assert not hasattr(net, "note")


def test_copies_of_a_holder(deep, compiled_only):
    model = nn.Sequential(Net(), nn.ReLU(), Net()).eval()
    model[0] = weft.compile(model[0])
    expected = model(x)
    twin = deep(model)
    torch.testing.assert_close(twin(x), expected)
    assert isinstance(twin[0], Net) and twin[0].artifact_path == model[0].artifact_path
    clear(twin)
    torch.testing.assert_close(model(x), expected)


def test_copies_of_a_module_that_holds_its_compiled_self(deep, compiled_only):
    net = Net().eval()
    net.compiled = weft.compile(net)
    net.holder.append(net.compiled)
    expected = net.compiled(x)
    for twin in (deep(net), deep(net.compiled)):
        for _ in range(2):
            torch.testing.assert_close(twin.compiled(x), expected)
        assert vars(twin.compiled) is vars(twin) and vars(twin.holder[0]) is vars(twin)
        clear(twin)
        torch.testing.assert_close(twin.compiled(x), torch.ones(3, 4))
    torch.testing.assert_close(net.compiled(x), expected)


def test_copies_of_a_module_with_a_compiled_forward(deep, compiled_only):
    net = Net().eval()
    net.forward = weft.compile(net.forward)
    expected = net(x)
    twin = deep(net)
    for _ in range(2):
        torch.testing.assert_close(twin(x), expected)
    assert isinstance(twin.forward, _core.Callable) and twin.forward is not net.forward
    clear(twin)
    torch.testing.assert_close(twin(x), torch.ones(3, 4))
    torch.testing.assert_close(net(x), expected)


def test_copies_of_a_module_compiled_in_place_are_plain(deep, compiled_only):
    net = Net().eval()
    net.holder.append(net)
    weft.compile(net, inplace=True)
    expected = net(x)
    for twin in (deep(net), copy.copy(net)):
        assert type(twin) is Net and callable_of(twin) is None
        torch.testing.assert_close(twin(x), expected)
    twin = deep(net)
    assert twin.holder == [twin]
    clear(twin)
    torch.testing.assert_close(net(x), expected)


class OwnCopies(Net):
    """Both idioms of making an object without `__init__`, whose arguments are not known."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def __copy__(self) -> OwnCopies:
        return self.twin(dict)

    def __deepcopy__(self, memo: dict) -> OwnCopies:
        twin = self.__class__.__new__(self.__class__)
        memo[id(self)] = twin
        vars(twin).update(copy.deepcopy(vars(self), memo), mark="deep")
        return twin

    def twin(self, how: Callable[[dict], dict]) -> OwnCopies:
        twin = type(self).__new__(type(self))
        vars(twin).update(how(vars(self)), mark="shallow")
        return twin

    def wider(self) -> OwnCopies:
        return type(self)(8)


@pytest.mark.parametrize("inplace", [False, True])
def test_the_users_own_copies(inplace):
    net = OwnCopies(4).eval()
    expected = net(x)
    compiled = weft.compile(net, inplace=inplace)
    assert (copy.copy(compiled).mark, copy.deepcopy(compiled).mark) == ("shallow", "deep")
    for twin in (copy.copy(compiled), copy.deepcopy(compiled), compiled.twin(dict)):
        torch.testing.assert_close(twin(x), expected)
    assert (callable_of(copy.deepcopy(compiled)) is None) == inplace
    assert type(compiled.wider()) is OwnCopies and compiled.wider().layer.in_features == 8


@weft.compile
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def plain(x: torch.Tensor) -> torch.Tensor:
    return x * 3


def test_copies_of_functions():
    assert copy.deepcopy(doubled) is doubled and pickle.loads(pickle.dumps(doubled)) is doubled
    tripled = pickle.loads(pickle.dumps(weft.compile(plain, threads=1)))
    assert torch.equal(tripled(x), x * 3) and tripled.settings["threads"] == 1


def test_copies_that_torch_makes(compiled_only):
    block = weft.compile(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval())
    encoder = nn.TransformerEncoder(block, 2).eval()
    assert all(isinstance(layer, CompiledModule) for layer in encoder.layers)
    batch = x[None]
    expected = block(block(batch))
    for _ in range(2):
        torch.testing.assert_close(encoder(batch), expected)
    averaged = torch.optim.swa_utils.AveragedModel(weft.compile(Net().eval()))
    torch.testing.assert_close(averaged(x), averaged.module.original(x))


class Rows(torch.utils.data.Dataset):
    """Its rows are computed by a compiled module."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __len__(self) -> int:
        return 4

    def __getitem__(self, row: int) -> tuple[int, int, torch.Tensor]:
        with torch.no_grad():
            for _ in range(2):
                result = self.module(torch.full((2, 4), float(row)))
        return os.getpid(), weft.stats(self.module)["hits"], result


def test_workers_of_a_data_loader():
    """They are forked, with the programs that the module has and threads that it lost."""
    compiled = weft.compile(Net().eval())
    expected = [compiled(torch.full((2, 4), float(row))) for row in range(4)]
    hits = compiled.stats()["hits"]
    loader = torch.utils.data.DataLoader(Rows(compiled), batch_size=None, num_workers=1)
    rows = [*loader]
    assert {process for process, _, _ in rows}.isdisjoint({os.getpid()})
    assert [each for _, each, _ in rows] == [hits + 2 * calls for calls in (1, 2, 3, 4)]
    for (_, _, row), wanted in zip(rows, expected, strict=True):
        torch.testing.assert_close(row, wanted)


def _send_rows(rows: Rows, sending: multiprocessing.connection.Connection) -> None:
    _, hits, result = rows[1]
    sending.send((type(rows.module).__mro__[1].__name__, hits, result.tolist()))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("method", "hits"), [("fork", 3), ("spawn", 2)])
def test_processes(method, hits):
    """A forked child has the parent's program, a new one makes its own."""
    compiled = weft.compile(Net().eval())
    expected = compiled(torch.full((2, 4), 1.0))
    context = multiprocessing.get_context(method)
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_send_rows, args=(Rows(compiled), sending))
    child.start()
    assert receiving.poll(120)
    name, calls, result = receiving.recv()
    child.join()
    assert (name, calls, child.exitcode) == ("CompiledModule", hits, 0)
    torch.testing.assert_close(torch.tensor(result), expected)


def test_a_child_compiles(compiled_only):
    """What the parent has not compiled is compiled by a forked child."""
    compiled = weft.compile(Net().eval())
    compiled(x)
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            right = torch.equal(compiled(x[:2]), compiled(x)[:2])
            os.write(sending, f"{right} {compiled.stats()['graphs']}".encode())
        finally:
            os._exit(0)
    os.close(sending)
    assert os.read(receiving, 100) == b"True 2"
    os.close(receiving)
    os.waitpid(child, 0)

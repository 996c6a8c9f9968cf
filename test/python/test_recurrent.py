# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent modules, as loops over their steps."""

import json
import re
from pathlib import Path

import pytest
import torch
from compiled_cases import check
from torch import nn

import weft
from weft import _core
from weft.compiled.module import callable_of

LSTMS = [
    nn.LSTM(5, 7),
    nn.LSTM(5, 7, bias=False, batch_first=True),
    nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True, dropout=0.5).eval(),
    nn.LSTM(5, 7, 2, bidirectional=True),
    nn.LSTM(5, 7, 2, proj_size=3),
    nn.LSTM(5, 7, bidirectional=True, proj_size=4),
]


def state_of(lstm: nn.LSTM, batch: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    count = lstm.num_layers * (2 if lstm.bidirectional else 1)
    sizes = (lstm.proj_size or lstm.hidden_size, lstm.hidden_size)
    return tuple(torch.randn(count, batch, size, dtype=dtype) for size in sizes)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("lstm", LSTMS, ids=str)
def test_lstm(lstm, dtype):
    torch.manual_seed(0)
    lstm = lstm.to(dtype)
    x = torch.randn(3, 3, 5, dtype=dtype)
    check(lstm, x)
    check(lstm, x, state_of(lstm, 3, dtype))
    check(lstm, x[0])


@pytest.mark.parametrize("kind", [nn.GRU, nn.RNN])
def test_other_cells(kind):
    check(kind(5, 7, 2, bidirectional=True, batch_first=True), torch.randn(3, 4, 5))


class Several(nn.Module):
    def __init__(self, *nets: nn.Module):
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, x):
        return [net(x) for net in self.nets]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("batch", [1, 3])
def test_lengths(steps, batch, dtype):
    """Small enough for one thread, and for both."""
    torch.manual_seed(0)
    nets = [nn.LSTM(5, 7), nn.GRU(5, 7), nn.RNN(5, 7), nn.RNN(5, 7, nonlinearity="relu")]
    check(Several(*nets).to(dtype), torch.randn(steps, batch, 5, dtype=dtype))


def test_no_sequences():
    check(Several(nn.LSTM(5, 7, 2), nn.GRU(5, 7)), torch.randn(3, 0, 5))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_wide_states_on_all_threads(kind):
    torch.manual_seed(0)
    check(kind(33, 130, bidirectional=True), torch.randn(17, 37, 33))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_steps(dtype):
    torch.manual_seed(0)
    check(nn.LSTM(5, 7, dtype=dtype), torch.randn(1000, 3, 5, dtype=dtype))


@pytest.mark.parametrize("batch_first", [False, True])
def test_steps_are_a_loop(batch_first):
    compiled = check(nn.LSTM(5, 7, batch_first=batch_first), torch.randn(9, 9, 5))
    assert "weft.scan 9 " in compiled.ir("graph")
    assert compiled.ir("kernels").count("weft.loop @") == 1
    assert compiled.ir("loops").count("scf.yield %") > 0


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_tracing_runs_no_cells(kind, monkeypatch):
    """Nor does its time depend on their number. A trace that fails is eager's."""

    def cell_by_cell(*args):
        raise AssertionError

    monkeypatch.setattr(torch._decomp.decompositions, "_rnn_helper", cell_by_cell)
    net, x = kind(5, 7, 2, batch_first=True, bidirectional=True), torch.randn(3, 11, 5)
    compiled = weft.compile(net, capture="export")
    results = [compiled(x), compiled(x)]
    assert not compiled.eager_reasons
    torch.testing.assert_close(results[1], net(x))
    assert results[1][0].requires_grad


def test_the_work_of_all_steps_counts(no_grad):
    flops = []
    for steps in (10, 20):
        compiled = weft.compile(nn.LSTM(5, 7))
        compiled(torch.randn(steps, 3, 5))
        manifest = json.loads(_core.Artifact.load(compiled.artifact_paths[0]).manifest)
        flops.append(sum(call["flops"] for call in manifest["entries"]["main"]["calls"]))
    assert flops[0] > 0 and flops[1] == pytest.approx(2 * flops[0], rel=0.1)


def test_artifacts_do_not_grow_with_the_number_of_steps():
    lstm = nn.LSTM(5, 7, 2, bidirectional=True)
    sizes = []
    for steps in (10, 1000):
        compiled = weft.compile(lstm)
        with torch.no_grad():
            compiled(torch.randn(steps, 3, 5))
        sizes.append(Path(compiled.artifact_paths[0]).stat().st_size)
    # The product of 3000 rows has another schedule than that of 30.
    assert sizes[1] <= 1.25 * sizes[0], sizes


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_all_lengths_are_one_program(kind, no_grad, monkeypatch):
    """What the steps behind the last one compute would be in the states. A length of 1 has a
    program of its own."""
    monkeypatch.setattr(weft.config, "verify", "off")
    torch.manual_seed(0)
    net = kind(5, 7, 2, bidirectional=True).double().eval()
    compiled = weft.compile(net, shapes={"input": {0: weft.Range(2, 300)}})
    for steps in (9, 2, 17, 300, 1, 299):
        x = torch.randn(steps, 3, 5, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-11, atol=1e-12)
    stats = compiled.stats()
    assert stats["graphs"] == 2 and stats["ranges"] == {"f64[2..300, 3, 5]": 5}


def test_training_saves_gates_and_states_once():
    """In numbers a step, sequence and unit: four sums of gates, the memory, and the result."""
    lstm, x = nn.LSTM(16, 16), torch.randn(9, 3, 16)
    compiled = weft.compile(lstm)
    for _ in range(2):
        compiled(x)[0].sum().backward()
    training = callable_of(compiled).face.programs.latest().training
    assert sum(size for _, size in training.saved_bytes) == 6 * x.numel() * 4


def test_steps_allocate_nothing(no_grad):
    compiled = weft.compile(nn.LSTM(16, 16))
    compiled(torch.randn(9, 3, 16))
    assert "memref.alloc" not in compiled.ir("loops")


def test_one_and_two_threads_give_the_same_bits(own_threads, no_grad):
    lstm, x = nn.LSTM(33, 130, 2), torch.randn(17, 37, 33)
    results = []
    for threads in (1, 2):
        weft.set_num_threads(threads)
        results.append(weft.compile(lstm, threads=2)(x)[0])
    assert torch.equal(*results)


def test_single_cells():
    torch.manual_seed(0)
    cells = [nn.LSTMCell(5, 7), nn.GRUCell(5, 7), nn.RNNCell(5, 7, nonlinearity="relu")]
    check(Several(*cells), torch.randn(3, 5))


def test_half_precision():
    torch.manual_seed(0)
    check(nn.GRU(5, 7).bfloat16(), torch.randn(3, 2, 5, dtype=torch.bfloat16))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("settings", [{"dropout": 0.5}, {"dropout": 0.2, "bidirectional": True}])
def test_dropout_between_layers(kind, settings):
    """PyTorch draws the masks, as many and in the same order as in eager mode."""
    net = kind(5, 7, 3, batch_first=True, **settings).double()
    x = torch.randn(2, 11, 5, dtype=torch.float64)
    compiled, found = weft.compile(net), {}
    for name, call in (("eager", net), ("weft", compiled)):
        torch.manual_seed(0)
        with torch.no_grad():
            values = [call(x)[0], call(x)[0], torch.rand(3)]
        torch.manual_seed(0)
        gradients = [torch.autograd.grad(call(x)[0].sum(), [*net.parameters()]) for _ in range(2)]
        found[name] = [*values, *gradients[0], *gradients[1]]
    for own, expected in zip(found["weft"], found["eager"], strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-10, atol=1e-10)
    assert not compiled.eager_reasons
    assert compiled.ir("kernels").count("weft.loop @") == (6 if net.bidirectional else 3)


def test_errors_are_eagers():
    gru = nn.GRU(5, 7)
    for x in (torch.randn(3, 2, 4), torch.randn(0, 2, 5), torch.randn(3, 2, 5).double()):
        with pytest.raises((RuntimeError, ValueError)) as expected:
            gru(x)
        with pytest.raises(expected.type, match=re.escape(str(expected.value))):
            with torch.no_grad():
                weft.compile(gru)(x)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_autocast_is_left_to_pytorch(kind):
    """It casts some of what cells compute, so that results have types of their own."""
    net, x = kind(5, 7), torch.randn(3, 2, 5)

    def within(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return net(x)[0]

    compiled = weft.compile(within, capture="export")
    with torch.no_grad():
        found, expected = compiled(x), within(x)
    assert compiled.eager_reasons
    torch.testing.assert_close(found, expected)


class Scan(nn.Module):
    """Reads one row after another of what may then be overwritten, and of what that leaves."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(40, 40)

    def forward(self, x):
        rows, state = x.exp(), x[0]
        for step in range(6):
            state = torch.tanh(self.mix(state) + rows[step])
        doubled = rows * 2
        for step in range(6):
            state = torch.tanh(self.mix(state) + doubled[step])
        return state, doubled.sin()


def test_loops_over_rows():
    compiled = check(Scan(), torch.randn(6, 3, 40))
    assert "weft.advance" in compiled.ir("kernels")


def test_steps_without_a_batch_are_left_to_pytorch(no_grad):
    """ATen's op takes them, though no module gives it any."""
    weights = [p.detach() for p in nn.RNN(4, 5).parameters()]
    function = weft.compile(
        lambda x, h: torch.rnn_tanh(x, h, weights, True, 1, 0.0, False, False, False)
    )
    x, h = torch.randn(6, 4), torch.randn(1, 5)
    expected = torch.rnn_tanh(x, h, weights, True, 1, 0.0, False, False, False)
    torch.testing.assert_close(function(x, h), expected)
    assert "compilation failed" not in str(function.eager_reasons)

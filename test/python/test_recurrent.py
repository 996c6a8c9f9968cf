# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent modules: unrolled into cells while these are few, else PyTorch's own loop."""

import pytest
import torch
from compiled_cases import check
from torch import nn

import weft

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


def test_many_cells_are_left_to_pytorch():
    lstm = nn.LSTM(5, 7, 2)
    x = torch.randn(17, 2, 5)
    compiled = check(lstm, x, native=False)
    (fallback,) = compiled._latest().lowered.fallbacks
    assert fallback.target == "aten.lstm.input"
    assert fallback.reason == "unrolled it has 34 cells, more than 16"


def test_packed_sequences_run():
    lstm = nn.LSTM(5, 7)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 2, 5), [4, 2])
    with torch.no_grad():
        torch.testing.assert_close(weft.compile(lstm)(packed)[0].data, lstm(packed)[0].data)


def test_onednn_is_on_again():
    with torch.no_grad():
        weft.compile(nn.LSTM(5, 7))(torch.randn(2, 2, 5))
    assert torch.backends.mkldnn.enabled

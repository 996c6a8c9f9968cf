# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn's Transformer encoders, which run by kernels of their own where nothing is traced."""

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.mark.parametrize("is_layer", [True, False])
def test_padding_in_an_encoder(is_layer):
    """torch.nn's encoder has kernels of its own for it: results of padded positions are zero, those
    of a sequence that is all padding no numbers."""
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    encoder = layer if is_layer else torch.nn.TransformerEncoder(layer, 2).eval()
    x, padded = torch.randn(3, 6, 32), torch.zeros(3, 6, dtype=torch.bool)
    compiled = weft.compile(lambda x, padded: encoder(x, src_key_padding_mask=padded))
    for count in (0, 2, 4, 6 if is_layer else 5):
        padded[1, 6 - count :] = True
        for _ in range(3):
            found, expected = compiled(x, padded), encoder(x, src_key_padding_mask=padded)
            torch.testing.assert_close(found, expected, equal_nan=True)


def test_causal_encoders_compile():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(6)
    compiled = weft.compile(lambda x: layer(x, src_mask=mask))
    x = torch.randn(3, 6, 32)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), layer(x, src_mask=mask))
    assert not compiled.eager_reasons


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", [1, 3])
def test_an_encoder_at_any_length(batch, verified):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
    module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    compiled = weft.compile(module, shapes={"src": {1: weft.Range(2, 90)}})
    with torch.no_grad():
        for length in (7, 90, 2, 3, 64, 65, 33, 16):
            x = torch.randn(batch, length, 32)
            torch.testing.assert_close(compiled(x), module(x), rtol=2e-5, atol=1e-5)
    assert compiled.stats()["specialized"] == [] and compiled.stats()["breaks"] == []
    # Padding is left out of rows that are outermost in memory: otherwise sizes are near the end.
    assert len(compiled.stats()["ranges"]) == (1 if batch == 1 else 3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", [1, 3])
def test_tokens_in_blocks(batch, monkeypatch):
    """Whole vectors of tokens are left out of the last block, and keys that do not count of it."""
    monkeypatch.setattr(weft.config, "verify", "off")
    layer = torch.nn.TransformerEncoderLayer(64, 2, 128, batch_first=True, activation="gelu")
    module = torch.nn.Sequential(layer, torch.nn.LayerNorm(64), torch.nn.Linear(64, 48)).eval()
    compiled = weft.compile(module, shapes={"input": {1: weft.Range(65, 192)}})
    with torch.no_grad():
        for length in (100, 65, 66, 67, 79, 80, 81, 97, 113, 127, 128):
            x = torch.randn(batch, length, 64)
            torch.testing.assert_close(compiled(x), module(x), rtol=2e-5, atol=1e-5)
    assert compiled.stats()["specialized"] == [] and len(compiled.stats()["ranges"]) == 1

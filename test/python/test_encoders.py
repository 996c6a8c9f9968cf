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

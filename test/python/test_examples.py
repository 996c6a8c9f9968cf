# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples' own parts, without training and without weights."""

import gzip
import struct
import types

import pytest
import torch
from examples import fashion_mnist, sentences
from torch import nn

from weft.benchmark.measure import in_float64, interleaved, largest_error, timed_calls


def write_idx(path, kind, shape, values):
    head = struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape)
    path.write_bytes(gzip.compress(head + bytes(values)))


def test_idx_file(tmp_path):
    path = tmp_path / "images.gz"
    write_idx(path, 8, (2, 3), range(6))
    assert fashion_mnist.read_idx(path).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_idx_file_of_another_type(tmp_path):
    path = tmp_path / "floats.gz"
    write_idx(path, 13, (1,), range(4))
    with pytest.raises(ValueError, match="expected IDX type 0x000008, found 00000d"):
        fashion_mnist.read_idx(path)


def test_idx_file_cut_short(tmp_path):
    path = tmp_path / "short.gz"
    write_idx(path, 8, (2, 3), range(5))
    with pytest.raises(ValueError, match="expected 6 bytes, found 5"):
        fashion_mnist.read_idx(path)


def test_missing_data_set_names_its_package(tmp_path):
    with pytest.raises(FileNotFoundError, match="dataset-fashion-mnist"):
        fashion_mnist.load("t10k", tmp_path / "nothing")


def test_images_and_labels(tmp_path):
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", 8, (1, 28, 28), [255] * 784)
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", 8, (1,), [7])
    images, labels = fashion_mnist.load("t10k", tmp_path)
    assert images.shape == (1, 1, 28, 28) and bool((images == 1).all())
    assert labels.tolist() == [7] and labels.dtype == torch.int64


@pytest.mark.parametrize("kind", [fashion_mnist.Mlp, fashion_mnist.ConvNet])
def test_training_lowers_the_loss(kind):
    model, labels = kind(), torch.arange(64) % 10
    images = torch.rand(64, 1, 28, 28)
    images[range(64), 0, labels] += 2.0
    before = nn.functional.cross_entropy(model(images), labels)
    learned = []
    fashion_mnist.train(model, images, labels, batch=8, on_batch=learned.append)
    assert nn.functional.cross_entropy(model(images), labels) < before
    assert sum(learned) == 64 and not model.training


def test_sheet_has_a_cell_for_each_image():
    pytest.importorskip("PIL")
    from examples.sheet import draw_sheet

    images, labels = torch.rand(7, 1, 28, 28), torch.arange(7)
    one_row = draw_sheet(images[:6], labels[:6], labels[:6])
    two_rows = draw_sheet(images, labels, labels.flip(0))
    assert two_rows.width == one_row.width and two_rows.height > one_row.height


def test_mean_over_the_tokens_kept():
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [100.0, 100.0]]])
    mask = torch.tensor([[1, 1, 0]])
    assert sentences.mean_pool(hidden, mask).tolist() == [[2.0, 4.0]]
    assert sentences.mean_pool(hidden, torch.zeros_like(mask)).tolist() == [[0.0, 0.0]]


def test_encoder_returns_unit_vectors():
    hidden = torch.randn(2, 4, 8)
    stand_in = nn.Module()
    stand_in.forward = lambda **kwargs: types.SimpleNamespace(last_hidden_state=hidden)
    vectors = sentences.SentenceEncoder(stand_in)(None, torch.ones(2, 4))
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))


@pytest.mark.parametrize(("count", "length"), [(1, 16), (16, 16), (17, 32), (999, 256)])
def test_bucket(count, length):
    assert sentences.bucket(count) == length


def test_nearest_is_never_the_sentence_itself():
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    cosines, rows = sentences.nearest(vectors)
    assert rows.tolist() == [2, 2, 1]
    torch.testing.assert_close(cosines, torch.tensor([0.6, 0.8, 0.8]))


def test_sentences_of_a_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one\n\n  two  \n")
    assert sentences.read_sentences(path) == ["one", "two"]
    path.write_text("only one\n")
    with pytest.raises(ValueError, match="at least 2 sentences, found 1"):
        sentences.read_sentences(path)


def test_error_against_float64():
    module, x = nn.Linear(3, 2), torch.randn(4, 3)
    reference = in_float64(module, (x,))
    assert reference[0].dtype == torch.float64 and module.weight.dtype == torch.float32
    exact = module(x).detach().double()
    assert largest_error({"y": exact + 0.5, "n": torch.tensor(1)}, [exact]) == 0.5


def test_calls_take_turns():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    assert set(interleaved(calls, rounds=2, seconds=0.0)) == {"a", "b"}
    # One call of each turn is not counted.
    assert "".join(order) == "aabb" * 2


def test_timed_calls_counts_all_but_the_first():
    calls = []
    times = timed_calls(lambda: calls.append(1), 0.0)
    assert len(times) == len(calls) - 1 == 1

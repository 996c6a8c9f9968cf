# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a loaded artifact refuses: one error that names the argument, what was expected and
what was found, after which everything goes on."""

import json
import os
import re

import numpy
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import weft
from weft import _core

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

SEAL_BYTES = 32


def function(x, n):
    return x * 2 + n


X, N = torch.arange(6.0).reshape(2, 3), torch.arange(3)


@pytest.fixture
def artifact():
    compiled = weft.compile(function)
    compiled(X, N)
    return compiled.artifact_path


@pytest.fixture
def loaded(artifact):
    return weft.load(artifact)


def fake():
    with FakeTensorMode():
        return torch.ones(2, 3)


class Subclass(torch.Tensor):
    pass


BAD_TENSORS = {
    "shape": (lambda: X.t(), "expected shape [2, 3], found [3, 2]"),
    "rank": (lambda: X.flatten(), "expected shape [2, 3], found [6]"),
    "empty": (lambda: X[:0], "expected shape [2, 3], found [0, 3]"),
    "dtype": (lambda: X.double(), "expected dtype f32, found f64"),
    "complex": (lambda: X.cfloat(), "expected dtype f32, found torch.complex64"),
    "float8": (lambda: X.to(torch.float8_e4m3fn), "expected dtype f32, found torch.float8_e4m3fn"),
    "quantised": (
        lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
        "expected dtype f32, found torch.qint8",
    ),
    "meta": (lambda: X.to("meta"), "expected a tensor on device cpu, found device meta"),
    "fake": (fake, "expected a plain torch.Tensor, found the subclass FakeTensor"),
    "subclass": (
        lambda: X.as_subclass(Subclass),
        "expected a plain torch.Tensor, found the subclass Subclass",
    ),
    "sparse": (lambda: X.to_sparse(), "expected layout torch.strided, found torch.sparse_coo"),
    "sparse-csr": (
        lambda: X.to_sparse_csr(),
        "expected layout torch.strided, found torch.sparse_csr",
    ),
    "mkldnn": (lambda: X.to_mkldnn(), "expected layout torch.strided, found torch._mkldnn"),
    "nested": (
        lambda: torch.nested.nested_tensor([X[0], X[1]]),
        "expected a plain torch.Tensor, found a nested tensor",
    ),
    "negated": (
        lambda: torch.complex(X, X).conj().imag,
        "expected a tensor with its own values, found a lazily negated view",
    ),
    "numpy": (lambda: numpy.ones((2, 3)), "expected a torch.Tensor, found ndarray"),
    "nothing": (lambda: None, "expected a torch.Tensor, found NoneType"),
}


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.*(Sparse|quantiz|nested|prototype)")
@pytest.mark.parametrize("kind", BAD_TENSORS)
def test_tensor_that_does_not_fit(loaded, kind):
    make, message = BAD_TENSORS[kind]
    name = loaded.signature[0]["name"]
    with pytest.raises(weft.errors.ArgumentError) as caught:
        loaded(make(), N)
    assert str(caught.value) == f"argument {name!r}: {message}"
    torch.testing.assert_close(loaded(X, N)[0], function(X, N))


def test_second_argument_is_named(loaded):
    name = loaded.signature[1]["name"]
    with pytest.raises(weft.errors.ArgumentError, match=f"{name!r}: expected dtype i64, found i32"):
        loaded(X, N.int())


def test_wrong_count(loaded):
    for arguments in ((), (X,), (X, N, N)):
        expected = rf"expected 2 arguments \(.*\), found {len(arguments)}"
        with pytest.raises(weft.errors.ArgumentError, match=expected):
            loaded(*arguments)
    torch.testing.assert_close(loaded(X, N)[0], function(X, N))


def test_gradients_are_not_dropped_silently(loaded):
    x = X.clone().requires_grad_()
    torch.testing.assert_close(loaded(x, N)[0], function(X, N))
    with torch.enable_grad(), pytest.raises(weft.errors.ArgumentError, match="requires gradients"):
        loaded(x, N)


def test_transforms_and_modes(loaded):
    with pytest.raises(weft.errors.ArgumentError, match="functorch"):
        torch.func.vmap(lambda x: loaded(x, N)[0])(torch.ones(4, 2, 3))
    with FakeTensorMode(), pytest.raises(weft.errors.Error, match="FakeTensor"):
        loaded(X, N)
    with torch.device("meta"):  # says where new tensors go, not what they mean
        (result,) = loaded(X, N)
    torch.testing.assert_close(result, function(X, N))


def test_views_that_fit_are_copied(loaded):
    wide = torch.arange(24.0).reshape(4, 6)
    for x in (wide[::2, ::2], wide[1:3, 1:4], wide[0, 0].expand(2, 3), X.t().contiguous().t()):
        torch.testing.assert_close(loaded(x, N)[0], function(x, N))
    # One byte off: no float lies on its boundary.
    memory = bytearray(25)
    odd = torch.frombuffer(memory, dtype=torch.uint8)[1:]
    odd.copy_(X.flatten().view(torch.uint8))
    odd = torch.from_numpy(numpy.frombuffer(memory, numpy.float32, 6, offset=1)).view(2, 3)
    torch.testing.assert_close(loaded(odd, N)[0], function(X, N))


@pytest.mark.parametrize("part", ["one byte", "header", "half", "seal", "everything"])
def test_truncated_file(artifact, tmp_path, part):
    content = artifact.read_bytes()
    kept = {
        "one byte": len(content) - 1,
        "header": 64,
        "half": len(content) // 2,
        "seal": len(content) - SEAL_BYTES,
        "everything": 0,
    }
    short = tmp_path / "short.so"
    short.write_bytes(content[: kept[part]])
    with pytest.raises(weft.errors.ArtifactError, match="short.so: .*expected"):
        weft.load(short)


def test_flipped_bytes(artifact, tmp_path):
    content = artifact.read_bytes()
    damaged = tmp_path / "damaged.so"
    for position in [*range(0, len(content), len(content) // 40), len(content) - 1]:
        changed = bytearray(content)
        changed[position] ^= 0x10
        damaged.write_bytes(changed)
        with pytest.raises(weft.errors.ArtifactError, match="damaged.so"):
            weft.load(damaged)
    torch.testing.assert_close(weft.load(artifact)(X, N)[0], function(X, N))


def resealed(artifact, folder, old: str, new: str):
    """A whole artifact whose manifest says something else of the same length."""
    image = artifact.read_bytes()[:-SEAL_BYTES]
    assert len(old) == len(new) and image.count(old.encode()) == 1
    cache = _core.Cache(folder)
    draft, warning = cache.begin("0123abcd")
    assert not warning
    draft.path.write_bytes(image.replace(old.encode(), new.encode()))
    return cache.publish(draft)[0]


def test_artifact_of_another_version(artifact, tmp_path):
    version = json.dumps({"weft": weft.__version__})[1:-1].replace(": ", ":")
    other = re.sub(r"\d", "9", version)
    path = resealed(artifact, tmp_path, version, other)
    with pytest.raises(weft.errors.ArtifactError, match=rf"{weft.__version__}.*9\.9\.9"):
        weft.load(path)


def test_artifact_of_another_cpu(artifact, tmp_path):
    features = weft.load(artifact).manifest["cpu_features"]
    if not features:
        pytest.skip("compiled for no features at all")
    feature = max(features, key=len)
    path = resealed(artifact, tmp_path, f'"{feature}"', f'"{"q" * len(feature)}"')
    with pytest.raises(weft.errors.ArtifactError, match="another CPU.*lacks q+"):
        weft.load(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_may_not_be_read(artifact, tmp_path):
    path = tmp_path / "secret.so"
    path.write_bytes(artifact.read_bytes())
    path.chmod(0)
    with pytest.raises(weft.errors.ArtifactError, match="cannot be read"):
        weft.load(path)

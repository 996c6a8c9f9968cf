# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of te kernels without a copy: memory of PyTorch, NumPy and any `__dlpack__` object."""

import ctypes
import gc
import weakref

import numpy as np
import pytest
import torch
from te_affine import affine_kernel, arrays

import weft
from weft import te
from weft.te import dtypes


@pytest.fixture(scope="module")
def affine():
    return affine_kernel()


class Foreign:
    """A framework that has nothing but DLPack."""

    def __init__(self, array, **flags):
        self.array, self.asked = array, 0

    def __dlpack__(self, **options):
        self.asked += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Old(Foreign):
    """As it was before DLPack 1.0."""

    def __dlpack__(self):
        return self.array.__dlpack__()


@pytest.mark.parametrize("kind", [lambda a: a, torch.from_numpy, Foreign, Old])
def test_results_are_written_where_they_lie(affine, kind):
    a, b = arrays()
    out = np.zeros_like(a)
    place = out.ctypes.data
    assert affine(kind(a), kind(b), kind(out)) is None
    np.testing.assert_allclose(out, a * 2 + b, rtol=1e-6)
    assert out.ctypes.data == place


def test_nothing_is_copied_on_the_way(affine, monkeypatch):
    """The addresses that the kernel gets are those of the arrays, where they are converted, too."""
    a, b = arrays()
    out, seen = np.zeros_like(a), []
    run = affine._program.run

    class Watching:
        def run(self, inputs, results, host):
            seen.extend(t.data_ptr() for t in (*inputs, *results))
            run(inputs, results, host)

    monkeypatch.setattr(affine, "_program", Watching())
    monkeypatch.setattr(affine, "_direct", lambda *_: False)
    affine(Foreign(a), torch.from_numpy(b), out)
    assert seen == [each.ctypes.data for each in (a, b, out)]


def test_allocated_results_are_of_the_first_arguments_framework(affine):
    a, b = arrays()
    assert isinstance(affine(a, b), np.ndarray)
    result = affine(torch.from_numpy(a), b)
    assert type(result) is torch.Tensor
    assert torch.equal(result, torch.from_numpy(affine(a, b)))
    view = result.numpy()
    del result
    gc.collect()
    np.testing.assert_allclose(view, a * 2 + b, rtol=1e-6)  # the memory lives on


def test_lifetimes_in_both_directions(affine):
    a, b = arrays()
    gone = weakref.ref(given := Foreign(a))
    out = torch.empty(6, 10)
    affine(given, b, out)
    del given
    gc.collect()
    assert gone() is None  # the kernel keeps nothing of a call
    np.testing.assert_allclose(out.numpy(), a * 2 + b, rtol=1e-6)


def test_strides_offsets_and_unaligned_memory(affine):
    a, b = arrays()
    wide = np.zeros((12, 30), np.float32)
    strided = wide[::2, 5:25:2]
    strided[...] = a
    column = np.asfortranarray(b)
    reversed_rows = a[::-1]
    bytes_ = np.zeros(6 * 10 * 4 + 1, np.uint8)
    unaligned = bytes_[1:].view(np.float32).reshape(6, 10)
    unaligned[...] = b
    assert unaligned.ctypes.data % 4
    out = np.zeros((6, 24), np.float32)
    target = out[:, 2:22:2]
    for left, right, expected in [
        (strided, column, a * 2 + b),
        (a, unaligned, a * 2 + b),
        (reversed_rows, b, a[::-1] * 2 + b),
        (np.broadcast_to(a[:1], (6, 10)), b, a[:1] * 2 + b),
    ]:
        out[...] = -1
        affine(left, right, target)
        np.testing.assert_allclose(target, expected, rtol=1e-6)
        assert (out[:, 3:22:2] == -1).all() and (out[:, :2] == -1).all()
    affine(a, b, unaligned)  # which is the second argument's memory no more
    np.testing.assert_allclose(unaligned, a * 2 + b, rtol=1e-6)


def test_negative_strides_of_other_frameworks(affine):
    """A capsule of them ends the process inside of PyTorch."""
    a, b = arrays()
    for kind in (Foreign, Old):
        found = affine(kind(a[::-1]), kind(b[::-1, ::-1]))
        np.testing.assert_allclose(found, a[::-1] * 2 + b[::-1, ::-1], rtol=1e-6)
        with pytest.raises(weft.errors.ArgumentError, match="'Z': expected strides that are not n"):
            affine(a, b, kind(np.zeros_like(a)[::-1]))
    halves = te.placeholder((6, 10), "bfloat16", "H")
    copy = te.compute((6, 10), lambda i, j: halves[i, j], "copy")
    twos = capsule_of(np.full((6, 10), 0x4000, np.int16)[:, ::-1], dtype=(4, 16, 1, 0))
    f = weft.dlpack.convert(te.build(copy, [halves, copy]), Other, lambda other: other.array)
    assert (f(Other(twos)) == 2).all()


def test_what_is_refused(affine):
    a, b = arrays()
    out = np.zeros_like(a)

    def refused(text, *args):
        before = [np.array(each) for each in args if isinstance(each, np.ndarray)]
        with pytest.raises(weft.errors.ArgumentError) as caught:
            affine(*args)
        assert text in str(caught.value)
        after = [each for each in args if isinstance(each, np.ndarray)]
        for old, new in zip(before, after):
            np.testing.assert_array_equal(old, new)

    frozen = np.zeros_like(a)
    frozen.flags.writeable = False
    refused("'Z': expected memory that may be written, found a read-only array", a, b, frozen)
    refused("'Z': expected memory that may be written", a, b, Foreign(frozen))
    affine(frozen, b, out)  # it may be read
    affine(Foreign(a), b, out)
    refused("'Z': expected memory of its own, found memory shared with 'X'", a, b, a)
    both = np.zeros((7, 10), np.float32)
    refused("memory shared with 'Y'", a, both[:6], both[1:])
    refused(
        "'Z': expected elements with memory of their own", a, b, torch.zeros(1, 10).expand(6, 10)
    )
    refused("'X': expected dtype float32, found float64", a.astype(np.float64), b, out)
    refused("'Y': expected dtype float32, found >f4", a, b.astype(">f4"), out)
    refused("'Y': expected shape [6, 10], found [10, 6]", a, b.T, out)
    refused("'X': expected a tensor or array that has __dlpack__, found list", a.tolist(), b, out)
    refused("affine: expected 3 arguments (X, Y, Z), or the 2 that are read, found 1", a)
    refused(
        "'X': expected a tensor without gradients (te.kernel records them)",
        torch.zeros(6, 10, requires_grad=True),
        b,
        out,
    )
    refused("'X': expected an array without a mask", np.ma.masked_array(a, a > 0), b, out)
    refused("'Z': expected an array without a mask", a, b, np.ma.masked_array(out))
    with pytest.raises(weft.errors.ArgumentError, match="one inside of a transform of torch.func"):
        torch.vmap(lambda row: affine(row, b))(torch.zeros(1, 6, 10))
    refused("'X': expected a tensor on device cpu", torch.zeros(6, 10, device="meta"), b, out)


def test_chains_between_frameworks_share_memory(affine):
    a, b = arrays()
    tensor = torch.from_numpy(a)
    shared = np.from_dlpack(tensor)
    first = affine(shared, b)
    second = affine(torch.from_numpy(first), Foreign(shared))
    np.testing.assert_allclose(second.numpy(), (a * 2 + b) * 2 + a, rtol=1e-6)
    assert shared.ctypes.data == tensor.data_ptr() == a.ctypes.data


class Other:
    """A mock framework: its own tensor type, and two functions."""

    def __init__(self, array):
        self.array = array


def test_functions_for_another_framework(affine):
    a, b = arrays()
    f = weft.dlpack.convert(
        affine,
        Other,
        to_dlpack=lambda other: other.array.__dlpack__(),
        from_dlpack=lambda array: Other(np.from_dlpack(array)),
    )
    result = f(Other(a), Other(b))
    assert type(result) is Other
    np.testing.assert_allclose(result.array, a * 2 + b, rtol=1e-6)
    wide = np.zeros((6, 30), np.float32)
    out = Other(wide[:, 1::3])
    assert f(Other(a), b, out) is None  # what is of another type is passed on
    np.testing.assert_allclose(out.array, a * 2 + b, rtol=1e-6)
    assert not wide[:, ::3].any()
    np.testing.assert_allclose(f(out, Other(b[::-1])).array, out.array * 2 + b[::-1], rtol=1e-6)


def test_other_arguments_and_containers_are_passed_on():
    seen = []

    def fn(*args, **kwargs):
        seen.append((args, kwargs))
        return {"first": args[0], "rest": [kwargs["x"][0], 3]}

    f = weft.dlpack.convert(
        fn, Other, lambda o: o.array, lambda array: Other(np.from_dlpack(array))
    )
    a = np.arange(3.0)
    result = f(Other(a), "text", 5, x=(Other(a), None))
    args, kwargs = seen[0]
    assert args[0] is a and args[1:] == ("text", 5) and kwargs["x"][1] is None
    assert type(result["first"]) is Other and result["first"].array.ctypes.data == a.ctypes.data
    assert result["rest"][1] == 3
    assert f.__name__ == "fn"


def test_what_cannot_be_converted(affine):
    for arguments in [(3, Other, id), (affine, Other, "x"), (affine, Other, id, 4)]:
        with pytest.raises(TypeError, match="to be callable"):
            weft.dlpack.convert(*arguments)
    with pytest.raises(TypeError, match="expected tensor_type to be a type"):
        weft.dlpack.convert(affine, "Other", id)


def test_writes_are_seen_by_autograd(affine):
    a, b = (torch.from_numpy(each) for each in arrays())
    out = torch.zeros(6, 10)
    version = out._version
    affine(a, b, out)
    assert out._version > version


class Described(ctypes.Structure):
    """A tensor in a capsule from before DLPack 1.0."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_described = []  # for as long as a capsule may point to them


def capsule_of(array, device=1, dtype=(2, 32, 1, 0), offset=0, compact=False):
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*(each // array.itemsize for each in array.strides))
    managed = Described(
        array.ctypes.data, (device, 0), array.ndim, dtype, shape, None if compact else strides
    )
    managed.byte_offset = offset
    _described.append((managed, array))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(managed), b"dltensor", None)


def test_null_strides_are_compact(affine):
    """A producer may leave strides out."""
    a, b = arrays()
    held = np.concatenate([np.zeros(3, np.float32), a.ravel()])
    capsule = capsule_of(held[:60].reshape(6, 10), offset=12, compact=True)
    f = weft.dlpack.convert(affine, Other, lambda other: other.array)
    np.testing.assert_allclose(f(Other(capsule), b), a * 2 + b, rtol=1e-6)


def test_capsules_that_are_refused(affine):
    a, b = arrays()
    f = weft.dlpack.convert(affine, Other, lambda other: other.array)
    for capsule, found in [
        (capsule_of(a, device=2), "a capsule of DLPack device 2"),
        (capsule_of(a, device=2, offset=4), "a capsule of DLPack device 2"),
        (capsule_of(a, dtype=(2, 32, 2, 0)), "what PyTorch does not take"),
        (capsule_of(a[::-1], dtype=(5, 64, 1, 0)), "what PyTorch does not take"),
        (5, "int, or a used one"),
    ]:
        with pytest.raises(weft.errors.ArgumentError, match=f"'X': expected .* found {found}"):
            f(Other(capsule), b)


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


class Failing(Foreign):
    def __dlpack__(self, **_):
        raise BufferError("on the moon")


@pytest.mark.parametrize("kind", [lambda a: a, torch.from_numpy, Foreign, Old])
def test_compact_arrays_go_the_direct_way(affine, kind):
    a, b = arrays()
    out = np.zeros_like(a)
    assert affine._direct(kind(a), kind(b), kind(out))
    np.testing.assert_allclose(out, a * 2 + b, rtol=1e-6)
    out[...] = 0
    assert affine._direct(frozen(a), kind(frozen(b).copy()), torch.from_numpy(out))
    np.testing.assert_allclose(out, a * 2 + b, rtol=1e-6)
    gone = weakref.ref(given := Foreign(a))
    assert affine._direct(given, b, out) and given.asked == 1
    del given
    assert gone() is None


def test_arrays_of_every_dtype_go_the_direct_way():
    for dtype in dtypes.NAMES:
        x = te.placeholder((3, 1, 5), dtype, "X")
        y = te.compute((3, 1, 5), lambda i, j, k, x=x: x[i, j, k], "Y")
        f = te.build(y, [x, y])
        values = torch.tensor([[[0, 1, 0, 1, 1]]] * 3).to(getattr(torch, dtype))
        out = torch.zeros_like(values)
        if dtype != "bfloat16":
            assert f._direct(values.numpy(), out.numpy()) and torch.equal(out, values)
            out.zero_()
            other = np.zeros((3, 1, 5), "complex64" if dtype != "int8" else "uint8")
            assert not f._direct(other, out.numpy()) and not out.any()
        assert f._direct(Foreign(values), Foreign(out)) and torch.equal(out, values)
    x = te.placeholder((), name="X")
    y = te.compute((), lambda: x() + 1, "Y")
    none = te.placeholder((0, 4), name="X")
    z = te.compute((0, 4), lambda i, j: none[i, j], "Z")
    out = np.zeros((), np.float32)
    assert te.build(y, [x, y])._direct(np.ones((), np.float32), out) and out == 2
    assert te.build(z, [none, z])._direct(*np.zeros((2, 0, 4), np.float32))


def test_what_else_is_given_does_not_go_the_direct_way(affine):
    a, b, out = torch.randn(6, 10), torch.randn(6, 10), torch.zeros(6, 10)
    assert affine._direct(a, b, out)
    torch.testing.assert_close(out, a * 2 + b)
    wide = torch.zeros(6, 20)
    x = a.numpy()
    immutable = type("Array", (Foreign,), {"__module__": "jaxlib._jax"})
    for args in [
        (x, b, frozen(out.numpy())),
        (x, b, Foreign(frozen(out.numpy()))),
        (x, b, immutable(out.numpy())),
        (x.astype("f8"), b, out),
        (x.astype(">f4"), b, out),
        (np.asfortranarray(x), b, out),
        (x[::-1], b, out),
        (x, b, x),
        (x, Foreign(out.numpy()), out),
        (x, out, Foreign(out)),
        (Failing(x), b, out),
        (x.tolist(), b, out),
        (memoryview(x), b, out),
        (a, b),
        (a, b, a),
        (a, b, out.double()),
        (a, b, out[:5]),
        (a, b, wide[:, ::2]),
        (a, b.clone().requires_grad_(), out),
        (a.to("meta"), b, out),
    ]:
        before = out.clone()
        assert not affine._direct(*args)
        assert torch.equal(out, before)
    with torch.no_grad():
        assert affine._direct(a, b.clone().requires_grad_(), out)


def test_a_direct_write_is_counted_once_and_inference_tensors_have_no_count(affine):
    a, b, out = torch.randn(6, 10), torch.randn(6, 10), torch.zeros(6, 10)
    before = out._version
    affine(a, b, out)
    assert out._version == before + 1
    with torch.inference_mode():
        inside = torch.zeros(6, 10)
        affine(a, b, inside)
    assert inside.is_inference()
    torch.testing.assert_close(inside.clone(), a * 2 + b)


def test_frameworks_whose_arrays_never_change_are_known_by_name(affine):
    a, b = arrays()
    immutable = type("Array", (Old,), {"__module__": "jaxlib._jax"})
    affine(immutable(a), immutable(b), np.zeros_like(a))
    with pytest.raises(weft.errors.ArgumentError, match="an array of JAX, which is immutable"):
        affine(a, b, immutable(np.zeros_like(a)))

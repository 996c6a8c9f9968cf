# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes, dtypes and devices in Python's arithmetic; NumPy."""

import math

import numpy
import torch
from torch import randn

from capture.corpus import Case, call, program


def two_by_three():
    return call(randn(2, 3))


@program
def shape_arithmetic():
    def f(x):
        rows, columns = x.shape
        half = columns // 2 + rows % 2
        return x.reshape(rows * columns)[half:] * (rows / columns), x.numel() ** 2

    return Case(f, two_by_three)


@program
def shape_branches():
    def f(x):
        if x.dim() == 2 and x.size(-1) > 2:
            return x.sum(-1)
        return x * 2

    return Case(f, two_by_three)


@program
def shape_returned():
    return Case(lambda x: (x.shape, x.stride(), x.numel(), list(x.size()), x * 2), two_by_three)


@program
def strides_read():
    def f(x):
        return x * 2 if x.is_contiguous() else x * 3

    return Case(f, two_by_three)


@program
def offset_read():
    return Case(lambda x: x * (x.storage_offset() + 1), two_by_three)


@program
def storage_read():
    return Case(lambda x: x * x.untyped_storage().nbytes(), two_by_three)


@program
def dtype_branches():
    def f(x):
        if x.dtype == torch.float32:
            return x * 2
        return x.float() * torch.finfo(torch.float32).eps

    return Case(f, two_by_three)


@program
def dtype_promotion():
    def f(x, n):
        return x + n, n / 2, n // 2, torch.result_type(x, n)

    return Case(f, lambda: call(randn(3), torch.arange(3)))


@program
def device_read():
    def f(x):
        return torch.zeros(3, device=x.device, dtype=x.dtype) + x if x.is_cpu else x

    return Case(f, two_by_three)


@program
def requires_grad_read():
    return Case(lambda x: x.detach() * (2 if x.requires_grad else 3), two_by_three)


@program
def tensor_type_read():
    return Case(lambda x: x * len(x.type()) + len(str(x.dtype)), two_by_three)


@program
def grad_mode_read():
    return Case(lambda x: x.detach() * (2 if torch.is_grad_enabled() else 3), two_by_three)


@program
def default_dtype_used():
    return Case(lambda x: torch.ones(3) * 2.5 + torch.tensor([1.0, 2.0, 3.0]), two_by_three)


@program
def threads_read():
    return Case(lambda x: x * torch.get_num_threads(), two_by_three)


@program
def constants_made():
    return Case(lambda x: x + torch.tensor([1.0, 2.0, 3.0]) + torch.arange(3), two_by_three)


@program
def tensor_of_python_values():
    values = [1.0, 2.0, 3.0]
    return Case(lambda x: x + torch.tensor(values) + torch.as_tensor(values[0]), two_by_three)


@program
def python_numbers():
    scale, count = 0.1, 10**20
    return Case(lambda x: x * (scale + 0.2) + (count % 7) + round(2.5) + divmod(7, 2)[1],
                two_by_three)  # fmt: skip


@program
def signed_zero_and_nan():
    zero, nan = 0.0, math.nan
    return Case(lambda x: x * math.copysign(1.0, zero) + (0 if nan == nan else 1), two_by_three)


@program
def numpy_constant():
    table = numpy.array([1.0, 2.0, 3.0], dtype=numpy.float32)
    return Case(lambda x: x + torch.from_numpy(table), two_by_three)


@program
def numpy_table_in_python():
    table = numpy.array([1.0, 2.0, 3.0])
    return Case(lambda x: x * float(table[1]) + table.sum().item() + len(table), two_by_three)


@program
def numpy_scalar_kept():
    scale = numpy.float32(2.5)
    return Case(lambda x: x * scale, two_by_three)


@program
def numpy_int_shape():
    size = numpy.int64(3)
    return Case(lambda x: x.reshape(size, -1) * int(size), two_by_three)


@program
def numpy_of_an_argument():
    return Case(lambda x: torch.from_numpy(x.numpy() * 2) + 1, two_by_three)


@program
def numpy_written_through():
    def f(x):
        x.numpy()[0] = 5.0
        return x * 2

    return Case(f, two_by_three)


@program
def numpy_linspace():
    count = 3
    return Case(lambda x: x * torch.tensor(numpy.linspace(0, 1, count)), two_by_three)


@program
def numpy_view_kept():
    table = numpy.arange(6.0)
    view = table[::2]

    def change():
        table[2] = 9.0
        return lambda: table.__setitem__(2, 2.0)

    return Case(lambda x: x * view.sum(), two_by_three, {"change its base": change})


@program
def numpy_object_array():
    table = numpy.array([2.0, None], dtype=object)
    return Case(lambda x: x * table[0], two_by_three)


@program
def data_pointer():
    return Case(lambda x: x * (2 if x.data_ptr() == x.view(-1).data_ptr() else 3), two_by_three)


@program
def version_counter():
    return Case(lambda x: x * (x._version + 1), two_by_three)


@program
def scalar_tensor_arithmetic():
    step = torch.tensor(2)
    return Case(lambda x: x * step + 1 / step, two_by_three)


@program
def conjugate_views():
    def f(z):
        return z.conj() * 2, torch.view_as_real(z)

    return Case(f, lambda: call(torch.complex(randn(3), randn(3))))


@program
def integer_overflow():
    return Case(lambda n: n * n + (n >> 1), lambda: call(torch.tensor([2**40, 7, -3])))


@program
def bool_and_bytes():
    return Case(lambda m, b: (m & ~m.roll(1), b * 3), lambda: call(randn(4) > 0,
                torch.arange(4, dtype=torch.uint8) + 100))  # fmt: skip


@program
def count_of_nonzero():
    return Case(lambda x: x * torch.where(x > 0)[0].numel(), two_by_three)


@program
def length_of_chosen():
    return Case(lambda x: x + len(x[x > 0]), two_by_three)


@program
def size_derived_from_chosen():
    return Case(lambda x: x + (torch.cat([x[x > 0], x[0]]) * 2).shape[0], two_by_three)


@program
def place_from_tensor():
    return Case(lambda x, n: x + x.flatten()[:n].numel(), lambda: call(randn(2, 3),
                torch.tensor(2)))  # fmt: skip


@program
def counts_of_an_array():
    bounds = numpy.array([0.0, 0.5, 1.0])

    def f(x):
        counts, edges = numpy.histogram(x.numpy(), bins=bounds)
        return (
            x * float(counts[0]),
            edges,
            numpy.interp(0.25, bounds, bounds * 2),
            bounds.dtype.name,
        )

    return Case(f, lambda: call(torch.rand(4)))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for ranges of sizes whose ops have sizes within that no argument has: amounts of
padding, windows, places of a median, roots. Against PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from test_size_ranges import agree

import weft
from weft.capture.symbolic_trace import Guard, _narrowed

pytestmark = [pytest.mark.usefixtures("automatic_sizes"), pytest.mark.usefixtures("no_grad")]


def in_one_range(function, calls, programs=1):
    """The first call has a program of its own; the others share those for ranges."""
    compiled = weft.compile(function)
    for arguments in calls:
        agree(compiled(*arguments), function(*arguments))
    stats = compiled.stats()
    assert stats["specialized"] == [] and stats["breaks"] == []
    assert len(stats["ranges"]) == programs
    assert sum(stats["ranges"].values()) == len(calls) - 1
    return stats["ranges"]


def pyramid(x, y):
    """As feature pyramids and U-Nets join images of two sizes: the coarse one is enlarged to the
    fine one's size, or padded to it on both sides, by nothing where they are equal."""
    height, width = y.shape[2] - x.shape[2], y.shape[3] - x.shape[3]
    padded = F.pad(x, [width // 2, width - width // 2, height // 2, height - height // 2])
    nearest = F.interpolate(x, size=y.shape[-2:])
    exact = F.interpolate(x, size=y.shape[-2:], mode="nearest-exact")
    cut = F.pad(y, (-1, 2, 3, -2)) * 2
    return torch.cat([y, padded], 1), y + nearest, y * exact, cut


def test_images_joined_with_others_of_any_size():
    sizes = [(20, 17, 29, 17), (21, 18, 31, 28), (32, 32, 32, 32), (17, 17, 32, 32),
             (31, 17, 32, 19), (23, 29, 30, 30)]  # fmt: skip
    calls = [(torch.randn(1, 2, a, b), torch.randn(1, 2, c, d)) for a, b, c, d in sizes]
    in_one_range(pyramid, calls)


def test_nearest_in_double_precision_is_asked_of_pytorch():
    """It rounds otherwise at some sizes, so each has a program of its own."""

    def enlarged(x):
        return F.interpolate(x, size=(x.shape[-1] * 41,)) + 1

    compiled = weft.compile(enlarged)
    for size in (2, 3, 4):
        x = torch.arange(float(size), dtype=torch.float64).reshape(1, 1, -1)
        agree(compiled(x), enlarged(x))
    assert compiled.stats()["ranges"] == {}


def pooled(x):
    """Windows of an adaptive pool are of two lengths, those of others may be a whole dim, and
    padding "same" is more behind than ahead.
    Patches are cut from images that are padded to a multiple of their size."""
    height, width = x.shape[-2:]
    more = [max((math.ceil(n / 2) - 1) * 2 + 3 - n, 0) for n in (width, height)]
    same = F.pad(x, [more[0] // 2, more[0] - more[0] // 2, more[1] // 2, more[1] - more[1] // 2])
    cut = F.pad(x, (0, (4 - width % 4) % 4, 0, -height % 4))
    rows, columns = cut.shape[2] // 4, cut.shape[3] // 4
    along = [torch.linspace(-0.9, 1, n) for n in (width, height)]
    grid = torch.stack(torch.meshgrid(*along, indexing="xy"), -1).expand(2, -1, -1, -1)
    patches = cut.reshape(-1, 2, rows, 4, columns, 4).permute(0, 2, 4, 1, 3, 5).flatten(3)
    return (
        *(F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_max_pool2d(x, 4)),
        *(F.adaptive_avg_pool2d(x, (1, 7)), F.avg_pool2d(same, 3, 2)),
        *(F.avg_pool2d(x, x.size()[2:]), F.max_pool2d(x, (height, width), stride=(height, width))),
        *(F.max_pool1d(x[:, 0], width), F.avg_pool1d(x[:, :, 0], kernel_size=width)),
        F.unfold(x, 3, padding=1, stride=2),
        *(patches.flatten(1, 2).sum(-1), F.grid_sample(x, grid, align_corners=False)),
    )


@pytest.mark.at_length
def test_windows_of_images():
    sizes = [(21, 17), (17, 32), (24, 28), (32, 18), (19, 23), (20, 30), (29, 29)]
    in_one_range(pooled, [(torch.randn(2, 2, *size),) for size in sizes])


def placed(x):
    b, n = x.shape[:2]
    half = n // 2
    gates = x.softmax(-1)
    values, experts = gates.topk(2, -1)  # of rows of a fixed length, by PyTorch itself
    return (
        *(x.median(1).values, x.nanmedian(1).values, torch.fft.fftshift(x, 1)),
        *(x / math.sqrt(n), x * n**-0.5, x * math.sqrt(b * n), torch.fft.ifftshift(x)),
        *(torch.cat([x[:, half:], x[:, :half]], 1), values, experts),
        *(torch.zeros_like(x).scatter(-1, experts, values), x.logcumsumexp(1)),
        *(x * math.log(n), x / math.log2(n + 1), x * math.log(n, 3)),
        torch.take_along_dim(x, x[..., :1].argsort(1) - n, 1),
        F.max_pool1d(x.transpose(1, 2), 3, 2, 1),
        *(torch.fft.rfft(x, dim=1).abs(), x.topk(n // 2, 1).values),
        torch.linspace(-1, 1, n)[:, None] * x,
        # Rows of a batch whose dims are one are numbered as if there were no padding.
        x.flatten(0, 1)[torch.arange(b * n), experts[..., 0].flatten()],
        x.flatten(0, 1).index_add(0, torch.arange(0, b * n, b * n - 1), x[0, :2]),
    )


def trailing(x):
    """All of a dim where it is no longer than the window, as in a cache of the last tokens."""
    last = x[:, -4:]
    return last * 2, x[..., -6:-1].sum(-1), x[0, None, -5::2], x[None].mT[:, -9:, None][..., -1] + 1


def test_the_last_elements_along_a_dim():
    assert "..4]" in str(in_one_range(trailing, [(torch.randn(2, n),) for n in (2, 3, 4)]))


def test_places_and_roots():
    sizes = [(3, 7), (5, 9), (2, 16), (16, 4), (13, 11), (7, 13), (6, 6), (11, 5)]
    in_one_range(placed, [(torch.randn(*size, 6),) for size in sizes])


def cropped(x):
    """As windows of images are made and undone: whether the last step copies hangs on whether
    anything was padded, which torch asks of both sizes at once."""
    _, height, width, _ = x.shape
    x = F.pad(x, (0, 0, 0, -width % 4, 0, -height % 4)).exp()
    return x[:, :height, :width].contiguous()


def written(x, y):
    """As a static cache is filled, which is longer than the prompt; samples of sizes are not."""
    if x.shape[0] < y.shape[0]:
        x = x * 2
        x[:, :2].exp_()
    return x.softmax(0), y.softmax(0)


def test_relations_that_samples_of_a_program_with_writes_break():
    sizes = [(3, 9), (4, 10), (9, 12)]
    in_one_range(written, [(torch.randn(a, 4), torch.randn(b, 4)) for a, b in sizes])


def test_sizes_that_relations_leave():
    sizes = [(21, 17), (17, 21), (26, 29), (20, 18), (31, 19), (23, 27)]
    in_one_range(cropped, [(torch.randn(1, *size, 2),) for size in sizes])


def test_relations_to_sizes_as_they_were_traced():
    """Where what relations leave is sought for one size, the others are those of the call."""
    guards = [Guard("n[0] % 4 != n[1] - 17", {0, 1}), Guard("n[1] > 16", {1})]
    assert _narrowed(0, (17, 21), [21, 17], guards, by_all=True) == (17, 18, 19, 21)
    assert _narrowed(0, (17, 21), [21, 17], guards) == range(17, 22)


def test_variance_of_all_elements():
    in_one_range(lambda x: x.var(), [(torch.randn(n, m),) for n, m in ((9, 4), (2, 9), (5, 3))])


def contracted(x, y, z):
    """The order of contractions is chosen by sizes."""
    return (
        torch.einsum("bi,ij,bj->b", x, y, x),
        torch.einsum("bi,bj,ijk->bk", [x, x, torch.outer(y[0], y[1])[..., None]]),
        torch.linalg.multi_dot([z, x, y, x.T]),
        torch.kron(x, y[:1, :2]) + 1,
        torch.kron(y[0, :3], z) * 2,
    )


def test_contractions_of_several_tensors():
    sizes = ((9, 4), (2, 9), (5, 3))
    calls = [(torch.randn(n, 6), torch.randn(6, 6), torch.randn(m, n)) for n, m in sizes]
    in_one_range(contracted, calls)


def counted(x):
    places = (x.abs() * 4).long().clamp(max=9)
    return torch.bincount(places, minlength=10), places.bincount(x.sigmoid(), minlength=12)


def test_counts_of_a_least_number_of_bins():
    def in_five(places):
        return torch.bincount(places, minlength=5)

    compiled, places = weft.compile(in_five), torch.arange(12) % 5
    for length in (7, 9, 12):
        agree(compiled(places[:length]), in_five(places[:length]))
    # More bins than that are PyTorch's, and so is an error.
    agree(compiled(places + 1), in_five(places + 1))
    with pytest.raises(RuntimeError, match="non-negative"):
        compiled(places - 1)
    in_one_range(counted, [(torch.randn(n),) for n in (7, 9, 2, 16)])


def normalized(x):
    shape = x.shape[1:]
    return F.layer_norm(x, shape), F.rms_norm(x.mT * 3, shape[:1]), F.layer_norm(x.half(), shape)


def test_norms_along_what_varies():
    in_one_range(normalized, [(torch.randn(3, n, 4),) for n in (7, 9, 2, 16)])


def test_attention_modules_at_any_length():
    """Eager execution has a kernel for all of it, whose result lies otherwise than that of its
    ops."""
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def attend(x):
        return attention(x, x, x)

    in_one_range(attend, [(torch.randn(2, n, 8),) for n in (7, 9, 2, 16)])


def scattered(x, y):
    return x.masked_scatter(x > 0, y) * 2


def test_sizes_that_pytorch_refuses_within_a_range():
    """A range holds sizes for which PyTorch raises an error: its program refuses them as well."""
    sizes = [(7, 9), (9, 12), (3, 16), (16, 16)]
    in_one_range(scattered, [(torch.randn(n, 3), torch.randn(m, 3)) for n, m in sizes])
    compiled = weft.compile(scattered)
    for n, m in sizes:
        compiled(torch.randn(n, 3), torch.randn(m, 3))
    with pytest.raises(RuntimeError, match="Number of elements of source"):
        compiled(torch.randn(9, 3).abs(), torch.randn(7, 3))


def chosen(x):
    return F.one_hot(x.argmax(-1), x.shape[1]), F.one_hot(x[0].long() % 2, num_classes=x.shape[1])


def test_as_many_classes_as_a_size():
    in_one_range(chosen, [(torch.randn(3, n),) for n in (7, 9, 2, 16)])
    compiled = weft.compile(lambda places, x: F.one_hot(places, x.shape[0]))
    for length in (7, 9, 12):
        compiled(torch.arange(5), torch.randn(length))
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        compiled(torch.arange(5) + 9, torch.randn(12))

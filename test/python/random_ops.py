# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops that random programs are made of, in one order: a seed draws the same program again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import random_elementwise  # noqa: F401  the first ones
import torch
from random_lines import Draw, Line, any_type, dimmed, drawn_dim, floats, numbers, op

if TYPE_CHECKING:
    from random_programs import Writer


# --- the same elements elsewhere ---


@op
def viewed(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(any_type))
    if name is None:
        return None
    value = writer.value(name)
    dim, size = drawn_dim(writer, draw, name), 0
    size = value.shape[dim]
    start, end = sorted((draw.integer(0, size), draw.integer(0, size)))
    step = draw.integer(1, 3)
    other = drawn_dim(writer, draw, name)
    order = list(range(value.dim()))
    order[dim], order[other] = order[other], order[dim]
    middle = [":"] * value.dim()
    middle[dim] = f"{start}:{end}:{step}"
    forms = [
        f"{{0}}.transpose({dim}, {other})",
        f"{{0}}.permute({order})",
        f"{{0}}.unsqueeze({dim})",
        f"{{0}}[{', '.join(middle)}]",
        f"{{0}}.movedim({dim}, {other})",
        "{0}.flatten()",
        "{0}.squeeze()",
        "{0}[..., None]",
        f"{{0}}.unsqueeze({dim}).expand({', '.join(_expanded(value, dim))})",
        "{0}.detach()",
    ]
    if size:
        place = draw.integer(0, size - 1)
        forms += [
            f"{{0}}.select({dim}, {place})",
            f"{{0}}.narrow({dim}, {place}, {size - place})",
            f"{{0}}.unbind({dim})[{place}]",
            f"{{0}}.chunk(2, {dim})[0]",
        ]
    if value.dim() >= 2:
        forms += ["{0}.mT", "{0}.diagonal()"]
    if size and size % 2 == 0:
        forms.append(f"{{0}}.unflatten({dim}, (2, {size // 2}))")
    return Line(draw.choice(forms), (name,), arithmetic=False)


def _expanded(value: torch.Tensor, dim: int) -> list[str]:
    sizes = ["-1"] * (value.dim() + 1)
    sizes[dim] = "3"
    return sizes


@op
def moved(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(any_type))
    if name is None:
        return None
    dim = drawn_dim(writer, draw, name)
    forms = (
        f"{{0}}.flip({dim})",
        f"{{0}}.roll({draw.integer(-3, 3)}, {dim})",
        f"{{0}}.repeat_interleave(2, {dim})",
        f"torch.cat([{{0}}, {{0}}], {dim})",
        f"torch.stack([{{0}}, {{0}}], {dim})",
        "{0}.contiguous()",
        "{0}.clone()",
        f"F.pad({{0}}, ({draw.integer(0, 2)}, {draw.integer(-1, 2)}))",
        "{0}.reshape(-1)",
        "{0}.tile((2,))",
        "torch.tril({0})" if writer.value(name).dim() > 1 else "{0}.clone()",
    )
    return Line(draw.choice(forms), (name,), arithmetic=False)


@op
def joined(writer: Writer, draw: Draw) -> Line | None:
    first = writer.pick(draw, dimmed(any_type))
    if first is None:
        return None
    value, dim = writer.value(first), drawn_dim(writer, draw, first)
    rest = list(value.shape)
    rest.pop(dim)

    def fits(other: torch.Tensor) -> bool:
        if other.dim() != value.dim() or other.dtype != value.dtype:
            return False
        shape = list(other.shape)
        shape.pop(dim)
        return shape == rest

    second = writer.pick(draw, fits)
    return second and Line(f"torch.cat([{{0}}, {{1}}], {dim})", (first, second), arithmetic=False)


# --- reductions and scans ---


@op
def reduced(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(floats))
    if name is None or 0 in writer.value(name).shape:
        return None
    dim, keep = drawn_dim(writer, draw, name), draw.choice(("False", "True"))
    forms = (
        f"{{0}}.sum({dim}, keepdim={keep})",
        f"{{0}}.mean({dim}, keepdim={keep})",
        f"{{0}}.amax({dim}, keepdim={keep})",
        f"{{0}}.amin({dim}, keepdim={keep})",
        f"{{0}}.var({dim}, correction=0)",
        f"{{0}}.add(2).norm(dim={dim})",
        f"torch.softmax({{0}}, {dim})",
        f"torch.log_softmax({{0}}, {dim})",
        f"torch.logsumexp({{0}}, {dim})",
        f"torch.cumsum({{0}}, {dim})",
        f"torch.cummax({{0}}, {dim}).values",
        f"{{0}}.clamp(0.5, 1.5).prod({dim})",
        "{0}.sum()",
        "{0}.mean()",
        "F.layer_norm({0}, {0}.shape[-1:], eps=0.1)",
        "F.rms_norm({0}, {0}.shape[-1:], eps=0.1)",
        f"torch.cumprod({{0}}.clamp(0.5, 1.5), {dim})",
        f"torch.std_mean({{0}}.nan_to_num(1, 1, 1) + 9, {dim}, correction=0)[1]",
        f"torch.logcumsumexp({{0}}.clamp(-8, 8), {dim})",
        f"F.softmin({{0}}, {dim})",
        f"F.glu(torch.cat([{{0}}, {{0}}], {dim}), {dim})",
        "F.mse_loss({0}, {0} * 0.5)",
        "F.cross_entropy({0}.reshape(1, -1).clamp(-9, 9), torch.zeros(1, dtype=torch.int64))",
        f"F.normalize({{0}} + 3, dim={dim})",
    )
    return Line(draw.choice(forms), (name,))


@op
def reduced_integers(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(lambda tensor: not floats(tensor)))
    if name is None or 0 in writer.value(name).shape:
        return None
    dim = drawn_dim(writer, draw, name)
    forms = (
        f"{{0}}.sum({dim})",
        f"{{0}}.any({dim})",
        f"{{0}}.all({dim})",
        f"{{0}}.amax({dim})",
        f"{{0}}.cumsum({dim})",
        f"{{0}}.count_nonzero({dim})",
        "{0}.sum()",
        f"{{0}}.long().prod({dim})",
    )
    return Line(draw.choice(forms), (name,), arithmetic=False)


@op
def ordered(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(numbers), exact=True)
    if name is None or 0 in writer.value(name).shape:
        return None
    dim = drawn_dim(writer, draw, name)
    count = draw.integer(1, writer.value(name).shape[dim])
    forms = (
        f"{{0}}.argmax({dim})",
        f"{{0}}.argmin({dim})",
        f"{{0}}.sort(dim={dim}, stable=True).values",
        f"{{0}}.sort(dim={dim}, stable=True).indices",
        f"{{0}}.topk({count}, {dim}).values",
        f"{{0}}.max({dim}).values",
        f"{{0}}.min({dim}).values",
    )
    return Line(draw.choice(forms), (name,), arithmetic=False)


# --- with arguments of their own ---


@op
def contracted(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(floats))
    if name is None:
        return None
    value = writer.value(name)
    depth, width = value.shape[-1], draw.choice((1, 3, 8, 17))
    if value.dim() == 3 and draw.integer(0, 1):
        other = writer.argument(draw, (value.shape[0], depth, width), value.dtype)
        return Line("torch.bmm({0}, {1})", (name, other))
    if draw.integer(0, 1):
        weight = writer.argument(draw, (width, depth), value.dtype)
        bias = writer.argument(draw, (width,), value.dtype)
        return Line("F.linear({0}, {1}, {2})", (name, weight, bias))
    other = writer.argument(draw, (depth, width), value.dtype)
    return Line(draw.choice(("{0} @ {1}", "torch.matmul({0} * 2, {1})")), (name, other))


@op
def convolved(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, lambda tensor: floats(tensor) and tensor.dim() in (3, 4))
    if name is None or 0 in writer.value(name).shape:
        return None
    value = writer.value(name)
    dims = value.dim() - 2
    channels = draw.choice((1, 4))
    weight = writer.argument(draw, (channels, value.shape[1], *[3] * dims), value.dtype)
    padding, stride = draw.integer(0, 2), draw.integer(1, 2)
    form = f"F.conv{dims}d({{0}}, {{1}}, padding={padding}, stride={stride})"
    return Line(form, (name, weight))


@op
def pooled(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, lambda tensor: floats(tensor) and tensor.dim() == 4)
    if name is None or 0 in writer.value(name).shape:
        return None
    forms = (
        "F.max_pool2d({0}, 2)",
        "F.max_pool2d({0}, 3, stride=1, padding=1)",
        "F.avg_pool2d({0}, 2, ceil_mode=True)",
        "F.adaptive_avg_pool2d({0}, 2)",
        "F.interpolate({0}, scale_factor=2, mode='nearest')",
        "F.interpolate({0}, size=(5, 3), mode='bilinear')",
        "F.pad({0}, (1, 1, 0, 1), mode='replicate')",
        "F.unfold({0}, 2, padding=1)",
        "F.instance_norm({0}, eps=0.1)",
        "F.group_norm({0}, 1, eps=0.1)",
        "F.lp_pool2d({0}.abs() + 0.5, 2.0, 2)",
        "F.adaptive_max_pool2d({0}, (2, 1))",
        "F.pixel_unshuffle(F.pad({0}, ({0}.shape[-1] % 2, 0, {0}.shape[-2] % 2, 0)), 2)",
        "F.interpolate({0}, size=(4, 7), mode='bicubic', align_corners=True)",
    )
    return Line(draw.choice(forms), (name,))


@op
def attended(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, lambda tensor: floats(tensor) and tensor.dim() in (3, 4))
    if name is None or 0 in writer.value(name).shape:
        return None
    value = writer.value(name)
    shape = (*value.shape[:-2], draw.choice((1, 3, 18)), value.shape[-1])
    keys = writer.argument(draw, shape, value.dtype)
    causal = draw.choice(("False", "True"))
    # PyTorch's kernels sometimes give zero for NaN.
    query = "{0}.nan_to_num(1, 1, 1)"
    form = f"F.scaled_dot_product_attention({query}, {{1}}, {{1}} * 0.5, is_causal={causal})"
    return Line(form, (name, keys), by_chance=True)


@op
def transposed_convolution(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, lambda tensor: floats(tensor) and tensor.dim() == 4)
    if name is None or 0 in writer.value(name).shape:
        return None
    value = writer.value(name)
    weight = writer.argument(draw, (value.shape[1], 3, 2, 2), value.dtype)
    return Line(f"F.conv_transpose2d({{0}}, {{1}}, stride={draw.integer(1, 2)})", (name, weight))


@op
def contracted_by_letters(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, lambda tensor: floats(tensor) and tensor.dim() in (2, 3))
    if name is None:
        return None
    letters = "abc"[: writer.value(name).dim()]
    forms = (
        f"torch.einsum('{letters},{letters}->{letters[0]}', {{0}}, {{0}})",
        f"torch.einsum('{letters},{letters[-1]}d->{letters[:-1]}d', {{0}}, {{0}}.flatten(0, -2).T)",
        f"torch.tensordot({{0}}, {{0}}, {len(letters)})",
    )
    return Line(draw.choice(forms), (name,))


@op
def looked_up(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(any_type))
    if name is None:
        return None
    value, dim = writer.value(name), drawn_dim(writer, draw, name)
    size = value.shape[dim]
    if not size:
        return None
    places = writer.places(draw, (draw.choice((1, 4, 9)),), size)
    forms = [f"torch.index_select({{0}}, {dim}, {{1}})"]
    if dim % value.dim() == 0:
        forms += ["{0}[{1}]", "{0}[{1}[:, None]]"]
    if value.dim() == 2 and dim % 2 == 0 and floats(value):
        forms.append("F.embedding({1}, {0})")
    return Line(draw.choice(forms), (name, places), arithmetic=False)


@op
def scattered(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(numbers))
    if name is None or 0 in writer.value(name).shape:
        return None
    value = writer.value(name)
    places = writer.places(draw, tuple(value.shape), value.shape[-1])
    forms = (
        "torch.take_along_dim({0}, {1}, -1)",
        "{0}.scatter(-1, {1} * 0, 1)",
        "{0}.index_fill(-1, {1}.flatten()[:2], 2)",
        "{0}.index_put(({1}.flatten()[:1] * 0,), {0}[:1] * 2)",
        "{0}.masked_fill({1} == 0, 1)",
        "torch.where({1} > 0, {0}, 0)",
        "torch.gather({0}, -1, {1})",
        "{0}.scatter_add(-1, {1}, {0})",
        "{0}.scatter_reduce(-1, {1}, {0}, 'amax')",
        "{0}.index_add(0, {1}.flatten()[:1] * 0, {0}[:1])",
    )
    return Line(draw.choice(forms), (name, places))


@op
def complex_between(writer: Writer, draw: Draw) -> Line | None:
    wide = (torch.float32, torch.float64)
    name = writer.pick(draw, lambda tensor: tensor.dtype in wide and tensor.dim() > 0)
    if name is None or 0 in writer.value(name).shape:
        return None
    forms = (
        "(torch.complex({0}, {0} + 1) * (1 - 2j)).imag",
        "torch.view_as_real(torch.complex({0}, {0} * 0.5) + 2).flatten(-2)",
        "torch.complex({0}, {0} + 0.5).abs()",
        "torch.fft.rfft({0}.nan_to_num(1, 1, 1)).real",
        "torch.polar({0}.abs(), {0}.nan_to_num(1, 1, 1)).real",
    )
    return Line(draw.choice(forms), (name,))


@op
def chosen_by_a_mask(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, dimmed(floats), exact=True)
    forms = (
        "{0}[{0} > 0].sum()",
        "({0}[{0} != 1] * 0.5).mean()",
        "{0}.masked_select({0} > -1).sum()",
        "{0}.clone().index_put(({0} > 0,), {0}[{0} > 0] * 2)",
    )
    return name and Line(draw.choice(forms), (name,))


# --- in place ---


@op
def changed(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, floats)
    forms = (
        "{0}.add_(1)",
        "{0}.mul_(0.5)",
        "{0}.relu_()",
        "{0}.clamp_(-1, 1)",
        "{0}.zero_()",
        "{0}.fill_(3)",
        "{0}.tanh_()",
        "{0}.neg_()",
        "{0} += 2",
        "{0} *= -1",
        "{0}[..., :1] = 0.5",
        "{0}[..., ::2] += 1",
    )
    return name and Line(draw.choice(forms), (name,), changes=True)


@op
def changed_by_another(writer: Writer, draw: Draw) -> Line | None:
    names = writer.pick_pair(draw, numbers)
    forms = (
        "{0}.copy_({1})",
        "{0}.add_({1})",
        "{0}.mul_({1})",
        "{0} -= {1}",
        "{0}[...] = {1}",
        "{0}.masked_fill_({0} == {0}, 1)",
    )
    return names and Line(draw.choice(forms), names, changes=True)

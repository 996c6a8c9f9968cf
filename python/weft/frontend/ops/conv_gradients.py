# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of convolutions, which graphs of transforms of torch.func have as ops."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.transposed_conv import Dim, transposed_conv
from weft.frontend.table import Site, lowers


@lowers("convolution_backward.default")
def convolution_backward(
    site: Site,
    gradient: Value,
    x: Value,
    weight: Value,
    bias_sizes,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding,
    groups: int,
    mask: Sequence[bool],
):
    """gradient, x: (b, channels, sizes...). A transposed convolution is the gradient of one from
    its results to its inputs."""
    if x.dtype != opmath(x.dtype) or not x.size * gradient.size * weight.size:
        raise Decline(f"{site.target} of {x.dtype}, or of nothing")
    b, n = site.builder, weight.rank - 2
    stride, padding, dilation = (_spread(each, n) for each in (stride, padding, dilation))
    of_x = of_weight = of_bias = None
    if mask[0] and transposed:
        of_x = b.conv(gradient, weight, stride, padding, padding, dilation, groups)
        of_x = _cut(site, of_x, x.shape)
    elif mask[0]:
        geometry = zip(
            *(gradient.shape[2:], weight.shape[2:], x.shape[2:]), *(stride, padding, dilation)
        )
        dims = [Dim(*along) for along in geometry]
        of_x = transposed_conv(b, gradient, weight, None, dims, groups)
    if mask[1]:
        image, kernel = (gradient, x) if transposed else (x, gradient)
        # Channels of one group stand for images, the images for channels.
        image, kernel = _by_group(site, image, groups), _images_as_channels(site, kernel)
        of_weight = b.conv(image, kernel, dilation, padding, padding, stride, groups)
        perm = [1, 0, *range(2, n + 2)]
        taps = weight.shape[2:]
        of_weight = b.transpose(_cut(site, of_weight, [*of_weight.shape[:2], *taps]), perm)
    if mask[2]:
        of_bias = b.reduce("sum", gradient, [0, *range(2, n + 2)])
    return of_x, of_weight, of_bias


def _spread(value: Sequence[int], n: int) -> list[int]:
    return list(value) * n if len(value) == 1 else list(value)


def _cut(site: Site, x: Value, shape: Sequence[int]) -> Value:
    """The operand without the elements behind the last stride, which the kernel does not meet."""
    for dim, size in enumerate(shape):
        x = site.builder.slice(x, dim, 0, size)
    return x


def _by_group(site: Site, x: Value, groups: int) -> Value:
    """(b, g c, sizes...) as (c, g b, sizes...)."""
    images, channels, *sizes = x.shape
    split = site.builder.reshape(x, [images, groups, channels // groups, *sizes])
    moved = site.builder.transpose(split, [2, 1, 0, *range(3, split.rank)])
    return site.builder.reshape(moved, [channels // groups, groups * images, *sizes])


def _images_as_channels(site: Site, x: Value) -> Value:
    return site.builder.transpose(x, [1, 0, *range(2, x.rank)])

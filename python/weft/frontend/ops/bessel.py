# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modified Bessel functions of the first kind, of orders 0 and 1: of float32 by float64, of float64
as PyTorch computes them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.ops.double_bessel import double_bessel
from weft.frontend.ops.polynomial import FEW, polynomial, single_operand
from weft.frontend.table import Site, lowers

_BEND = 8.0
# Interpolations at the nodes of Chebyshev, with 40 digits: of e^-x I0(x) and e^-x I1(x) / x
# in x / 4 - 1 up to the bend, of sqrt(x) e^-x I0(x) and sqrt(x) e^-x I1(x) in 16 / x - 1 from there
# on. They are within 5e-10 of these.
_NEAR_0 = (
    0.207001921133,
    -0.113004326854,
    0.0945156467289,
    -0.0890434477046,
    0.087342817717,
    -0.0849631721458,
    0.0792828433443,
    -0.069543854025,
    0.0567279558986,
    -0.0429688112934,
    0.0303587036925,
    -0.0197458514141,
    0.0115573536611,
    -0.00665141948449,
    0.00416601565356,
    -0.00200447582458,
    0.000414391906049,
    -0.000227229683381,
    0.000348241090579,
    -0.000131520606306,
)
_NEAR_1 = (
    0.0446877098645,
    -0.061124338026,
    0.0680576021296,
    -0.0684826069407,
    0.0637673306462,
    -0.0552800150365,
    0.0446755031611,
    -0.0336716637047,
    0.023680016667,
    -0.0155693209202,
    0.00960609538596,
    -0.0055419082449,
    0.00295636283967,
    -0.00152247103603,
    0.000812047943413,
    -0.000363645204003,
    9.37580988687e-05,
    -4.317720058e-05,
    4.7479082034e-05,
    -1.69478515162e-05,
)
_FAR_0 = (
    0.402176509405,
    0.00336055203139,
    0.000136217407835,
    1.11415421896e-05,
    1.47547563562e-06,
    3.03833090867e-07,
    1.09102329411e-07,
    3.36358022352e-08,
)
_FAR_1 = (
    0.389398459074,
    -0.00974957724132,
    -0.000219237385356,
    -1.50370471438e-05,
    -1.82500693871e-06,
    -3.54819541653e-07,
    -1.2318419674e-07,
    -3.78560247933e-08,
)

# As many derivatives have PyTorch's formulas; of further ones these of the polynomials are left.
_DERIVATIVES = 2


@lowers("i0.default", *(f"special_{name}.default" for name in ("i0e", "i1", "i1e")))
def bessel(site: Site, x: Value):
    b, name = site.builder, site.target.split(".")[1].removeprefix("special_")
    derivatives = _DERIVATIVES if b.graph.training else 0
    if x.dtype == torch.float64:
        return _function(b, x, name, derivatives, double_bessel)
    wide = b.convert(single_operand(site, x, FEW if name == "i1e" else None), torch.float64)
    return site.finish(_function(b, wide, name, derivatives, _value))


def _function(
    b: Builder,
    x: Value,
    name: str,
    derivatives: int,
    value_of: Callable[[Builder, Value, str], Value],
) -> Value:
    value = value_of(b, x, name)
    if not derivatives:
        return value
    even, odd = ("i0e", "i1e") if name.endswith("e") else ("i0", "i1")
    of_even, of_odd = (_function(b, x, each, derivatives - 1, value_of) for each in (even, odd))
    if name == "i0":
        slope = of_odd
    elif name == "i0e":
        slope = b.binary("sub", of_odd, b.binary("mul", b.unary("sign", x), of_even))
    else:
        # Their quotient has no value at zero, where it is a half.
        one, half = (b.constant(number, x.dtype, x.shape) for number in (1, 0.5))
        is_zero = b.compare("eq", x, 0)
        inner = b.select(is_zero, one, x)
        factor = b.binary("div", one, inner)
        factor = b.binary("add", factor, b.unary("sign", inner)) if name == "i1e" else factor
        slope = b.select(is_zero, half, b.binary("sub", of_even, b.binary("mul", of_odd, factor)))
    return b.with_slopes(value, (x, slope))


def _value(b: Builder, x: Value, name: str) -> Value:
    is_odd = name.startswith("i1")
    size = b.unary("abs", x)
    near = b.scalar("sub", b.scalar("div", size, _BEND / 2), 1)
    far = b.binary("div", b.constant(2 * _BEND, x.dtype, x.shape), size)
    below = polynomial(b, near, _NEAR_1 if is_odd else _NEAR_0)
    beyond = polynomial(b, b.scalar("sub", far, 1), _FAR_1 if is_odd else _FAR_0)
    if is_odd:
        below = b.binary("mul", below, size)
    if not name.endswith("e"):
        power = b.unary("exp", size)
        below, beyond = (b.binary("mul", power, each) for each in (below, beyond))
    beyond = b.binary("div", beyond, b.unary("sqrt", size))
    value = b.select(b.compare("le", size, _BEND), below, beyond)
    if not is_odd:
        return value
    return b.select(b.compare("lt", x, 0), b.unary("neg", value), value)  # 0 of -0, as torch's

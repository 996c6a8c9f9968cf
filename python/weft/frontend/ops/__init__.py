# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the table, by family. Importing this package fills the table."""

from weft.frontend.ops import (  # noqa: F401
    activation,
    attention,
    checks,
    columns,
    contract,
    create,
    distance,
    elementwise,
    grid_sample,
    grouped,
    index,
    interpolate,
    logic,
    loss,
    norm,
    order,
    pad,
    pool,
    recurrent,
    reduce,
    scatter,
    shape,
    special,
    strided,
)

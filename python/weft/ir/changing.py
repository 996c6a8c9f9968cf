# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Users' passes on their way into `weft.compile`."""

from __future__ import annotations

from collections.abc import Sequence

from weft import errors
from weft._compiler import Session
from weft.ir.module import Module
from weft.ir.passes import Pass, Pipeline


def changed_graph(graph: bytes, passes: Sequence[Pass]) -> tuple[bytes, bytes]:
    """What passes make of a graph in JSON: its IR with the users' lines, and without them.

    Raises: errors.PassError, if a pass fails or changes what `main` takes or returns; a pass's own
    exceptions.
    """
    module = Module(Session.import_graph(graph))
    before = _interface(module)
    Pipeline(passes)(module)
    after = _interface(module)
    if after != before:
        names = ", ".join(each.name for each in passes)
        raise errors.PassError(
            f"expected passes to leave what main takes and returns as it is; {names} left "
            f"{after} of {before}",
            names,
        )
    return module.text(locations=True).encode(), module.text().encode()


def _interface(module: Module) -> str:
    main = module["main"]
    takes = ", ".join(f"{value.name}: {value.type}" for value in main.params)
    return f"({takes}) -> ({', '.join(map(str, main.result_types))})"

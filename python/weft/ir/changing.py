# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Users' passes on their way into `weft.compile`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft import errors
from weft._compiler import Session
from weft.ir.module import Module
from weft.ir.passes import Pass, Pipeline


@dataclass(frozen=True)
class UserPasses:
    passes: tuple[Pass, ...]

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def fingerprints(self) -> list[str]:
        return [each.fingerprint() for each in self.passes]

    def changed(self, graph: bytes, level: int) -> tuple[bytes, bytes]:
        """What the passes up to a level make of a graph in JSON: its IR with the users' lines, and
        without them.

        Raises: errors.PassError, if a pass fails, with its exception as the cause, or changes what
        `main` takes or returns.
        """
        module = Module(Session.import_graph(graph))
        before = _interface(module)
        for each in self.passes:
            try:
                Pipeline([each], level=level)(module)
            except errors.PassError:
                raise
            except Exception as error:
                text = f"pass {each.name!r} failed: {type(error).__name__}: {error}"
                raise errors.PassError(text, each.name) from error
        after = _interface(module)
        if after != before:
            names = ", ".join(each.name for each in self.passes)
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

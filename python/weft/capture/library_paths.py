# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which files are of libraries, and which of Python itself."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def _libraries() -> Iterator[str]:
    """How the paths of libraries' files begin: in the interpreter's folders and the user's, and
    what an installer has put elsewhere on the module search path (`pip install --target`), where
    the user's own code may lie beside it."""
    folders = [sysconfig.get_path(kind) for kind in ("purelib", "platlib")]
    folders.append(site.getusersitepackages())
    yield from (os.path.join(each, "") for each in dict.fromkeys(folders))
    for searched in {os.path.abspath(each) for each in sys.path if each} - {*folders}:
        names = set()
        for record in Path(searched).glob("*.dist-info/RECORD"):
            with record.open(encoding="utf-8") as lines:
                names |= {line.partition(",")[0].partition("/")[:2] for line in lines}
        for name, separator in names:
            if name != ".." and (separator or name.endswith(".py")):
                yield os.path.join(searched, name) + separator


LIBRARIES = tuple(_libraries())
INSTALLED = (*LIBRARIES, sysconfig.get_path("stdlib"), "<frozen ")
PYTHON = sysconfig.get_path("stdlib") + os.sep
_SITE = tuple({sysconfig.get_path(kind) + os.sep for kind in ("purelib", "platlib")})


def is_of_stdlib(file: str) -> bool:
    return file.startswith(PYTHON) and not file.startswith(_SITE)

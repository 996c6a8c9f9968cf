#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that every include follows the arrows of the house.

A room is a folder of the repository; the table says which other rooms, single headers and
libraries its files may include. Reads the files that git knows, or those given; prints each
include that no arrow allows and exits with 1 if there was one.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from lint import check


@dataclass(frozen=True)
class Room:
    """What the files of one room may include beside their own room and the C++ library."""

    rooms: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


MLIR = ("mlir", "llvm")


def _kernels(*folders: str) -> Room:
    """A folder of compiler/Kernels, which uses these others and may use what stands above all."""
    folders = tuple(f"compiler/Kernels/{folder}" for folder in folders)
    headers = ("compiler/Kernels/Kernels.h",)
    return Room((*folders, "compiler/Graph", "compiler/Target"), headers, MLIR)


# From what all use to what nothing uses. docs/decisions/0001-kernels-read-the-graph-dialect.md
KERNELS = {
    "compiler/Kernels/VectorMath": _kernels(),
    "compiler/Kernels/Index": _kernels(),
    "compiler/Kernels/Emission": _kernels("Index", "VectorMath"),
    "compiler/Kernels/X86": _kernels("Emission", "Index"),
    "compiler/Kernels/Contraction": _kernels("Emission", "Index", "X86"),
    "compiler/Kernels/DotProduct": _kernels("Contraction", "Emission", "Index", "X86"),
    "compiler/Kernels/Nest": _kernels("Emission", "Index", "VectorMath"),
    "compiler/Kernels/Ordering": _kernels("Emission", "Index", "Nest"),
    "compiler/Kernels/Attention": _kernels("Emission", "Index", "VectorMath"),
}
ROOMS = {  # a file is of the first that fits
    **KERNELS,
    "compiler/Graph": Room(libraries=MLIR),
    "compiler/Target": Room(libraries=MLIR),
    "compiler/Transforms": Room(rooms=("compiler/Graph", "compiler/Target"), libraries=MLIR),
    "compiler/Autodiff": Room(rooms=("compiler/Graph", "compiler/Target"), libraries=MLIR),
    "compiler/Kernels": Room((*KERNELS, "compiler/Graph", "compiler/Target"), libraries=MLIR),
    "compiler/Scheduling": Room(
        rooms=("compiler/Graph", "compiler/Kernels", *KERNELS, "compiler/Target"), libraries=MLIR
    ),
    "compiler/Lowering": Room(
        rooms=("compiler/Graph", "compiler/Kernels", "compiler/Target"),
        headers=("runtime/Abi.h",),
        libraries=MLIR,
    ),
    "compiler/Driver": Room(
        rooms=(
            "compiler/Autodiff",
            "compiler/Graph",
            "compiler/Kernels",
            "compiler/Lowering",
            "compiler/Scheduling",
            "compiler/Target",
            "compiler/Transforms",
        ),
        headers=("runtime/Abi.h",),
        libraries=(*MLIR, "lld"),
    ),
    "runtime": Room(libraries=("nlohmann",)),
    "capture": Room(libraries=("Python.h",)),
    "python/bindings": Room(
        rooms=("compiler/Driver", "compiler/Graph", "runtime", "capture"),
        headers=("python/autograd/Step.h",),
        libraries=("nanobind", "Python.h"),
    ),
    "python/autograd": Room(
        headers=("runtime/Abi.h",), libraries=("torch", "ATen", "c10", "Python.h")
    ),
    "tools/weft-check-kernels": Room(
        rooms=("compiler/Driver", "compiler/Graph", "runtime"), libraries=MLIR
    ),
    "tools": Room(rooms=("compiler/Driver",), libraries=MLIR),
}
# Libraries that somebody may not use; any other header is the C++ library's or the system's.
LIBRARIES = (
    *("mlir", "llvm", "lld", "clang", "nanobind", "nlohmann", "torch", "ATen", "c10"),
    "Python.h",
)
TOP_FOLDERS = ("compiler", "runtime", "capture", "python", "tools", "test")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def room_of(path: str) -> str | None:
    """The room that holds the file `path`, a repository path; None outside the house's rooms."""
    return next((room for room in ROOMS if path.startswith(room + "/")), None)


def is_allowed(room: str, include: str) -> bool:
    """Whether files of `room` may include the header `include`."""
    arrows = ROOMS[room]
    first = include.split("/")[0]
    if first in TOP_FOLDERS:
        target = room_of(include)
        return target == room or target in arrows.rooms or include in arrows.headers
    return first not in LIBRARIES or first in arrows.libraries


def violations(path: str, text: str) -> list[str]:
    """One diagnostic per include of `path`, a file with content `text`, that no arrow allows."""
    room = room_of(path)
    if room is None:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        include = match and (match[1] or match[2])
        if include and not is_allowed(room, include):
            found.append(f"{path}:{number}: expected {room} not to include {include}")
    return found


if __name__ == "__main__":
    sys.exit(check(__doc__, violations, ["*.c", "*.cpp", "*.h"]))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings of the process: `weft.config.verify = "always"`.

verify: when a program is compared with eager execution of the same call.
    "first": on its first call, which PyTorch runs; the program is published if it reproduced that.
    "always": on every call, and PyTorch's results are returned.
    "off": never; the first call already runs the program.
automatic_sizes: whether a size of which a second value comes is a symbol, and a number an input,
    for what is compiled from then on without saying so (`automatic=`).
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

from weft import errors

_CHOICES: dict[str, tuple[object, ...]] = {
    "verify": ("first", "always", "off"),
    "automatic_sizes": (True, False),
}

automatic_sizes = os.environ.get("WEFT_AUTOMATIC_SIZES", "") != "0"
verify = os.environ.get("WEFT_VERIFY_PROGRAMS", "first")


class _Settings(types.ModuleType):
    """A module whose settings are checked where they are made."""

    def __setattr__(self, name: str, value: Any) -> None:
        choices = _CHOICES.get(name)
        if choices is None and not name.startswith("__"):
            raise errors.ConfigError(f"expected a setting among {sorted(_CHOICES)}, found {name!r}")
        if choices is not None and value not in choices:
            raise errors.ConfigError(f"expected {name} among {list(choices)}, found {value!r}")
        super().__setattr__(name, value)


_settings = sys.modules[__name__]
_settings.__class__ = _Settings
if verify not in _CHOICES["verify"]:
    raise errors.ConfigError(
        f"expected WEFT_VERIFY_PROGRAMS among {list(_CHOICES['verify'])}, found {verify!r}"
    )

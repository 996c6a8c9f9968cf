# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user is told about programs: reports, profiles, the roofline."""

import random

# rich takes a number from Python's generator as it is imported, which is the user's.
_state = random.getstate()
import rich.style  # noqa: E402, F401

random.setstate(_state)

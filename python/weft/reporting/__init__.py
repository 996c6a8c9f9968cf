# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user is told about programs: reports, profiles and the roofline."""

import random

# When rich is imported it draws from Python's generator of random numbers, which is the user's.
_state = random.getstate()
import rich.style  # noqa: E402, F401

random.setstate(_state)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m weft`: the command of that name."""

import sys

from weft.cli.main import main

# Processes that measure are spawned, and import this file.
if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user is told about programs: reports, profiles, the roofline."""

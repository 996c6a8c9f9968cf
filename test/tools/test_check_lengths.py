# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check-lengths.py: a file can be read at one sitting."""


def test_the_longest_file_and_one_that_is_longer(run_tool):
    files = {"compiler/A.cpp": "//\n" * 500, "python/weft/b.py": "#\n" * 501}
    checked = run_tool("check-lengths.py", files)
    assert checked.returncode == 1
    assert checked.stderr == "python/weft/b.py: expected at most 500 lines, found 501\n"

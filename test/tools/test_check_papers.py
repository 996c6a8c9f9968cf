# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check-papers.py: the form of decisions and measurements, and links between documents."""

import pytest

DECISION = "docs/decisions/0007-some-choice.md"
MEASUREMENT = "docs/measurements/0007-some-choice.md"
GOOD = """\
# 7. Some choice

## Context

See [the measurements](../measurements/0007-some-choice.md#how-fast-it-is) and
[elsewhere](https://example.org/none.md).

## Choice

## Rejected

## Consequence
"""
NUMBERS = """\
# Some numbers

For [decision 7](../decisions/0007-some-choice.md). Machine: two cores. Command: not recorded.

## How fast it is?

2026-11-27: 3 ms.
"""


def test_good_papers(run_tool):
    files = {
        DECISION: GOOD,
        MEASUREMENT: NUMBERS,
        "README.md": f"[why]({DECISION})\n```\n[no](link)\n```\n",
        "tools/tool.py": f"# {DECISION}\n",
    }
    checked = run_tool("check-papers.py", files)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    "change, message",
    [
        (("# 7. Some", "# 8. Some"), ":1: expected '# 7. ' and a title, found '# 8. Some choice'"),
        (("## Rejected\n", ""), ": expected the headings "),
        (("## Choice", "## What"), ": expected the headings "),
        (("## Choice\n", "## Choice\n" + 50 * "a\n"), ": expected at most 60 lines, found 62"),
        (("## Choice\n", f"## Choice\n{51 * 'a '}\n"), ":9: expected at most 100 columns"),
        (("0007-some-choice.md#", "0007-none.md#"), ": expected a file, found the link "),
        (("#how-fast-it-is", "#how-fast"), ": expected a heading, found the link "),
    ],
)
def test_decision(run_tool, change, message):
    checked = run_tool("check-papers.py", {MEASUREMENT: NUMBERS, DECISION: GOOD.replace(*change)})
    assert checked.returncode == 1
    assert checked.stderr.startswith(DECISION + message)
    assert checked.stderr.count("\n") == 1


def test_one_number_for_each(run_tool):
    other = "docs/decisions/0007-another.md"
    files = {MEASUREMENT: NUMBERS, DECISION: GOOD, other: GOOD}
    checked = run_tool("check-papers.py", files)
    assert checked.returncode == 1
    assert f"{DECISION}: expected a number of its own, found {other}\n" in checked.stderr


@pytest.mark.parametrize(
    "change, expected",
    [
        (("2026-11-27", "Today"), "a date"),
        (("Machine: two cores", "Two cores"), "the machine"),
        (("Command: not recorded", "By hand"), "the command"),
        (("](../decisions/0007-some-choice.md)", "]"), "a link to its decision"),
    ],
)
def test_measurement(run_tool, change, expected):
    checked = run_tool("check-papers.py", {DECISION: GOOD, MEASUREMENT: NUMBERS.replace(*change)})
    assert (checked.returncode, checked.stderr) == (1, f"{MEASUREMENT}: expected {expected}\n")


@pytest.mark.parametrize(
    "file, text, name",
    [
        ("compiler/A.h", "// (docs/decisions/0009-none.md).", "docs/decisions/0009-none.md"),
        ("compiler/A.h", "// docs/measurements/none: a rate.", "docs/measurements/none"),
        ("README.md", "`capture/none.py`", "capture/none.py"),
        ("README.md", "`runtime/None.h`, `tools/*.py`, `python/none/`", "runtime/None.h"),
    ],
)
def test_path_of_no_file(run_tool, file, text, name):
    checked = run_tool("check-papers.py", {file: text})
    assert checked.returncode == 1
    assert checked.stderr == f"{file}: expected a file, found the path {name}\n"

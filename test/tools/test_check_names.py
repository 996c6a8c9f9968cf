# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check-names.py: each type of a namespace has a name of its own."""


def _inside(namespace: str, text: str) -> str:
    return f"namespace {namespace} {{\n{text}}} // namespace {namespace}\n"


def test_names_of_their_own(run_tool):
    files = {
        "compiler/A.h": _inside("weft", "class B;\nstruct A {\n  struct Part {};\n};\n"),
        "compiler/B.h": _inside("weft", "struct B {\n  struct Part {};\n};\n"),
        "runtime/C.h": _inside("weft::rt", "struct A {\n};\n"),
    }
    checked = run_tool("check-names.py", files)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_name_twice(run_tool):
    files = {
        "compiler/A.h": _inside("weft", "enum class Access { Read };\n"),
        "compiler/B.h": _inside("weft", "\nusing Access = int;\n"),
    }
    checked = run_tool("check-names.py", files)
    assert checked.returncode == 1
    expected = "compiler/B.h:3: expected one type weft::Access, found it at compiler/A.h:2\n"
    assert checked.stderr == expected

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules as scripts of the transform dialect."""

import re

import pytest

from weft import te


def product():
    x, y = te.placeholder((20, 12), name="X"), te.placeholder((12, 24), name="Y")
    r = te.reduce_axis((0, 12), "r")
    return x, y, te.compute((20, 24), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "Z")


def test_a_schedule_is_a_script():
    x, y, z = product()
    s = te.create_schedule(z)
    buffer = s.cache_write(z, "local")
    (r,) = s[buffer].op.reduce_axis
    outer, inner = s[buffer].split(r, factor=8)
    partial = s.rfactor(buffer, inner)
    packed = s.cache_read(y, "packed", [partial])
    i, j = s[z].op.axis
    fused = s[z].fuse(i, j)
    s[buffer].compute_at(s[z], fused)
    s[buffer].prefetch(partial, s[buffer].leaf_iter_vars[-1], -2)
    s[partial].vectorize(s[partial].op.reduce_axis[0], reassociate=True)
    s[packed].compute_root()
    script = s.script()
    assert te.load_script(script, z) == s and te.load_script(script, [z]).script() == script
    # Handles may have any names.
    assert te.load_script(re.sub(r"%Z", "%handle-of.Z", script), z) == s
    assert te.load_script(te.create_schedule(z).script(), z).steps == []
    tensor = te.default_schedule(z)
    assert te.load_script(tensor.script(), z) == tensor
    n = te.var("n")
    v = te.placeholder((n, 5), name="V")
    sized = te.create_schedule(te.compute((n, 5), lambda i, λ: v[i, λ] * 2, "W"))
    sized[sized.outputs[0]].vectorize(sized.outputs[0].op.axis[1])
    w = te.compute((n, 5), lambda i, λ: v[i, λ] * 2, "W")
    assert te.load_script(sized.script(), w) == sized


# As `mlir-opt --allow-unregistered-dialect` prints a script.
_PRINTED = """\
module attributes {transform.with_named_sequence} {
  transform.named_sequence @any(%arg0: !transform.any_op {te.tensor = "Z"}) attributes {x} {
    // a comment
    %0:3 = "te.loops"(%arg0) : (!transform.any_op)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %1:2 = "te.split"(%0#0) {factor = 8 : i64} : (!transform.any_op)
        -> (!transform.any_op, !transform.any_op)
    %2 = "te.cache_write"(%arg0) {scope = "\\CE\\BB"} : (!transform.any_op) -> !transform.any_op
    "te.vectorize"(%0#2) {reassociate} : (!transform.any_op) -> ()
    transform.yield
  }
}
"""


def test_a_script_that_mlir_has_printed():
    z = product()[2]
    lines = _PRINTED.splitlines(keepends=True)
    without = "".join(line for line in lines if "cache_write" not in line)
    s = te.load_script(without, z)
    assert s.save() == "split Z i factor=8\nvectorize Z r reassociate=1\n"
    moved = "".join([*lines[:3], lines[7], *lines[8:9], *lines[9:]]).replace("%0#2", "%0#0")
    with pytest.raises(te.ScheduleError, match="line 5: %0#0 is not defined"):
        te.load_script(moved, z)
    with pytest.raises(te.ScheduleError, match="line 8: Z: its loops were changed before cache_w"):
        te.load_script(_PRINTED, z)


@pytest.mark.parametrize(
    "old, new, message",
    [
        (_PRINTED, "", "line 1: there is no schedule; write transform.named_sequence"),
        ("te.split", "te.melt", "line 6: Z: 'melt' is no step; use one of split, reorder"),
        ("te.split", "scf.split", "line 6: 'scf.split' is no op of a schedule; begin with te."),
        ("factor = 8", "factor = 0", "line 6: i: factor is 0; give a positive integer"),
        ("factor = 8 : i64", 'factor = "8"', "line 6: factor is '8'; give an integer"),
        ("factor = 8", "factor = 0.5", "line 6: `.` is not understood"),
        ("factor = 8", "factor = %0", "line 6: %0 is no value; write an integer"),
        ("%1:2 =", "%1 =", "line 6: te.split gives 2 handles, and 1 are named"),
        ("%1:2 =", "%1, %1 =", "line 6: %1 is defined twice"),
        ("%0:3 =", "%0:2 =", "line 4: Z has the loops i, j, r, and 2 are named; name 3"),
        ("(%0#0)", "(%arg0)", "line 6: %arg0 is not a loop; give a loop"),
        ("(%0#0)", "()", "line 6: te.split has no operand"),
        ("(%arg0) {", "(%0#1) {", "line 8: %0#1 is not a tensor; give a tensor"),
        ("(%arg0) {", "(%arg0) {unscope", "line 8: te.cache_write has no scope; give a string"),
        ('te.tensor = "Z"', 'te.tensor = "Q"', "Q: the schedule has no tensor of that name"),
        ('te.tensor = "Z"', "", "line 2: %arg0 is no tensor; write {te.tensor"),
        ("transform.yield\n  }\n}", "", "line 11: expected a string, found the end of the text"),
    ],
)
def test_scripts_that_are_no_schedule(old, new, message):
    assert old in _PRINTED
    with pytest.raises(te.ScheduleError) as caught:
        te.load_script(_PRINTED.replace(old, new), product()[2])
    assert str(caught.value).startswith(message)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random tensor expressions, their arguments, and random steps of their schedules."""

import numpy as np
from hypothesis import strategies as st

from weft import te
from weft.te.expressions import Axis

SIZES = st.sampled_from([1, 2, 3, 5, 7, 8, 16, 17, 20])
DTYPES = ["float32", "float32", "float64", "int32", "int64", "uint8", "bool"]

_BOTH = te.comm_reducer(
    lambda x, y: (te.maximum(x[0], y[0]), x[1] + y[1]),
    lambda a, b: (te.min_value(a), te.const(0, b)),
    "both",
)


@st.composite
def programs(draw):
    """Placeholders, and the last of one to three computed tensors."""
    shapes = [tuple(draw(st.lists(SIZES, min_size=1, max_size=2))) for _ in range(2)]
    tensors = [
        te.placeholder(shape, draw(st.sampled_from(DTYPES)), f"X{n}")
        for n, shape in enumerate(shapes)
    ]
    inputs = list(tensors)
    for number in range(draw(st.integers(1, 3))):
        made = draw(computed(tensors, f"T{number}"))
        tensors += made if isinstance(made, tuple) else [made]
    return inputs, tensors[-1]


@st.composite
def computed(draw, tensors, name):
    shape = tuple(draw(st.lists(SIZES, min_size=0, max_size=3)))
    kind = draw(st.sampled_from([None, None, "sum", "max", "min", "prod", "fold"]))
    reduced = [
        te.reduce_axis((0, draw(SIZES)), f"{name}r{n}")
        for n in range(draw(st.integers(1, 2)) if kind else 0)
    ]
    used = [axis for each in tensors for axis in each.op.reduce_axis]
    if reduced and used and draw(st.booleans()):
        reduced[0] = draw(st.sampled_from(used))
    prefer = tensors[-1] if draw(st.booleans()) else None

    def body(*axes):
        value = draw(scalars([*axes, *reduced], tensors, 3))
        if prefer is not None:
            other = draw(loads([*axes, *reduced], prefer))
            value = value + other if value.dtype != "bool" else te.cast(value, "int32") * other
        if kind == "prod" and value.dtype != "bool":
            value = te.cast(value > 0, "float32") + 0.5
        if kind == "fold":
            value = te.cast(value, "float32")
            both = _BOTH((value, value * 2), axis=reduced)
            return both if draw(st.booleans()) else both[draw(st.integers(0, 1))]
        return getattr(te, kind)(value, axis=reduced) if kind else value

    parameters = ", ".join(f"{name}i{n}" for n in range(len(shape)))
    scope = {"body": body}
    return te.compute(shape, eval(f"lambda {parameters}: body({parameters})", scope), name)


@st.composite
def loads(draw, axes, tensor):
    """An element at indices inside of the tensor, or at any, under a condition."""
    indices, inside = [], []
    for size in tensor.shape:
        index = te.const(draw(st.integers(0, size - 1)))
        if axes and draw(st.integers(0, 4)):
            axis = draw(st.sampled_from(axes))
            form = draw(st.integers(0, 4))
            moved = {
                0: axis,
                1: axis + draw(st.integers(-2, 2)),
                2: axis * 2 - 1,
                3: axis // 3,
                4: size - 1 - axis,
            }[form]
            index = moved % size if draw(st.integers(0, 3)) == 0 else moved
            inside += [index >= 0, index < size]
        indices.append(index)
    element = tensor[tuple(indices)] if not inside else None
    if element is not None:
        return element
    other = draw(st.integers(0, 2))
    return te.if_then_else(te.all(*inside), tensor[tuple(indices)], other)


@st.composite
def scalars(draw, axes, tensors, depth):
    choice = draw(st.integers(0, 8 if depth else 1))
    if choice <= 1:
        return draw(loads(axes, draw(st.sampled_from(tensors))))
    a = draw(scalars(axes, tensors, depth - 1))
    if choice == 2:
        return te.tanh(a) if draw(st.booleans()) else te.exp(te.minimum(a, 3))
    if choice == 3 and axes:
        return a + draw(st.sampled_from(axes))
    if choice == 4:
        return te.cast(a, draw(st.sampled_from(["float32", "float64", "int32", "int64"])))
    b = draw(scalars(axes, tensors, depth - 1))
    if choice == 5:
        return te.if_then_else(a > b, a, b * 2)
    if choice == 6:
        return te.maximum(a, b)
    return a + b if choice == 7 else a * b


def arrays_for(inputs, seed):
    random = np.random.default_rng(seed)
    made = {}
    for each in inputs:
        if each.dtype == "bool":
            made[each] = random.integers(0, 2, each.shape).astype(bool)
        elif each.dtype.startswith("float"):
            made[each] = random.standard_normal(each.shape).astype(each.dtype)
        else:
            made[each] = random.integers(0, 5, each.shape).astype(each.dtype)
    return made


def take_random_step(draw, s):
    """One step that may be illegal: then it is refused and leaves the schedule as it was."""
    before = s.key(), str(s)
    stages = [each for each in s.stages if each.op.body is not None]
    stage = draw(st.sampled_from(stages))
    pool = list(stage.leaf_iter_vars) or [Axis(3, "nowhere", "spatial")]
    axis, other = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
    verbs = "split split reorder reorder fuse vectorize parallel unroll at at inline root "
    verbs += "nparts across read write rfactor prefetch decompose fma vnni amx"
    verb = draw(st.sampled_from(verbs.split()))
    try:
        if verb == "split":
            stage.split(axis, factor=draw(st.sampled_from([1, 2, 3, 4, 8, 16])))
        elif verb == "nparts":
            stage.split(axis, nparts=draw(st.sampled_from([1, 2, 3])))
        elif verb == "reorder":
            stage.reorder(*draw(st.permutations(pool)))
        elif verb == "fuse":
            stage.fuse(axis, other)
        elif verb in ("vectorize", "parallel", "unroll"):
            getattr(stage, verb)(axis)
        elif verb == "across":
            stage.vectorize(axis, reassociate=True)
        elif verb == "at":
            parent = draw(st.sampled_from(stages))
            scopes = list(parent.leaf_iter_vars)
            if scopes:
                stage.compute_at(parent, draw(st.sampled_from(scopes)))
        elif verb == "inline":
            stage.compute_inline()
        elif verb == "root":
            stage.compute_root()
        elif verb == "read":
            s.cache_read(draw(st.sampled_from(stage.reads() or [stage.tensor])), "c", stage.tensor)
        elif verb == "write":
            s.cache_write(stage.tensor, "w")
        elif verb == "rfactor":
            s.rfactor(stage.tensor, axis)
        elif verb == "decompose":
            stage.decompose_reduction(axis)
        elif verb in ("fma", "vnni", "amx"):
            stage.tensorize(axis, verb)
        elif verb == "prefetch":
            stage.prefetch(draw(st.sampled_from(stage.reads() or [stage.tensor])), axis, 1)
    except te.ScheduleError as error:
        assert error.axis and error.reason and error.remedy
        assert (s.key(), str(s)) == before, f"{error} has changed the schedule"


@st.composite
def scheduled_programs(draw):
    """Placeholders, the result, and a schedule of up to ten steps."""
    inputs, output = draw(programs())
    schedule = te.create_schedule(output)
    for _ in range(draw(st.integers(0, 10))):
        take_random_step(draw, schedule)
    return inputs, output, schedule

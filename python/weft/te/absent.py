# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of TVM's te that Weft does not have. Each raises an error that says what to use instead."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.te.errors import ScheduleError, TEError

_FUNCTIONS = {
    "extern": "a kernel calls no function of the host: write it with te.compute, or call the "
    "function between two kernels",
    "extern_primfunc": "there are no PrimFuncs: write it with te.compute",
    "create_prim_func": "there are no PrimFuncs: te.lower(schedule) has the loops as text",
    "thread_axis": "there are no threads of a GPU: s[Z].parallel(axis) divides a loop among the "
    "processor's",
    "decl_buffer": "buffers are those of the tensors: give arrays with strides to the function",
    "decl_tensor_intrin": "microkernels have names: s[Z].tensorize(axis, 'fma')",
    "SpecializedCondition": "a schedule is for all arrays: build two, and choose when calling",
    "trace": "a kernel calls no function of the host: make the value a result",
}

_STAGE_METHODS = {
    "bind": ("there are no threads of a GPU", "use parallel(axis) or vectorize(axis)"),
    "pragma": ("loops have no pragmas", "use unroll, vectorize, parallel or prefetch"),
    "storage_align": ("buffers are aligned to 64 bytes", "leave the step out"),
    "double_buffer": ("copies do not run beside the computation", "use prefetch"),
    "rolling_buffer": ("buffers hold one iteration's part", "use compute_at at an inner loop"),
    "transform_layout": ("tensors lie row by row", "write a te.compute of the other layout"),
    "set_scope": ("memory has one scope", "use compute_at to keep a buffer small"),
    "set_store_predicate": ("stores follow from the shape", "use te.if_then_else in the formula"),
    "env_threads": ("there are no threads of a GPU", "use parallel(axis)"),
}

_SCHEDULE_METHODS = {
    "create_group": ("stages have no groups", "use compute_at for each stage"),
}


def _absent(name: str, reason: str) -> Any:
    def function(*_: Any, **__: Any) -> NoReturn:
        raise TEError(f"te.{name}: {reason}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Absent: {reason}."
    return function


class hybrid:  # noqa: N801
    """TVM's te.hybrid, which Weft does not have."""

    script = staticmethod(
        _absent(
            "hybrid.script",
            "loops are not written in Python: use te.compute, or te.scan for "
            "steps that depend on earlier ones",
        )
    )


FUNCTIONS = {name: _absent(name, reason) for name, reason in _FUNCTIONS.items()}


def stage_method(label: str, name: str) -> Any:
    """Raises: AttributeError for a name that TVM's stages have and Weft's have not, with a text
    that says what to use instead, and for any other name."""
    return _refusing("Stage", _STAGE_METHODS, label, name)


def schedule_method(label: str, name: str) -> Any:
    return _refusing("Schedule", _SCHEDULE_METHODS, label, name)


def _refusing(kind: str, known: dict[str, tuple[str, str]], label: str, name: str) -> Any:
    if name not in known:
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    reason, remedy = known[name]

    def method(*_: Any, **__: Any) -> NoReturn:
        raise ScheduleError(label, f"{name}: {reason}", remedy)

    return method

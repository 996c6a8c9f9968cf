# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random arguments for the overloads of the frontend's table, from their schemas: all element
types, sizes of zero and one among others. Run as a program, it compiles them (see main)."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from guarded import Call, compile_calls, run

import weft
from weft.errors import CompileError
from weft.frontend.dtypes import NAMES
from weft.frontend.lowered import Unsupported

DTYPES = list(NAMES)
SHAPES = [
    (), (0,), (1,), (3,), (17,), (0, 3), (3, 0), (1, 4), (4, 4), (17, 3), (2, 0, 4), (2, 3, 3),
    (0, 4, 4), (1, 1, 5), (3, 3, 0), (2, 2, 5, 5), (0, 2, 3, 3), (2, 0, 3, 3), (3, 3, 3, 3),
    (1, 2, 17, 8), (1, 2, 0, 8), (1, 1, 3, 3, 3), (2, 2, 0, 3, 3),
]  # fmt: skip
WORDS = ["none", "mean", "sum", "floor", "trunc", "same", "valid", "tanh", "ij", "left"]
DRAWS = 150  # draws of arguments, until eager accepts some
# For tensors without elements PyTorch's own kernels divide integers by zero.
DIE_OF_NO_ELEMENTS = {"aten.native_batch_norm_backward.default"}


@dataclass
class Case:
    """One call of an overload. `accepted`: whether eager gives tensors."""

    target: str
    args: list[Any]
    kwargs: dict[str, Any]
    accepted: bool

    def call(self) -> Call:
        """The call as a function of the tensors among the arguments, which are copied, since some
        overloads write to them."""
        overload = overload_of(self.target)
        places, tensors = [], []
        for where, values in ((0, list(enumerate(self.args))), (1, list(self.kwargs.items()))):
            for key, value in values:
                for number, item in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(item, torch.Tensor):
                        places.append((where, key, number if isinstance(value, list) else None))
                        tensors.append(item)

        def function(*given: torch.Tensor) -> Any:
            holders = [list(self.args), dict(self.kwargs)]
            for (where, key, number), tensor in zip(places, given, strict=True):
                if number is None:
                    holders[where][key] = tensor.clone()
                else:
                    holders[where][key] = list(holders[where][key])
                    holders[where][key][number] = tensor.clone()
            return overload(*holders[0], **holders[1])

        return Call(str(self), function, tensors)

    def __str__(self) -> str:
        def text(value: Any) -> str:
            if isinstance(value, torch.Tensor):
                return f"{NAMES[value.dtype]}{list(value.shape)}"
            if isinstance(value, list):
                return "[" + ", ".join(map(text, value)) + "]"
            return repr(value)

        named = [f"{name}={text(value)}" for name, value in self.kwargs.items()]
        return f"{self.target}({', '.join([*map(text, self.args), *named])})"


def overload_of(target: str) -> Any:
    """The overload; None if this version of PyTorch does not have it."""
    namespace, name, overload = target.split(".")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    return getattr(packet, overload, None)


def cases(target: str, count: int, seed: int) -> Iterator[Case]:
    """Up to `count` cases that eager accepts, each also with tensors of other types."""
    overload = overload_of(target)
    if overload is None:
        return
    choose = random.Random(f"{target} {seed}")
    torch.manual_seed(seed)
    for _ in range(DRAWS):
        args, kwargs = _arguments(overload._schema, choose)
        case = Case(target, args, kwargs, accepted=True)
        if not _try(case):
            continue
        yield case
        other = choose.choice(DTYPES)
        case = Case(target, _retyped(args, other), _retyped(kwargs, other), accepted=True)
        if _try(case) or not case.accepted:
            yield case
        count -= 1
        if count == 0:
            return


def _try(case: Case) -> bool:
    """Whether eager gives tensors whose types graphs have."""
    call = case.call()
    if case.target in DIE_OF_NO_ELEMENTS and not all(each.numel() for each in call.args):
        return False
    print(f"try {case}", flush=True)  # PyTorch itself crashes for some
    try:
        results = call.function(*call.args)
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
        case.accepted = False
        return False
    leaves = [*call.args, *torch.utils._pytree.tree_leaves(results)]
    return bool(call.args) and all(
        isinstance(leaf, torch.Tensor) and leaf.dtype in NAMES for leaf in leaves
    )


def _retyped(values: Any, dtype: torch.dtype) -> Any:
    return torch.utils._pytree.tree_map(
        lambda leaf: leaf.to(dtype) if isinstance(leaf, torch.Tensor) else leaf, values
    )


def _arguments(schema: Any, choose: random.Random) -> tuple[list[Any], dict[str, Any]]:
    shapes = choose.choices(SHAPES, k=choose.choice([1, 1, 1, 2]))
    dtypes = choose.choices(DTYPES, k=choose.choice([1, 1, 1, 2]))
    args, kwargs = [], {}
    for argument in schema.arguments:
        if argument.has_default_value() and choose.random() < 0.6:
            if argument.kwarg_only:
                continue
            value = argument.default_value
        else:
            value = _value(str(argument.type), argument.name, shapes, dtypes, choose)
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


def _value(kind: str, name: str, shapes: list, dtypes: list, choose: random.Random) -> Any:
    if name in ("layout", "device", "pin_memory", "memory_format"):
        return None
    if kind.startswith("Optional["):
        inner = kind[len("Optional[") : -1]
        return _value(inner, name, shapes, dtypes, choose) if choose.random() < 0.5 else None
    if kind.startswith("List["):
        inner, count = kind[len("List[") : -1], choose.choice([1, 2, 2, 3])
        return [_value(inner, name, shapes, dtypes, choose) for _ in range(count)]
    if kind == "Tensor":
        return _tensor(name, choose.choice(shapes), choose.choice(dtypes), choose)
    if kind == "int" and name in ("dtype", "output_dtype"):
        return choose.choice(DTYPES)
    values = {
        "int": [-1, 0, 1, 1, 2, 3],
        "bool": [False, True],
        "float": [0.0, 0.5, 1.0, 2.0],
        "number": [0, 1, 2, 0.5, -1.5, True],
        "str": WORDS,
    }
    return choose.choice(values[kind]) if kind in values else None


def _tensor(name: str, shape: tuple, dtype: torch.dtype, choose: random.Random) -> torch.Tensor:
    if ("ind" in name or name == "target") and choose.random() < 0.8:
        return torch.randint(0, 3, shape, dtype=choose.choice([torch.int64, torch.int32]))
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 5, shape).to(dtype)


def problem_of(case: Case) -> str | None:
    """What goes wrong with a case, if this process survives it.

    What eager refuses may be refused at any stage; what it accepts, tracing may refuse.
    """
    call = case.call()
    try:
        program = compile_calls([call], "native", threads=1, native=False)
    except CompileError as error:
        return f"does not compile: {error}" if case.accepted else None
    except Unsupported:
        return None
    except Exception as error:  # torch.export raises errors without a common type
        inside = (
            any(frame.startswith(weft.__path__[0]) for frame in _files(error)) and case.accepted
        )
        return f"{type(error).__name__} in the frontend: {error}" if inside else None
    if program is None or not case.accepted:
        return None
    try:
        run(program, "end", threads=1)
    except AssertionError as error:
        return f"runs badly: {error}"
    return None


def _files(error: BaseException) -> Iterator[str]:
    trace = error.__traceback__
    while trace:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next


def main(seed: str, count: str, *targets: str) -> None:
    """Prints each case before compiling it, and afterwards what is wrong with it.

    Draws that crash PyTorch leave a line "try" at the end.
    """
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for target in targets:
        for case in cases(target, int(count), int(seed)):
            print(f"case {case}", flush=True)
            if problem := problem_of(case):
                print(f"problem {case}: {problem}", flush=True)
        print(f"end {target}", flush=True)


if __name__ == "__main__":
    with torch.no_grad():
        main(*sys.argv[1:])

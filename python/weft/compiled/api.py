# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.compile`, and the functions that take the callable or module which it returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from weft import _core, config, errors
from weft.artifacts.builds import (
    GraphPasses,
    MeasuredSchedules,
    Options,
    most_threads,
    optional_passes,
)
from weft.artifacts.targets import isa_of
from weft.capture.callable_face import Face, reset_all
from weft.capture.given import Given
from weft.capture.tracing import Tracing, prepare
from weft.compiled.compiled import Compiled
from weft.compiled.module import (
    callable_of,
    compile_in_place,
    compiled_module,
    is_in_place,
    method_itself,
)
from weft.reporting.explanation import Explanation
from weft.reporting.profile import Profile
from weft.reporting.schedules import ChosenSchedule


def compile(
    program: Callable[..., Any] | None = None,
    /,
    *,
    isa: str | None = None,
    target: str | None = None,
    threads: int | None = None,
    schedule: str = "",
    precision: str = "float32",
    fullgraph: bool = False,
    inplace: bool = False,
    background: bool = False,
    passes: Iterable[Any] = (),
    capture: str | None = None,
    backend: str | Callable[..., Any] = "native",
    level: int = 3,
    without: Iterable[str] = (),
    memory_budget: float | None = None,
    records: str | os.PathLike[str] | None = None,
    shapes: Mapping[str, Any] | None = None,
    automatic: bool | None = None,
    batch_invariant: bool = False,
    rng: str = "torch",
) -> Callable[..., Any]:
    """A callable that does the same as `program`, by programs that are compiled on first use.

    For a module the result is a module: an object of a subclass of its class that shares its
    `__dict__`, so that attributes, parameters, hooks and modes of one are those of the other. For a
    function or method it is a callable. PyTorch runs the first call of each kind (of shapes,
    dtypes, modes); the program is used from then on if it has reproduced that call
    (`weft.config.verify`).

    program: a torch.nn.Module or a function; without it, the result is a decorator.
    isa: "native", which is the default, or "avx2" or "avx512" to compile for that instruction set,
    together with the machine's extensions of it: "avx512" leaves out only the matrix unit (AMX).
    "amx" is "native" with float32 on the matrix unit too, split into bfloat16 parts without loss:
    faster on a processor that keeps the unit at its full rate, slower on one that throttles it.
    target: in place of `isa`, "native", "x86-64-v3" or "x86-64-v4", the name of a processor, or
    "llvm -mcpu=…" with one of these.
    threads: the most threads that a call runs on; by default the machine's. Calls run on as many of
    them as `weft.get_num_threads()` gives: torch's number, unless `weft.set_num_threads` or
    WEFT_THREADS sets another.
    schedule: fixes numbers of every contraction's schedule that the compiler would otherwise
    choose, such as "rows=6,groups=4,chunk=768,panels=2"; where they do not fit, a warning names the
    bound and PyTorch runs the call.
    records: a file that `weft.tune.run` has filled: kernels that are in it are compiled with the
    fastest schedule measured on this machine. `weft.report` names those that are not in it.
    precision: "bf16" rounds the operands of float32 matmuls and convolutions to bfloat16; their
    sums, and everything else, stay float32. "float32", the default, rounds nothing. "bf16" is
    slower on processors without instructions for bfloat16.
    fullgraph: if True, a call that PyTorch would have to run raises errors.NotCompiledError
    instead, before its first effect if the reason is known by then.
    passes: passes made by `weft.ir.module_pass`, or names of the compiler's passes, which run on
    the graph, in order, before the compiler's own; `weft.ir(compiled)` shows their result. If one
    fails, PyTorch runs the call, and a warning has its error.
    capture: where programs come from: "export" traces them by torch.export, "observe" watches the
    first call in the interpreter. By default calls are traced, and those that cannot be traced are
    observed; with a backend other than native code all are observed.
    backend: what runs the programs: "native" code; "eager", PyTorch's own operations without the
    Python code between them; or, as for torch.compile, a function that takes a torch.fx.GraphModule
    and example tensors and returns a callable, which takes such tensors and gives a tuple or list
    of tensors. The latter two need observed calls.
    level: of optimisation. Results agree up to rounding; at a higher level programs are faster and
    take longer to compile. 0: every computation is a kernel of its own. 1: the graph is cleaned up,
    and computations are fused. 2: the graph is rewritten, for example to use attention kernels. 3,
    the default: weights are prepared once, and layouts are chosen. Passes of a higher level are
    left out.
    without: names of the compiler's passes that are left out, such as "weft-roll-loops", to measure
    their effect: results agree up to rounding. The error for an unknown name lists all names.
    memory_budget: for a program that trains, the bytes that are saved for the backward, as a share
    from 0 to 1 of the bytes that would be saved if the backward recomputed nothing. A smaller
    budget never saves more: with 1 everything is saved, with 0 as little as possible. Without a
    budget the cheaper choice is made for each value.
    shapes: for arguments by name, the dimensions whose sizes are symbols, as in
    {"input_ids": {1: weft.Range(1, 512)}}, or with torch.export's Dim in place of a Range: one
    program stands for all sizes of the range.
    automatic: if True, a size becomes a symbol, within a factor of two, once a second value of it
    occurs; a size that cannot be a symbol has a program for each of its values. A number among the
    arguments or attributes becomes an input of the next program, if possible, once a second value
    of it occurs. If False, each size and each number has a program of its own, but for calls that
    take a cache or another object, whose sizes vary. By default as `weft.config.automatic_sizes`,
    which is True.
    batch_invariant: if True, a row of the batch, which is the first dimension of the arguments, has
    the same bits whatever other rows are in the batch. For programs that compute each row
    separately.
    rng: how random numbers for dropout are drawn. "torch", the default, gives the masks that
    PyTorch would draw with the same seed. "philox" is faster and saves no mask: each call draws a
    key from PyTorch's generator, and the mask is computed from the key and the element's position
    (Philox2x32-10), again in the backward, and equally for any number of threads. Elements are kept
    independently with probability 1 - p, up to 2**-32. PyTorch's first call is given the same
    masks.
    inplace: if True, the module object itself is compiled and returned, for code that already holds
    it.
    background: if True, PyTorch runs the calls of a new kind while their program is compiled and
    compared in processes of low priority; the first call after that uses the program. Until then
    there is a copy of the call's arguments. `wait` waits for the program.
    Raises: TypeError, if `program` cannot be called, or is not a module and is to be compiled in
    place; errors.ConfigError for unknown options; tune.RecordsError for a file that holds no
    records.
    """
    if capture is None and backend != "native":
        capture = "observe"
    pipeline = _passes(passes)
    settings: dict[str, Any] = dict(
        isa=isa,
        target=target,
        threads=threads,
        schedule=schedule,
        precision=precision,
        fullgraph=fullgraph,
        background=background,
        passes=pipeline,
        capture=capture,
        backend=backend,
        level=level,
        without=without,
        memory_budget=memory_budget,
        records=records,
        shapes=shapes,
        automatic=config.automatic_sizes if automatic is None else automatic,
        batch_invariant=batch_invariant,
        rng=rng,
    )
    if rng not in ("torch", "philox"):
        raise errors.ConfigError(f"expected rng torch or philox, found {rng!r}")
    if capture not in (None, "export", "observe"):
        raise errors.ConfigError(f"expected capture 'export' or 'observe', found {capture!r}")
    if not callable(backend) and backend not in ("native", "eager"):
        raise errors.ConfigError(f"expected backend 'native', 'eager' or a function: {backend!r}")
    if capture == "export" and backend != "native":
        raise errors.ConfigError(f"expected backend 'native' with 'export', found {backend!r}")
    if capture == "observe" and rng != "torch":
        raise errors.ConfigError(f"expected rng 'torch' with capture 'observe', found {rng!r}")
    if program is None:
        return lambda function: compile(function, inplace=inplace, **settings)
    if not callable(program):
        raise TypeError(f"expected a module or function, found {type(program).__qualname__}")
    options = options_of(
        isa,
        target,
        threads,
        schedule,
        precision,
        pipeline,
        level,
        memory_budget,
        records,
        without,
    )
    if inplace and not isinstance(program, torch.nn.Module):
        kind = type(program).__qualname__
        raise TypeError(f"expected a module to compile in place, found {kind}")

    # What tracing needs is imported now: in the background it would share the GIL with calls, and
    # for ranges torch changes functions of its own during the import, which must not count as a
    # change made by the first call.
    if background or shapes is not None or batch_invariant:
        prepare()

    def answering(original: Callable[..., Any]) -> _core.Callable:
        if capture == "observe":
            return _observed(original, options, settings)
        # Nothing is observed if all calls go to PyTorch at once, or if random numbers are drawn
        # otherwise.
        if capture is None and not background and rng == "torch":
            from weft.compiled.observing import TracedOrObserved

            return TracedOrObserved(original, options, settings).callable()
        return Compiled(
            original, Tracing(original, rng, options.rolls_loops), options, settings
        ).callable()

    program = method_itself(program)
    if isinstance(program, torch.nn.Module) and (inplace or is_in_place(program)):
        compile_in_place(program, answering)
        return program
    if (made := callable_of(program)) is not None:
        program = made.original  # it was compiled before, and is now compiled with other settings
    if isinstance(program, torch.nn.Module):
        return compiled_module(program, answering(program))
    return answering(program)


def _observed(
    original: Callable[..., Any], options: Options, settings: dict[str, Any]
) -> _core.Callable:
    from weft.observe.backends import Function, Native
    from weft.observe.face import Observed

    backend = settings["backend"]
    if callable(backend):
        return Observed(original, settings, Function(backend)).callable()
    return Observed(original, settings, Native(options) if backend == "native" else None).callable()


def from_exported_program(
    program: torch.export.ExportedProgram,
    *,
    isa: str | None = None,
    target: str | None = None,
    threads: int | None = None,
    schedule: str = "",
    precision: str = "float32",
    level: int = 3,
) -> Callable[..., Any]:
    """A callable for the calls that `program` was exported for. It uses the present values of the
    program's weights.

    Other calls run `program.module()`, whose checks say what is wrong with them. The options are
    those of `compile`.
    """
    if not isinstance(program, torch.export.ExportedProgram):
        raise TypeError(f"expected an ExportedProgram, found {type(program).__qualname__}")
    options = options_of(isa, target, threads, schedule, precision, level=level)
    return Compiled(program.module(), Given(program), options, {}).callable()


def _passes(given: Iterable[Any]) -> tuple[Any, ...]:
    """The passes as a tuple. Raises: TypeError for an object that is not a pass."""
    given = tuple(given)
    if given:
        from weft.ir.passes import as_pass

        given = tuple(map(as_pass, given))
    return given


def options_of(
    isa: str | None = None,
    target: str | None = None,
    threads: int | None = None,
    schedule: str = "",
    precision: str = "float32",
    passes: tuple[Any, ...] = (),
    level: int = 3,
    memory_budget: float | None = None,
    records: str | os.PathLike[str] | None = None,
    without: Iterable[str] = (),
) -> Options:
    """The options of a compilation, from the arguments of `compile`. Raises: errors.ConfigError;
    tune.RecordsError."""
    if target is not None:
        if isa is not None:
            raise errors.ConfigError("expected isa or target, found both")
        isa = isa_of(target)
    isa = "native" if isa is None else isa
    if isa not in ("native", "avx2", "avx512", "amx"):
        raise errors.ConfigError(f"expected isa native, avx2, avx512 or amx, found {isa!r}")
    if threads is not None and threads < 1:
        raise errors.ConfigError(f"expected threads of at least 1, found {threads}")
    if precision not in ("float32", "bf16"):
        raise errors.ConfigError(f"expected precision float32 or bf16, found {precision!r}")
    if level not in range(4) or isinstance(level, bool):
        raise errors.ConfigError(f"expected level 0, 1, 2 or 3, found {level!r}")
    if memory_budget is not None and not 0 <= memory_budget <= 1:
        raise errors.ConfigError(f"expected memory_budget from 0 to 1, found {memory_budget}")
    threads = most_threads() if threads is None else threads
    budget = -1.0 if memory_budget is None else float(memory_budget)
    return Options(
        isa,
        threads,
        schedule,
        precision,
        memory_budget=budget,
        passes=_graph_passes(passes),
        level=level,
        without=_left_out(without),
        records=_measured_schedules(records),
    )


def _left_out(without: Iterable[str]) -> str:
    """The names of the passes to leave out, as one text. Raises: errors.ConfigError for a pass that
    cannot be left out."""
    names = sorted(set(without))
    if names:
        known = optional_passes()
        if others := [name for name in names if name not in known]:
            raise errors.ConfigError(
                f"expected passes to be left out of: {', '.join(known)}; found {others[0]!r}"
            )
    return ",".join(names)


def _graph_passes(passes: tuple[Any, ...]) -> GraphPasses | None:
    if not passes:
        return None
    from weft.ir.changing import UserPasses

    return UserPasses(passes)


def _measured_schedules(records: str | os.PathLike[str] | None) -> MeasuredSchedules | None:
    if records is None:
        return None
    from weft.tune.applying import RecordedSchedules

    return RecordedSchedules(os.fspath(records))


def report(compiled: Any, file: Any = None) -> None:
    """Prints what has been compiled, how fast it runs, and which calls PyTorch ran and why.

    compiled: what weft.compile returned. file: where to, by default standard output.
    Raises: TypeError for anything else.
    """
    _face(compiled).report(file)


def stats(compiled: Any) -> dict[str, Any]:
    """Counts, times and reasons so far, by name: numbers of calls (`hits`, `misses`) and of
    programs (`graphs`), seconds (`compile_seconds` and others), and reasons (`breaks`,
    `specialized`); `Compiled.stats` lists them.

    compiled: what weft.compile returned.
    Raises: TypeError for anything else.
    """
    return _face(compiled).stats()


def guards(compiled: Any) -> list[str]:
    """What the latest program assumes, in the user's terms: `self.layers[2].p == 0.1`. Raises:
    errors.Error, if there is no program."""
    found: list[str] = _face(compiled).guards()
    return found


def log(compiled: Any) -> list[str]:
    """The operations of the latest program that was observed, each with the user's line. Raises:
    errors.Error, if there is none."""
    face = _face(compiled)
    if not hasattr(face, "log"):
        raise errors.Error("its calls are traced: it has graph() and ir()")
    found: list[str] = face.log()
    return found


def why_miss(compiled: Any, *args: Any, **kwargs: Any) -> str | None:
    """The assumption of the latest program that this call does not fulfil; None if it fulfils all.
    Raises: errors.Error, if there is no program."""
    found: str | None = _face(compiled).why_miss(*args, **kwargs)
    return found


def profile(compiled: Any, *args: Any, repeats: int = 20, **kwargs: Any) -> Profile:
    """Times every kernel of the program for these arguments, in seconds of a call, and says how
    much of the machine's peak each kernel reaches. Print the result, or read its fields.

    repeats: the calls that are timed, after one that is not; each of them writes what a call
    writes.
    Raises: errors.Error, if PyTorch has to run the call or `compiled` is observed;
    errors.ConfigError, if `repeats` is less than 1.
    """
    return _traced(compiled).profile(*args, repeats=repeats, **kwargs)


def text_of_ir(compiled: Any, stage: str = "graph", role: str = "forward") -> str:
    """The IR of the latest program at a stage (`graph` … `llvm`), as text. A program that trains
    also has the stages `joint` and `partitioned`; with role="backward" the later stages are its
    backward's.

    Raises: errors.Error, if nothing has been compiled, there is no backward, or `compiled` is
    observed; errors.CompileError for an unknown stage.
    """
    return _traced(compiled).ir(stage, role)


def graph(compiled: Any, part: str = "forward") -> str:
    """The graph of the latest program, as text.

    part: for a program that trains "joint", which includes its gradients, or one of the halves that
    it was cut into, "forward" and "backward"; for other programs only "forward".
    Raises: errors.Error, if nothing has been compiled, there are no gradients, or `compiled` is
    observed; errors.ConfigError for an unknown part.
    """
    return _traced(compiled).graph(part)


def visualize(compiled: Any, path: Any, stage: str = "graph", **options: Any) -> None:
    """Draws the latest program to the file `path`, an .svg, .png or .dot.

    stage: `graph`, `optimized`, `kernels` or `linalg`; for a program that trains also `joint` and
    `partitioned`, in two colours. options: those of `weft.ir.pictures.visualize`, and `role`.
    Raises: errors.Error, if nothing has been compiled, `compiled` is observed, or Graphviz is
    missing.
    """
    _traced(compiled).visualize(path, stage, **options)


def artifact_path(compiled: Any) -> Path:
    """The file of the latest program's artifact, in the cache.

    Raises: errors.Error, if nothing has been compiled or `compiled` is observed.
    """
    return _traced(compiled).artifact_path


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Makes one call, and says whether a program answers such calls, or why PyTorch runs them.

    function: a function or module, or what weft.compile returned for one, which then gets the
    program. The call has its usual effects. Print the result, or read its fields.
    """
    found = callable_of(function)
    face = _traced(compile(function) if found is None else function)
    return face.explain(*args, **kwargs)


def schedules(compiled: Any) -> list[ChosenSchedule]:
    """What the compiler has chosen for each contraction of the latest program, over which other
    schedules, and the seconds of a call that it predicts for each. Print the entries, or read their
    fields. The compiler chooses again for this; compiled programs keep nothing of it.

    compiled: what weft.compile returned.
    Raises: TypeError for anything else; errors.Error, if no program was traced.
    """
    return _traced(compiled).schedules()


def reset(compiled: Any = None) -> None:
    """Forgets the programs of `compiled`, by default of everything that was compiled in this
    process. Files in the cache stay (`weft.cache.clear`). Raises: TypeError for anything that
    weft.compile has not made."""
    if compiled is None:
        reset_all()
    else:
        _face(compiled).reset()


def _traced(compiled: Any) -> Compiled:
    """The object behind a compiled callable. Raises: errors.Error, for what has no IR, so that no
    attribute of the user's own is found."""
    face = _face(compiled)
    if not isinstance(face, Compiled):
        raise errors.Error("its calls are observed: it has stats(), log(), guards() and why_miss()")
    return face


def _face(compiled: Any) -> Face:
    found = callable_of(compiled)
    if found is None:
        raise TypeError(f"expected what weft.compile returned, found {type(compiled).__qualname__}")
    face: Face = found.face
    return face

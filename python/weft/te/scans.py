# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`te.scan`: tensors that are computed step by step, each step from the steps before it.

The first steps of a result are those of `init`. Later steps are the update's, which reads earlier
steps by a placeholder, the state. In the generated loops the state is the result's own memory, and
what depends on the state is computed inside the result's loop over the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.te.errors import ScheduleError, TEError
from weft.te.expressions import Axis, Expr, Load, Select, compared, walk
from weft.te.linear import Linear, linear
from weft.te.sizes import alike, bounded
from weft.te.tags import tagged
from weft.te.tensors import Operation, Tensor, check_body, checked_name, in_order, numbered


@dataclass(eq=False)
class Scan:
    """A scan, with one init, update, state and result for each state. begin: the number of steps of
    `init`."""

    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state: tuple[Tensor, ...]
    begin: int
    results: tuple[Tensor, ...] = field(default=())

    @property
    def axis(self) -> Axis:
        """The loop over the steps."""
        return self.results[0].op.axis[0]

    @property
    def members(self) -> list[Tensor]:
        """The tensors that the updates depend on and that depend on a state, producers first."""
        found: list[Tensor] = []
        for tensor in in_order(self.update):
            if any(each in self.state or each in found for each in tensor.op.input_tensors):
                found.append(tensor)
        return found

    def is_pointwise(self, dim: int) -> bool:
        """Whether an element depends only on earlier ones with the same index in that dimension."""
        tied = {*self.state, *self.members}
        for tensor in (*self.members, *self.results):
            for load in _loads(tensor):
                if load.tensor in tied and (
                    tensor.ndim != self.results[0].ndim
                    or load.tensor.ndim != tensor.ndim
                    or load.indices[dim] is not tensor.op.axis[dim]
                ):
                    return False
        return True


def scan(
    init: Any,
    update: Any,
    state_placeholder: Any,
    inputs: Any = None,
    name: str | None = None,
    tag: str = "",
    attrs: Any = None,
) -> Any:
    """The tensor whose first steps, along dimension 0, are those of `init`, and whose other steps
    are computed by `update`, which reads earlier steps as elements of the placeholder. Lists of
    tensors are computed together. inputs: not needed; accepted as by TVM. Returns a tensor, or a
    list of tensors.

    Raises: TEError for shapes and dtypes that do not fit together, and for an update that reads
    steps which are not computed yet.
    """
    given = [_listed(each) for each in (init, update, state_placeholder)]
    name = checked_name(name or numbered("scan"))
    if len({len(each) for each in given}) > 1 or not given[0]:
        counts = ", ".join(str(len(each)) for each in given)
        raise TEError(f"{name}: expected as many of init, update and state, found {counts}")
    for each in (tensor for several in given for tensor in several):
        if not isinstance(each, Tensor):
            raise TEError(f"{name}: expected tensors, found {each!r}")
    begin = _checked_shapes(name, *given)
    made = Scan(tuple(given[0]), tuple(given[1]), tuple(given[2]), begin)
    check_steps(name, made)
    _check_reads(name, made)
    count = len(made.state)
    names = [name if count == 1 else f"{name}.v{number}" for number in range(count)]
    results = with_results(made, names, made.update)
    for each in results:
        each.op.tag, each.op.attrs = tagged(tag, name), dict(attrs or {})
    return results[0] if count == 1 else list(results)


def with_results(made: Scan, names: Sequence[str], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Makes the scan's results. like: the tensors from which the names of axes are taken."""
    results = []
    for name, init, update, known in zip(names, made.init, made.update, like):
        own = tuple(
            Axis(size, axis.name, "spatial") for size, axis in zip(update.shape, known.op.axis)
        )
        body = Select(compared("lt", own[0], made.begin), Load(init, own), Load(update, own))
        op = Operation(name, own, body)
        op.scan = made
        results.append(Tensor(update.shape, update.dtype, op))
    made.results = tuple(results)
    return made.results


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _checked_shapes(
    name: str, init: list[Tensor], update: list[Tensor], state: list[Tensor]
) -> int:
    begins = []
    for first, later, read in zip(init, update, state):
        if read.op.body is not None:
            raise TEError(f"{name}: expected a placeholder as state, found {read.name}")
        if not read.ndim or not alike(later.shape, read.shape):
            raise TEError(
                f"{name}: expected {later.name} of the state's shape {list(read.shape)}, with the "
                f"steps as its dim 0, found {list(later.shape)}"
            )
        if first.ndim != read.ndim or not alike(first.shape[1:], read.shape[1:]):
            raise TEError(
                f"{name}: expected {first.name} with the first steps of the shape "
                f"{list(read.shape)}, found {list(first.shape)}"
            )
        if len({each.dtype for each in (first, later, read)}) > 1:
            raise TEError(
                f"{name}: expected one dtype, found {first.dtype} of {first.name}, {later.dtype} "
                f"of {later.name} and {read.dtype} of {read.name}"
            )
        begins.append(first.shape[0])
    if any(isinstance(each, Expr) for each in begins) or len(set(begins)) > 1 or begins[0] < 1:
        raise TEError(
            f"{name}: expected a number of first steps that all have, found "
            f"{', '.join(map(str, begins))}"
        )
    for each in state:
        if not alike(each.shape[:1], state[0].shape[:1]):
            raise TEError(f"{name}: expected as many steps of all, found {each.shape[0]}")
    return int(begins[0])


def check_steps(name: str, made: Scan) -> None:
    """Raises: TEError if there are fewer steps than `init` has."""
    steps = made.state[0].shape[0]
    if not isinstance(steps, Expr) and steps < made.begin:
        raise TEError(f"{name}: expected at least the {made.begin} first steps, found {steps}")


def _check_reads(name: str, made: Scan) -> None:
    """Raises: TEError if a step is read before it is computed."""
    members = made.members
    for tensor in in_order(made.init):
        for each in made.state:
            if each in tensor.op.input_tensors:
                raise TEError(f"{name}: {tensor.name} is a first step and reads {each.name}")
    for tensor in members:
        for load in _loads(tensor):
            if load.tensor not in made.state and load.tensor not in members:
                continue
            back = steps_back(tensor, load)
            if load.tensor in made.state and (back is None or not 1 <= back <= made.begin):
                raise TEError(
                    f"{name}: `{load}` of {tensor.name} reads a step that may not be computed yet: "
                    f"expected {tensor.op.axis[0].name if tensor.ndim else 'the step'} - 1"
                    + (f" to - {made.begin}" if made.begin > 1 else "")
                    + " as its first index"
                )
            if load.tensor in members and back != 0:
                raise TEError(
                    f"{name}: `{load}` of {tensor.name}: expected the same step of "
                    f"{load.tensor.name}, which is kept for one step only"
                )


def steps_back(tensor: Tensor, load: Load) -> int | None:
    """How many steps before the tensor's own step the element is; None if that is unknown."""
    if not tensor.ndim or not load.tensor.ndim:
        return None
    form = linear(load.indices[0], {}, bounded)
    own = Linear.of(tensor.op.axis[0])
    back = own - form if form is not None else own
    return back.constant if not back.terms else None


def _loads(tensor: Tensor) -> Iterator[Load]:
    for node in walk(tensor.op.body) if tensor.op.body is not None else ():
        if isinstance(node, Load):
            yield node


def scans_of(tensors: Sequence[Tensor]) -> list[Scan]:
    found = [tensor.op.scan for tensor in tensors if tensor.op.scan is not None]
    return list(dict.fromkeys(found))


def first_steps(tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, int]:
    """For each tensor that needs it, the first index in dimension 0 that is needed: a scan computes
    some tensors only in its later steps, and others are read only by such tensors at the same step.
    tensors: in order of computation.

    Raises: TEError for a tensor outside of the scan that reads a state or a tensor of one step.
    """
    begins: dict[Tensor, int] = {}
    for made in scans_of(tensors):
        inside = {*made.members, *made.results}
        for tensor in tensors:
            for each in tensor.op.input_tensors:
                hidden = each in made.state or each in made.members
                if hidden and tensor not in inside:
                    raise TEError(
                        f"{tensor.name} reads {each.name}, which only the steps of "
                        f"{made.results[0].name} see: read {made.results[0].name}"
                    )
        begins.update(dict.fromkeys(made.members, made.begin))
        readers = {
            tensor: [each for each in tensors if tensor in each.op.input_tensors]
            for tensor in tensors
        }
        for tensor in reversed(tensors):
            if tensor.op.body is None or tensor in inside or not readers[tensor]:
                continue
            later = all(_reads_later(made, reader, tensor, begins) for reader in readers[tensor])
            if later and not any(tensor is each for each in outputs):
                begins[tensor] = made.begin
    return begins


def _reads_later(made: Scan, reader: Tensor, tensor: Tensor, begins: dict[Tensor, int]) -> bool:
    if reader.op.scan is made:
        return tensor in made.update and tensor not in made.init
    loads = [load for load in _loads(reader) if load.tensor is tensor]
    return begins.get(reader) == made.begin and all(steps_back(reader, load) == 0 for load in loads)


def check_bodies(outputs: Sequence[Tensor]) -> dict[Tensor, int]:
    """Raises: TEError for an index that is out of bounds. Returns `first_steps`."""
    tensors = in_order(outputs)
    begins = first_steps(tensors, outputs)
    for tensor in tensors:
        if tensor.op.body is not None:
            check_body(tensor.name, tensor.op.axis, tensor.op.body, begins.get(tensor, 0))
    return begins


def check_loops(made: Scan, label: str, index: dict[Axis, Linear], loops: Sequence[Axis]) -> None:
    """Checks the loops of a scan. index: the first result's axes in terms of its loops, which are
    given outermost first.

    Raises: ScheduleError for loops in which a step would be read before it is computed.
    """
    result = made.results[0]
    outer = loops[: next(n for n, each in enumerate(loops) if each is made.axis)]
    for axis in outer:
        moved = [dim for dim, each in enumerate(result.op.axis) if axis in index[each].axes()]
        if len(made.results) > 1 or not all(made.is_pointwise(dim) for dim in moved):
            raise ScheduleError(
                axis.name,
                f"it runs outside of {made.axis.name}, the steps of {label}, which read what all "
                "iterations of it have computed",
                f"reorder it inside of {made.axis.name}",
            )

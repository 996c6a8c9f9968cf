# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls within torch.func's transforms. grad, vjp and what is made of them run the programs of
calls that record gradients (gradients/transformed.py); vmap and jvp are run by PyTorch.

A program is found, or made and compared, by a call outside of the transforms. Its tensors stand for
those that the transforms have wrapped, including the module's parameters under functional_call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from weft import _core, config
from weft.capture.signature import Declined, tensors_of
from weft.compiled import background
from weft.compiled.requests import Found, Request
from weft.compiled.specialize import Specialized
from weft.frontend.pairs import shown_real
from weft.gradients.transformed import Joined, innermost, only_gradients, requires_anywhere

if TYPE_CHECKING:
    from weft.capture.reachability import References
    from weft.compiled.compiled import Compiled

_OTHER = "it is called within a transform of torch.func that is not grad or vjp"


@dataclass
class _Ran:
    """results: of the program; laid_out: as the caller is to see them. originals: of the program's
    inputs, as wrapped by the transforms."""

    specialized: Specialized
    results: list[torch.Tensor]
    laid_out: list[torch.Tensor]
    originals: list[torch.Tensor]


def call(compiled: Compiled, args: tuple, kwargs: dict[str, Any]) -> tuple[Any] | Declined | None:
    """The program's result; the reason why there is none; or None, if PyTorch is to run the call
    and the user knows."""
    references = compiled.programs.capture.references()
    entries = list(_entries(references))
    tensors = [each for each in pytree.tree_leaves((args, kwargs)) if _is_tensor(each)]
    tensors += [named[name] for named, name in entries]
    if not only_gradients(tensors):
        return Declined(_OTHER)
    if any(map(is_functorch_wrapped_tensor, references.tensors)):
        return Declined("a tensor of the function's closure or globals is wrapped by a transform")
    if not torch.is_grad_enabled():
        return Declined("it is called within a transform of torch.func, and records no gradients")
    originals: dict[int, torch.Tensor] = {}
    with temporarily_clear_interpreter_stack(), _swapped(entries, originals):
        if _core.interposition_active() or config.verify == "always":
            return Declined("a torch mode or torch.jit.trace is active")
        call_outside = pytree.tree_map_only(
            torch.Tensor, lambda each: _stand_in(each, originals), (args, kwargs)
        )
        ran = _run(compiled, *call_outside, originals)
    if not isinstance(ran, _Ran):
        return ran
    return (_joined(ran, tensors_of(args, kwargs)),)


def _run(
    compiled: Compiled, args: tuple, kwargs: dict[str, Any], originals: dict[int, torch.Tensor]
) -> _Ran | Declined | None:
    """Runs a program on stand-ins for the tensors. The first call of a kind has no program yet."""
    programs = compiled.programs
    programs.backward_is_wanted()
    specialized = programs.find_trained(args, kwargs)
    if specialized is None:
        programs.totals.misses += 1
        found = _found(compiled, args, kwargs)
        if found is None or isinstance(found, Declined):
            return found
        specialized = found.specialized
        if specialized.reason is not None:
            return Declined(specialized.reason, specialized.location)
        if (why := _why_not(specialized)) is not None:
            return Declined(why)
        if not specialized.verified:
            compiled._first_call(found, args, kwargs)
            return None
    if (why := _why_not(specialized)) is not None:
        return Declined(why)
    with torch.no_grad():
        ran, reason, results, laid_out = specialized.core.evaluate(args, kwargs)
    if not ran:
        return Declined(reason or "its program does not take the call")
    programs.totals.hits += 1
    programs.has_used(specialized)
    slots = specialized.tensors_of(args, kwargs)
    sources = [slots[s] if isinstance(s, int) else s for s in specialized.training.sources]
    own = [shown_real(originals.get(id(each), each)) for each in sources]
    return _Ran(specialized, list(results), list(laid_out), own)


def _found(compiled: Compiled, args: tuple, kwargs: dict[str, Any]) -> Found | Declined | None:
    """The program of a call for exactly its sizes, existing or made now; None while it is compiled
    in the background."""
    if background.is_pending(compiled.programs, args, kwargs):
        return None
    found = compiled._find(args, kwargs, for_sizes=False)
    if isinstance(found, Request):
        background.submit(compiled, found)
        return None
    assert not isinstance(found, tuple)  # that would be a program for a range
    if isinstance(found, Found) and found.specialized.transient:
        return None
    return found


def _why_not(specialized: Specialized) -> str | None:
    """Why a program stands for no call within a transform, or None."""
    if specialized.training is None or specialized.training.backward is None:
        return "it is called within a transform of torch.func, and nothing requires gradients"
    if specialized.training.writes:
        return "it writes to a tensor within a transform of torch.func"
    if specialized.draws:
        return "it draws random numbers within a transform of torch.func"
    return None


def _joined(ran: _Ran, slots: list[torch.Tensor]) -> Any:
    """The call's result. slots: the tensors among its arguments."""
    training = ran.specialized.training
    places = training.differentiable()

    def reached(given: Any) -> list[bool]:
        return training.reached_from([number in given for number in training.outputs])

    joined = Joined(
        training.graph,
        training.wrt,
        training.count,
        training.reads,
        training.backward,
        tuple(places),
        reached,
    )
    shown = [ran.laid_out[number] for number in places]
    results = list(ran.laid_out)
    for number, each in zip(places, joined.apply(ran.originals, ran.results, shown), strict=True):
        results[number] = each
    return training.value(results, slots)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _entries(references: References) -> Iterator[tuple[dict[str, Any], str]]:
    """The dicts that hold tensors of modules, and the tensors' names in them."""
    for root in references.modules:
        for module in root.modules():
            for named in (module._parameters, module._buffers):
                yield from ((named, name) for name, each in named.items() if each is not None)


@contextlib.contextmanager
def _swapped(
    entries: list[tuple[dict[str, Any], str]], originals: dict[int, torch.Tensor]
) -> Iterator[None]:
    """Within this context, stand-ins replace the tensors that transforms have wrapped."""
    held = [(named, name, named[name]) for named, name in entries]
    wrapped = [entry for entry in held if is_functorch_wrapped_tensor(entry[2])]
    known: dict[int, torch.Tensor] = {}
    try:
        for named, name, tensor in wrapped:
            if id(tensor) not in known:
                known[id(tensor)] = _stand_in(tensor, originals)
            named[name] = known[id(tensor)]
        yield
    finally:
        for named, name, tensor in wrapped:
            named[name] = tensor


def _stand_in(tensor: torch.Tensor, originals: dict[int, torch.Tensor]) -> torch.Tensor:
    """A tensor on the same memory, outside of the transforms. It requires gradients if these are
    wanted."""
    found = innermost(tensor).detach().requires_grad_(requires_anywhere(tensor))
    originals[id(found)] = tensor
    return found

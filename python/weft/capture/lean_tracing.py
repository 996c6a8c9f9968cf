# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's tracing without four things that cost a third of it and that nobody reads here: the
source text of some eighty frames for each op and for the mode of fake tensors, Python code of the
graph after each of its passes, and messages for a folder of traces that nobody named. For a process
that traces and ends: it replaces what is torch's own."""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
import types
from collections.abc import Iterator

import torch
from torch._logging._internal import LazyTraceHandler, trace_log
from torch._subclasses import fake_tensor
from torch.fx._lazy_graph_module import _use_lazy_graph_module


@contextlib.contextmanager
def lean_tracing() -> Iterator[None]:
    """Within it nodes have the stack traces that torch gives them, and graphs have their code as
    soon as it is asked for."""
    captured, stacks = torch.fx.proxy.CapturedTraceback, fake_tensor.traceback
    handlers = trace_log.handlers[:]
    torch.fx.proxy.CapturedTraceback = _Frames
    fake_tensor.traceback = _NoStacks
    # Without a folder it leaves the log as well, at the first message, written until then.
    trace_log.handlers[:] = [each for each in handlers if not _writes_nothing(each)]
    try:
        with _use_lazy_graph_module(True):
            yield
    finally:
        torch.fx.proxy.CapturedTraceback = captured
        fake_tensor.traceback = stacks
        trace_log.handlers[:] = handlers


def _writes_nothing(handler: logging.Handler) -> bool:
    return isinstance(handler, LazyTraceHandler) and handler.root_dir is None


class _NoStacks:
    """In place of the module `traceback` where a mode of fake tensors notes who made it, for the
    message about two modes that meet."""

    extract_stack = traceback.StackSummary
    format_list = staticmethod(traceback.format_list)


class _Frames:
    """The frames above its maker, in place of torch's `CapturedTraceback`, which reads the lines of
    all of them. Most are filtered out by their names alone; a line is read when it is formatted."""

    def __init__(self, innermost: types.FrameType) -> None:
        self._innermost = innermost

    @classmethod
    def extract(cls) -> _Frames:
        return cls(sys._getframe(1))

    def summary(self) -> traceback.StackSummary:
        frames = traceback.StackSummary()
        frame: types.FrameType | None = self._innermost
        while frame is not None:
            frames.append(_summary(frame.f_code, frame.f_lineno))
            frame = frame.f_back
        frames.reverse()
        return frames


# By address and line; the code is held, and hashing it would read all of it.
_summaries: dict[tuple[int, int], tuple[types.CodeType, traceback.FrameSummary]] = {}


def _summary(code: types.CodeType, line: int) -> traceback.FrameSummary:
    """The summary of a line, made once: those of torch's own frames come back with every op."""
    key = (id(code), line)
    found = _summaries.get(key)
    if found is None:
        summary = traceback.FrameSummary(code.co_filename, line, code.co_name, lookup_line=False)
        found = _summaries[key] = (code, summary)
    return found[1]

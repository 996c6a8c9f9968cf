# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The systems that can be measured, by name: how each makes a call of a model.

To add one, add a function from a `Case` to `Prepared` to `SYSTEMS`; packages that need not
be installed are imported inside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from examples.measure import float_leaves, in_float64
from examples.models import Case


@dataclass
class Prepared:
    """call: what is timed. arrays: the floating-point outputs in what it returned.
    settings: what a reader has to know. report: tells more, for `--report`."""

    call: Callable[[], Any]
    settings: str
    arrays: Callable[[Any], list[np.ndarray]] = field(
        default=lambda result: [leaf.numpy() for leaf in float_leaves(result)]
    )
    report: Callable[[Any], None] | None = None


def float64(case: Case, threads: int) -> Prepared:
    """What the errors are measured against."""
    return Prepared(lambda: in_float64(case.module, case.args), f"torch {torch.__version__}")


def eager(case: Case, threads: int) -> Prepared:
    return Prepared(lambda: case.module(*case.args), f"torch {torch.__version__}, inference_mode")


def inductor(case: Case, threads: int) -> Prepared:
    return _inductor(case, "default mode")


def inductor_freezing(case: Case, threads: int) -> Prepared:
    return _inductor(case, "freezing", {"freezing": True})


def inductor_autotune(case: Case, threads: int) -> Prepared:
    return _inductor(case, "freezing, max-autotune", {"freezing": True, "max_autotune": True})


def _inductor(case: Case, mode: str, options: dict[str, Any] | None = None) -> Prepared:
    compiled = torch.compile(case.module, fullgraph=True, options=options)
    settings = f"torch {torch.__version__}, fullgraph, {mode}, no_grad"
    return Prepared(lambda: compiled(*case.args), settings)


def weft(case: Case, threads: int) -> Prepared:
    """Raises: RuntimeError, if PyTorch has to run the call."""
    import weft

    weft.set_num_threads(threads)
    compiled = weft.compile(case.module)
    compiled(*case.args)
    if compiled.eager_reasons:
        raise RuntimeError(f"run by PyTorch: {', '.join(compiled.eager_reasons)}")
    settings = f"weft {weft.__version__}, inference_mode"
    return Prepared(lambda: compiled(*case.args), settings, report=compiled.report)


def onnxruntime(case: Case, threads: int) -> Prepared:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    with tempfile.TemporaryDirectory() as folder:
        session = onnxruntime.InferenceSession(
            _to_onnx(case, folder), options, providers=["CPUExecutionProvider"]
        )
    names = [each.name for each in session.get_inputs()]
    feed = dict(zip(names, (arg.numpy() for arg in case.args), strict=True))
    settings = f"onnxruntime {onnxruntime.__version__}, CPU provider, all optimisations"
    return Prepared(lambda: session.run(None, feed), settings, arrays=lambda result: result)


def openvino(case: Case, threads: int) -> Prepared:
    import openvino

    core = openvino.Core()
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    with tempfile.TemporaryDirectory() as folder:
        compiled = core.compile_model(_to_onnx(case, folder), "CPU", options)
    request = compiled.create_infer_request()
    feed = [arg.numpy() for arg in case.args]
    return Prepared(
        lambda: request.infer(feed, share_inputs=True, share_outputs=True),
        f"openvino {openvino.__version__}, CPU, latency hint, f32",
        arrays=lambda result: [np.array(value) for value in result.values()],
    )


SYSTEMS: dict[str, Callable[[Case, int], Prepared]] = {
    "eager": eager,
    "inductor": inductor,
    "inductor-freezing": inductor_freezing,
    "inductor-autotune": inductor_autotune,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "weft": weft,
}
# These run under inference_mode, which is as fast as PyTorch gets. The others trace or count
# with PyTorch, which it hinders, and run under no_grad.
IN_INFERENCE_MODE = ("eager", "weft")


def _to_onnx(case: Case, folder: str) -> Path:
    path = Path(folder) / "model.onnx"
    torch.onnx.export(case.module, case.args, path, dynamo=True, verbose=False)
    return path

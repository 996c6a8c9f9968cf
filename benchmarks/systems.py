# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The systems that the benchmarks measure, by name: those of `weft bench` and more.

To add one, add a function from a `Case` to `Prepared` to `SYSTEMS`; packages that need not
be installed are imported inside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from weft.benchmark import systems
from weft.benchmark.case import Case
from weft.benchmark.systems import Prepared


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


# In the order of the tables' columns.
SYSTEMS: dict[str, Callable[[Case, int], Prepared]] = {
    **{name: prepare for name, prepare in systems.SYSTEMS.items() if not name.startswith("weft")},
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "weft": systems.weft,
    "weft-bf16": systems.weft_bf16,
}


def _to_onnx(case: Case, folder: str) -> Path:
    path = Path(folder) / "model.onnx"
    torch.onnx.export(case.module, case.args, path, dynamo=True, verbose=False)
    return path

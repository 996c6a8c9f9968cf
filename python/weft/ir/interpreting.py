# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What modules of the stages `graph`, `optimized` and `kernels` compute, op by op in torch.

Layouts change no meaning, so that values have their logical shapes here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from weft import errors
from weft.frontend.interpreter import EVALUATE, repeat_step
from weft.ir.elements import from_elements
from weft.ir.emission import DEFINITIONS
from weft.ir.functions import Function
from weft.ir.loop_running import compiled
from weft.ir.module import Module
from weft.ir.values import Block, Operation

Observer = Callable[[Operation, Sequence[torch.Tensor]], None]


def interpret(
    module: Module,
    inputs: Sequence[torch.Tensor],
    *,
    function: str = "main",
    double: bool = False,
    observe: Observer | None = None,
) -> list[torch.Tensor]:
    """The results of a function.

    double: floats of every width are float64, which inputs may be already. observe: is told of
    each op's results.
    Raises: errors.IRError for inputs that do not fit and for ops that have no such meaning.
    """
    run = _Run(module, double, observe)
    with torch.no_grad():
        return run.function(module[function], run.checked(module[function], inputs))


class _Run:
    def __init__(self, module: Module, double: bool, observe: Observer | None) -> None:
        self.module = module
        self.double = double
        self.observe = observe
        self.functions = {function.name: function for function in module.functions}
        self.loops: dict[str, Any] = {}

    def dtype(self, dtype: torch.dtype) -> torch.dtype:
        return torch.float64 if self.double and dtype.is_floating_point else dtype

    def checked(self, function: Function, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The arguments of an entry: what it is given, and what `bind` prepares of that."""
        params = function.params
        bind = self.functions.get("bind") if function.name == "main" else None
        prepared = len(bind.result_types) if bind is not None else 0
        if len(inputs) != len(params) - prepared:
            names = [value.name or f"arg{value.index}" for value in params]
            raise errors.IRError(
                f"expected {len(params) - prepared} inputs ({', '.join(names)}), "
                f"found {len(inputs)}"
            )
        given = [self._fit(value, tensor) for value, tensor in zip(params, inputs)]
        if bind is None:
            return given
        by_name = {value.name: tensor for value, tensor in zip(params, given)}
        return given + self.function(bind, [by_name[value.name] for value in bind.params])

    def _fit(self, value: Any, tensor: torch.Tensor) -> torch.Tensor:
        type_ = value.type
        dtypes = (type_.torch_dtype, self.dtype(type_.torch_dtype))
        if tuple(tensor.shape) != type_.shape or tensor.dtype not in dtypes:
            raise errors.IRError(
                f"input {value.name or value.index}: expected {type_}, found "
                f"{list(tensor.shape)} of {tensor.dtype}"
            )
        return tensor.detach().to(self.dtype(tensor.dtype))

    def function(self, function: Function, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return self._block(function.body, inputs)

    def _block(self, body: Block, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        values = {value._ref: tensor for value, tensor in zip(body.params, inputs, strict=True)}
        session = self.module._session
        for op in body:
            operands = [values[ref] for ref in session.operands(op._handle)]
            if op.full_name in ("func.return", "weft.yield"):
                return operands
            results = self._results(op, operands)
            if self.observe is not None:
                self.observe(op, results)
            values.update(zip(session.results(op._handle), results, strict=True))
        raise errors.IRError("expected a block that ends with a return or a yield")

    def _results(self, op: Operation, operands: list[torch.Tensor]) -> list[torch.Tensor]:
        if op.full_name == "func.call":
            callee = self.functions[op.attributes["callee"]]
            return self._loops(callee, operands) or self.function(callee, operands)
        if op.full_name in ("weft.scan", "weft.loop"):
            is_scan = op.full_name == "weft.scan"
            body = op.blocks[0] if is_scan else self.functions[op.attributes["step"]].body
            attributes = _written(op.full_name, dict(op.module._session.attributes(op._handle)))
            rest = None if is_scan else op.attributes.get("rest")
            one = partial(self._block, self.functions[rest].body) if rest else None
            return repeat_step(partial(self._block, body), attributes, operands, one)
        results = _evaluate(op, operands, [self._type(value) for value in op.results])
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        results = [each.to(self.dtype(each.dtype)) for each in results]
        for value, result in zip(op.results, results, strict=True):
            if tuple(result.shape) != value.type.shape:
                raise errors.IRError(
                    f"{op.name}: its definition gives {list(result.shape)}, its type says "
                    f"{value.type}"
                )
        return results

    def _loops(self, callee: Function, operands: list[torch.Tensor]) -> list[torch.Tensor] | None:
        """The results of a function of loops, which is compiled; None of one of the graph."""
        if callee.name not in self.loops:
            self.loops[callee.name] = compiled(callee) if callee.is_loops else None
        run = self.loops[callee.name]
        if run is None:
            return None
        return [each.to(self.dtype(each.dtype)) for each in run(operands)]

    def _type(self, value: Any) -> tuple[torch.dtype, tuple[int, ...]]:
        return self.dtype(value.type.torch_dtype), value.type.shape


def _evaluate(op: Operation, operands: list[torch.Tensor], types: list[Any]) -> Any:
    name = op.full_name
    raw = dict(op.module._session.attributes(op._handle))
    if name == "weft.constant":
        return from_elements(raw["value"]).to(types[0][0])
    if (own := _ONLY_PASSES_MAKE.get(name)) is not None:
        return own(raw, operands, types)
    if name not in EVALUATE:
        raise errors.IRError(f"expected an op of the graph, found {name}")
    return EVALUATE[name]({"op": name}, _written(name, raw), operands, types)


def _written(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    """Attributes as the JSON graph has them, of which the interpreter is."""
    attributes = dict(raw)
    for attribute in DEFINITIONS[name].attributes:
        if attribute.cases and attribute.name in raw:
            case = f"#weft.{attribute.kind}<{raw[attribute.name]}>"
            attributes[attribute.name] = {"mlir": case}
    if (sizes := raw.get("operandSegmentSizes")) is not None:
        attributes["operandSegmentSizes"] = {"mlir": f"array<i32: {', '.join(map(str, sizes))}>"}
    return attributes


def _relayout(attributes: dict[str, Any], xs: list[torch.Tensor], types: Any) -> torch.Tensor:
    return xs[0]


def _multi_dot(attributes: dict[str, Any], xs: list[torch.Tensor], types: Any) -> Any:
    lhs, *rest = xs
    dims = (attributes["lhsContract"], attributes["rhsContract"])
    return [torch.tensordot(lhs, rhs, dims).to(lhs.dtype) for rhs in rest]


def _winograd_conv(attributes: dict[str, Any], xs: list[torch.Tensor], types: Any) -> torch.Tensor:
    x, _, weight = xs
    return torch.nn.functional.conv2d(x, weight)


_ONLY_PASSES_MAKE: dict[str, Callable[..., Any]] = {
    "weft.relayout": _relayout,
    "weft.multi_dot": _multi_dot,
    "weft.winograd_conv": _winograd_conv,
}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's optimizers do with a parameter and its gradient, as ops of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.pairs import REAL_OF

_DTYPES = (torch.float32, torch.float64)


@dataclass(frozen=True)
class UpdateRule:
    """The update of one parameter group. slots: the names of the state tensors that it updates."""

    slots: tuple[str, ...]
    maximize: bool

    def numbers(self, group: dict[str, Any], step: float) -> list[float]:
        """The numbers that an update with these hyperparameters reads. `step` counts from 1."""
        raise NotImplementedError

    def emit(
        self, b: Builder, param: Value, gradient: Value, state: list[Value], numbers: list[Value]
    ) -> list[Value]:
        """The new parameter, then its new states. numbers: each broadcast to the parameter's
        shape."""
        raise NotImplementedError


@dataclass(frozen=True)
class SgdRule(UpdateRule):
    decays: bool
    nesterov: bool

    def numbers(self, group, step):
        momentum, dampening = group["momentum"], group["dampening"]
        return [float(group["lr"]), group["weight_decay"], momentum, 1 - dampening]

    def emit(self, b, param, gradient, state, numbers):
        rate, decay, momentum, undamped = numbers
        if self.decays:
            gradient = b.binary("add", gradient, b.binary("mul", param, decay))
        moved = gradient
        if state:
            kept = b.binary("mul", state[0], momentum)
            moved = velocity = b.binary("add", kept, b.binary("mul", gradient, undamped))
            state = [velocity]
            if self.nesterov:
                moved = b.binary("add", gradient, b.binary("mul", velocity, momentum))
        return [b.binary("sub", param, b.binary("mul", moved, rate)), *state]


@dataclass(frozen=True)
class AdamRule(UpdateRule):
    """Adam and AdamW. decoupled: whether the weight decay is AdamW's."""

    decays: bool
    decoupled: bool

    def numbers(self, group, step):
        rate, decay = group["lr"], group["weight_decay"]  # a rate that is a tensor has been rounded
        first, second = map(float, group["betas"])
        return [
            float(1 - rate * decay) if self.decoupled else decay,
            1 - first,
            second,
            1 - second,
            float(rate / (1 - first**step)),
            (1 - second**step) ** 0.5,
            group["eps"],
        ]

    def emit(self, b, param, gradient, state, numbers):
        decay, new, kept, squared, rate, correction, eps = numbers
        mean, variance, *largest = state
        if self.decays and self.decoupled:
            param = b.binary("mul", param, decay)
        elif self.decays:
            gradient = b.binary("add", gradient, b.binary("mul", param, decay))
        mean = b.binary("add", mean, b.binary("mul", new, b.binary("sub", gradient, mean)))
        square = b.binary("mul", squared, b.binary("mul", gradient, gradient))
        variance = b.binary("add", b.binary("mul", variance, kept), square)
        if largest:  # the option amsgrad
            largest = [b.binary("max", largest[0], variance)]
        root = b.unary("sqrt", largest[0] if largest else variance)
        deviation = b.binary("div", root, correction)
        ratio = b.binary("div", mean, b.binary("add", deviation, eps))
        return [b.binary("sub", param, b.binary("mul", rate, ratio)), mean, variance, *largest]


def rule_of(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> UpdateRule | str:
    """The rule of a group, or the reason why its update is not compiled."""
    kind = type(optimizer)
    if kind not in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        return f"the optimizer is a {kind.__name__}, not SGD, Adam or AdamW"
    for flag in ("capturable", "differentiable"):
        if group.get(flag):
            return f"{kind.__name__} with {flag}"
    maximize, decays = bool(group["maximize"]), group["weight_decay"] != 0
    if kind is torch.optim.SGD:
        slots = ("momentum_buffer",) if group["momentum"] != 0 else ()
        return SgdRule(slots, maximize, decays, bool(group["nesterov"]))
    decoupled = kind is torch.optim.AdamW or bool(group.get("decoupled_weight_decay"))
    slots = ("exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if group["amsgrad"] else ())
    return AdamRule(slots, maximize, decays, decoupled)


def refusal(optimizer: torch.optim.Optimizer) -> str | None:
    """The reason why no update by this optimizer is compiled, or None."""
    step = vars(optimizer).get("step")  # learning rate schedulers wrap it to count its calls
    if step is not None and not hasattr(step, "_wrapped_by_lr_sched"):
        return "the optimizer's step has been replaced"
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return "the optimizer has hooks"
    for group in optimizer.param_groups:
        if isinstance(rule := rule_of(optimizer, group), str):
            return rule
        if len({REAL_OF.get(each.dtype, each.dtype) for each in group["params"]}) > 1:
            return "parameters of one group have several dtypes"
        for param in group["params"]:
            if REAL_OF.get(param.dtype, param.dtype) not in _DTYPES:
                return f"a parameter is {param.dtype}"
            if param._backward_hooks or param._post_accumulate_grad_hooks:
                return "a parameter has hooks, which would see its gradient"
    return None


def clipped(
    b: Builder, gradients: Sequence[Value], max_norm: float | None, clip_value: float | None
) -> list[Value]:
    """The gradients, clipped as by torch.nn.utils.clip_grad_norm_, then clip_grad_value_."""
    found = list(gradients)
    if max_norm is not None:
        wide = torch.float64 if any(g.dtype == torch.float64 for g in found) else torch.float32
        squares = [
            b.convert(b.reduce("sum", b.binary("mul", g, g), list(range(g.rank))), wide)
            for g in found
        ]
        norm = b.scalar("add", b.unary("sqrt", b.total(squares)), 1e-6)
        factor = b.binary("div", b.constant(max_norm, wide), norm)
        factor = b.scalar("min", factor, 1.0)
        found = [
            b.binary("mul", g, b.broadcast_in_dim(b.convert(factor, g.dtype), (), g.shape))
            for g in found
        ]
    if clip_value is not None:
        found = [b.scalar("max", b.scalar("min", g, clip_value), -clip_value) for g in found]
    return found

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program of a whole training step, and the tensors that it reads and updates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

import torch

from weft import errors
from weft.capture.signature import tensors_of
from weft.compiled.distances import TOLERANCES, is_near
from weft.compiled.gradient_values import OF_OTHER_SLOPES
from weft.compiled.specialize import Effect, Specialized, write
from weft.compiled.verification import MOST_INCONCLUSIVE_CHECKS, Verdict
from weft.frontend.pairs import REAL_OF, shown_real
from weft.gradients.derivative_program import Half
from weft.gradients.gradient_graph import GradientGraph
from weft.gradients.saved import random_state
from weft.training.step_check import StepCheck, copied
from weft.training.step_graph import Clipping, Updated, step_graph
from weft.training.update_rules import UpdateRule, rule_of


@dataclass
class Expected:
    """The program's results for a step that PyTorch is about to make, and the check for them."""

    results: list[torch.Tensor]
    check: StepCheck


@dataclass
class StepProgram:
    """The program of a step. It sees complex tensors as their real and imaginary parts, as
    optimizers do.

    updates: the parameters in the order of the graph's inputs. rules: of the optimizer's groups.
    verified: whether its results have been compared with a step by PyTorch's optimizer.
    inconclusive: how many such steps a kink has left undecided. reason: why it makes no steps, or
    None. divided: how often it was compiled anew for parameters of one group
    that have been updated different numbers of times.
    """

    graph: GradientGraph
    rules: list[UpdateRule]
    optimizer: torch.optim.Optimizer
    clipping: Clipping
    updates: list[Updated]
    count: int
    loss: int
    half: Half | None
    reason: str | None = None
    verified: bool = False
    inconclusive: int = 0
    divided: int = 0
    effects: list[Effect] = field(default_factory=list)
    inputs: list[torch.Tensor] = field(default_factory=list)
    params: list[torch.Tensor] = field(default_factory=list)

    @staticmethod
    def of(
        trained: Specialized, optimizer: torch.optim.Optimizer, clipping: Clipping
    ) -> StepProgram:
        training = trained.training
        rules = [rule_of(optimizer, group) for group in optimizer.param_groups]
        made = StepProgram(
            training.graph,
            rules,
            optimizer,
            clipping,
            [],
            training.count,
            training.outputs[0],
            None,
        )
        shape = trained.manifest["entries"]["main"]["results"][made.loss]["shape"]
        if len(training.outputs) > 1 or shape:
            made.reason = "the loss is no tensor of one element without dims"
            return made
        sources = trained.wiring.sources()
        if any(isinstance(each, torch.Tensor) and each.is_conj() for each in sources):
            made.reason = "a parameter or buffer is the conjugate of another"
            return made
        groups = {id(p): n for n, g in enumerate(optimizer.param_groups) for p in g["params"]}
        for number, is_connected in zip(training.wrt, training.connected[0], strict=True):
            if id(sources[number]) not in groups:
                made.reason = "what requires a gradient is no parameter of the optimizer"
                return made
            if is_connected:
                group = groups[id(sources[number])]
                made.updates.append(Updated(number, group, rules[group], group))
        made._compile()
        return made

    def _compile(self) -> None:
        options = replace(
            self.graph.options,
            role="step",
            wrt=",".join(str(each.input) for each in self.updates),
            differentiated=str(self.loss),
        )
        try:
            self.half = Half(step_graph(self.graph.graph, self.updates, self.clipping), options)
        except errors.CompileError as error:
            self.reason = f"it is not compiled: {error}"

    def stands_for(self, trained: Specialized, optimizer: torch.optim.Optimizer) -> bool:
        rules = [rule_of(optimizer, group) for group in optimizer.param_groups]
        return self.graph is trained.training.graph and self.rules == rules

    def bind(self, trained: Specialized, args: tuple) -> None:
        """Binds the program to the tensors of a call."""
        slots = tensors_of(args, {})
        wiring = trained.wiring
        found = [slots[s] if isinstance(s, int) else s for s in wiring.sources()]
        self.inputs = [shown_real(each) for each in found]
        self.effects = [
            each._replace(target=slots[each.target]) if isinstance(each.target, int) else each
            for each in wiring.effects()
        ]
        self.params = [found[each.input] for each in self.updates]

    def has_state(self) -> bool:
        """Whether the optimizer has made the state of every parameter."""
        state = self.optimizer.state
        return all(
            param in state and all(state[param].get(slot) is not None for slot in each.rule.slots)
            for each, param in zip(self.updates, self.params, strict=True)
            if each.rule.slots
        )

    def is_even(self) -> bool:
        """Whether the parameters that are updated together have been updated equally often. Other
        programs, and the user's own steps, may have updated only some of them."""
        steps = {
            (each.together, self._step_of(param))
            for each, param in zip(self.updates, self.params, strict=True)
        }
        return len(steps) == len({together for together, _ in steps})

    def divide(self) -> None:
        """Compiles the program anew, so that only parameters that have been updated equally often
        are updated together. The second time each is updated by itself, which always holds."""
        if self.divided:
            together = [*range(len(self.updates))]
        else:
            together = _numbered(
                (each.group, self._step_of(param))
                for each, param in zip(self.updates, self.params, strict=True)
            )
        self.updates = [replace(each, together=n) for each, n in zip(self.updates, together)]
        self.divided += 1
        self.verified = False
        self._compile()

    def _step_of(self, param: torch.Tensor) -> float:
        return float(self.optimizer.state.get(param, {}).get("step", 0.0))

    def _updated(self) -> list[torch.Tensor]:
        """The tensors that a step writes to: the parameters, then their states."""
        return [*map(shown_real, self.params), *self._states()]

    def _states(self) -> list[torch.Tensor]:
        state = self.optimizer.state
        return [
            shown_real(state[param][slot])
            for each, param in zip(self.updates, self.params, strict=True)
            for slot in each.rule.slots
        ]

    def _steps(self) -> list[torch.Tensor]:
        state = self.optimizer.state
        return [state[param]["step"] for param in self.params if "step" in state.get(param, {})]

    def _numbers(self) -> list[torch.Tensor]:
        """The numbers of all parameters that are updated together, in the order of the graph's
        inputs."""
        found: dict[int, torch.Tensor] = {}
        for each, param in zip(self.updates, self.params, strict=True):
            if each.together not in found:
                group = self.optimizer.param_groups[each.group]
                numbers = each.rule.numbers(group, self._step_of(param) + 1)
                dtype = REAL_OF.get(param.dtype, param.dtype)
                found[each.together] = torch.tensor(numbers, dtype=dtype)
        return list(found.values())

    def run(self) -> torch.Tensor:
        """Makes the step. Returns the loss."""
        with torch.no_grad():
            results = self._results()
            write(self.effects, results)
            torch._foreach_copy_(self._updated(), self._in_order(results))
            if steps := self._steps():
                torch._foreach_add_(steps, 1)
        for group in self.optimizer.param_groups:
            for param in group["params"]:
                param.grad = None
        self.optimizer._opt_called = True  # learning rate schedulers look for this flag
        return results[self.loss]

    def _results(self) -> list[torch.Tensor]:
        """The program's results. Running it writes to nothing else.

        Raises: errors.AssertError, with the generator's state as before.
        """
        # The stand-ins for the gradients are no arguments of the compiled program.
        arguments = [*self.inputs, *self._numbers(), *self._states()]
        random = torch.get_rng_state() if self.graph.draws else None
        try:
            return self.half.run(arguments)
        except errors.AssertError:
            if random is not None:
                torch.set_rng_state(random)
            raise

    def _in_order(self, results: list[torch.Tensor]) -> list[torch.Tensor]:
        """The results in the order of what a step writes to: new parameters, then new states."""
        params, states, number = [], [], self.count
        for each in self.updates:
            params.append(results[number])
            states += results[number + 1 : number + 1 + len(each.rule.slots)]
            number += 1 + len(each.rule.slots)
        return [*params, *states]

    def ahead(self) -> Expected:
        """Computes the results of the step that is about to be made."""
        random = torch.get_rng_state() if self.graph.draws else None
        states = [self.optimizer.state.get(param, {}) for param in self.params]
        check = StepCheck(
            self.graph,
            self.loss,
            self.updates,
            self.optimizer,
            self.clipping,
            [each.detach().clone() for each in self.inputs],
            [copied(each) for each in states],
            random,
        )
        with torch.no_grad(), random_state(random):
            return Expected(self._results(), check)

    def compare(
        self, expected: Expected, value: torch.Tensor, gradients: list[torch.Tensor | None]
    ) -> None:
        """Compares the results with the step that PyTorch's optimizer has made. value: its loss.
        gradients: those that the optimizer read."""
        results = expected.results
        pairs = [(value, results[self.loss])]
        pairs += [(shown_real(each.target), results[each.result]) for each in self.effects]
        verdict = Verdict.DIFFERENT
        if all(is_near(x, y, TOLERANCES.get(x.dtype, 0.0)) for x, y in pairs):
            eager = self._by_update(self._updated())
            own = self._by_update(self._in_order(results))
            read = [None if each is None else shown_real(each) for each in gradients]
            verdict = expected.check.agree(eager, own, read)
        if verdict is Verdict.SAME:
            self.verified = True
            return
        self.inconclusive += verdict is Verdict.INCONCLUSIVE
        if verdict is Verdict.DIFFERENT:
            self.reason = "the program does not reproduce PyTorch's step"
        elif self.inconclusive >= MOST_INCONCLUSIVE_CHECKS:
            self.reason = f"the program does not reproduce PyTorch's step: {OF_OTHER_SLOPES}"

    def _by_update(self, tensors: list[torch.Tensor]) -> list[list[torch.Tensor]]:
        """Splits parameters, and the states that follow all of them, into one list for each
        parameter."""
        states = iter(tensors[len(self.updates) :])
        return [
            [param, *(next(states) for _ in each.rule.slots)]
            for each, param in zip(self.updates, tensors)
        ]


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    """A number for each key, equal for equal keys."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]

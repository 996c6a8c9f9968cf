# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The result of importers: a compiled program whose inputs and outputs have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft import _core, errors

# From all inputs in order to the arguments of the compiled program.
Arguments = Callable[[Sequence[Any]], tuple[Sequence[Any], dict[str, Any]]]


class Imported:
    """A callable like that of `weft.compile`, for an imported model.

    module: the torch.nn.Module that PyTorch runs. params: its tensors by the model's names.
    input_names, output_names: in the model's order.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        compiled: Callable[..., Any],
        input_names: Sequence[str],
        output_names: Sequence[str],
        params: Mapping[str, torch.Tensor],
        arguments: Arguments = lambda inputs: (inputs, {}),
    ) -> None:
        self.module = module
        self.compiled = compiled
        self.input_names = list(input_names)
        self.output_names = list(output_names)
        self.params = dict(params)
        self._arguments = arguments
        self._inputs: dict[str, Any] = {}
        self._outputs: list[Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The model's result for inputs given in order or by name.

        Raises: errors.ArgumentError, which names the inputs, if there are too many, one is missing,
        or a name is unknown.
        """
        positional, named = self._arguments(self._in_order(args, kwargs))
        return self._returned(self.compiled(*positional, **named))

    def _returned(self, found: Any) -> Any:
        return found

    def _leaves(self, found: Any) -> list[Any]:
        """The results, in the order of the outputs."""
        return pytree.tree_leaves(found)

    def set_input(self, name: str | int, value: Any) -> None:
        """Sets an input of the next `run`. Raises: errors.ArgumentError, if there is no such
        input."""
        if isinstance(name, int) and 0 <= name < len(self.input_names):
            name = self.input_names[name]
        self._check(name)
        self._inputs[name] = value

    def set_inputs(self, **values: Any) -> None:
        """Sets several inputs by name. Raises: errors.ArgumentError; then none has been set."""
        for name in values:
            self._check(name)
        self._inputs.update(values)

    def run(self) -> None:
        """Runs the model, without gradients, with the inputs that were set, which are kept for the
        next run.

        Raises: errors.ArgumentError, if an input has not been set.
        """
        with torch.no_grad():
            self._outputs = self._leaves(self(**self._inputs))

    def get_output(self, which: int | str = 0) -> Any:
        """An output of the last run, by number or name.

        Raises: errors.ArgumentError, if there is no such output; errors.Error before the first run.
        """
        if self._outputs is None:
            raise errors.Error("nothing has run yet: call run() first")
        if isinstance(which, str):
            if which not in self.output_names:
                names = self.output_names
                raise errors.ArgumentError(f"expected an output among {names}, found {which!r}")
            which = self.output_names.index(which)
        if not 0 <= which < len(self._outputs):
            count = len(self._outputs)
            raise errors.ArgumentError(
                f"expected the number of one of {count} outputs, found {which}"
            )
        return self._outputs[which]

    @property
    def callable(self) -> _core.Callable:
        """The callable that weft.report, weft.stats and the like accept."""
        from weft.compiled.module import callable_of

        return callable_of(self.compiled)

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(self.input_names), ", ".join(self.output_names)
        return f"<weft import ({inputs}) -> ({outputs})>"

    def _check(self, name: Any) -> None:
        if name not in self.input_names:
            raise errors.ArgumentError(
                f"expected an input among {self.input_names}, found {name!r}"
            )

    def _in_order(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        names = self.input_names
        if len(args) > len(names):
            raise errors.ArgumentError(
                f"expected at most {len(names)} inputs ({', '.join(names)}), found {len(args)}"
            )
        for name in kwargs:
            self._check(name)
            if name in names[: len(args)]:
                raise errors.ArgumentError(f"expected input {name!r} once, found it twice")
        missing = [name for name in names[len(args) :] if name not in kwargs]
        if missing:
            raise errors.ArgumentError(f"expected inputs {', '.join(names)}; missing: {missing}")
        return [*args, *(kwargs[name] for name in names[len(args) :])]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that PyTorch runs, each with one reason, and PyTorch's own errors."""

import warnings

import pytest
import torch

import weft
from weft.errors import WeftWarning


def reasons(compiled) -> str:
    return " | ".join(compiled.eager_reasons)


def test_gradients_that_are_not_compiled_with_one_warning():
    linear = torch.nn.Linear(3, 3)

    def function(x, seen):
        seen.copy_(x)
        return linear(x)

    compiled = weft.compile(function, capture="export")
    x = torch.randn(2, 3)
    with pytest.warns(WeftWarning, match="gradients are wanted, and it writes to an argument"):
        y = compiled(x, torch.zeros(2, 3))
    y.sum().backward()
    assert linear.weight.grad is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(x, torch.zeros(2, 3)).requires_grad
        compiled(torch.randn(4, 3), torch.zeros(4, 3))
    assert "gradients are wanted" in reasons(compiled)


def test_input_that_requires_gradients():
    compiled = weft.compile(lambda x: x * 2)
    x = torch.ones(3, requires_grad=True)
    assert compiled(x).requires_grad
    assert not compiled(torch.ones(3)).requires_grad
    with torch.no_grad():
        assert not compiled(x).requires_grad
    assert compiled(x).requires_grad
    assert len(compiled.artifact_paths) == 3


def test_parameters_unfrozen_and_frozen():
    linear = torch.nn.Linear(3, 3).requires_grad_(False)
    compiled = weft.compile(linear)
    x = torch.ones(2, 3)
    assert not compiled(x).requires_grad
    assert len(compiled.artifact_paths) == 1
    linear.weight.requires_grad_()
    assert compiled(x).requires_grad
    linear.weight.requires_grad_(False)
    assert not compiled(x).requires_grad
    assert len(compiled.artifact_paths) == 2


class Subclass(torch.Tensor):
    pass


UNUSUAL = {
    "complex of half precision": torch.ones(3, dtype=torch.complex32),
    "sparse": torch.eye(3).to_sparse(),
    "meta": torch.ones(3, device="meta"),
    "negated": torch.ones(3, dtype=torch.complex64).conj().imag,
    "subclass": torch.ones(3).as_subclass(Subclass),
    "quantised": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
}


@pytest.mark.parametrize("x", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_unusual_tensors(x, no_grad):
    compiled = weft.compile(lambda v: v.clone(), capture="export")
    result = compiled(x)
    assert type(result) is type(x) and result.dtype == x.dtype
    assert "argument 0" in reasons(compiled)
    # A usual one is compiled all the same.
    assert torch.equal(compiled(torch.ones(3)), torch.ones(3))
    assert len(compiled.artifact_paths) == 1


def test_hooks_that_are_always_called(no_grad):
    linear, seen = torch.nn.Linear(2, 2), []
    compiled = weft.compile(linear, capture="export")
    x = torch.ones(1, 2)
    plain = compiled(x)
    hook = lambda module, args, output: seen.append(output)  # noqa: E731
    handle = linear.register_forward_hook(hook, always_call=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), plain)
    assert len(seen) == 2 and "hooks" in reasons(compiled)
    handle.remove()
    torch.testing.assert_close(compiled(x), plain)
    handle = torch.nn.modules.module.register_module_forward_hook(lambda m, a, o: o + 2)
    try:
        torch.testing.assert_close(compiled(x), plain + 2)
    finally:
        handle.remove()
    torch.testing.assert_close(compiled(x), plain)
    assert len(compiled.artifact_paths) == 1


def test_modes(no_grad):
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Function(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    compiled = weft.compile(lambda x: x * 2)
    x = torch.ones(2)
    compiled(x)
    for mode in (Function, Dispatch):
        seen = []
        with mode():
            compiled(x)
        assert seen
    assert torch.equal(torch.func.vmap(compiled)(torch.ones(3, 2)), torch.full((3, 2), 2.0))
    assert "mode" in reasons(compiled)


def test_data_dependent_size(no_grad):
    compiled = weft.compile(lambda x: torch.arange(int(x[0])), capture="export")
    x = torch.tensor([3.0, -1.0])
    for _ in range(2):
        assert torch.equal(compiled(x), torch.arange(3))
    assert torch.equal(compiled(x + 2), torch.arange(5))
    assert compiled.eager_reasons


def test_data_dependent_branch_names_the_line(no_grad):
    def function(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    compiled = weft.compile(function, capture="export")
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(compiled(-torch.ones(2)), torch.full((2,), -2.0))
    assert "test_eager.py" in reasons(compiled)


def test_objects_as_arguments(no_grad):
    class Settings:
        factor = 2

    compiled = weft.compile(lambda x, settings: x * settings.factor, capture="export")
    settings = Settings()
    assert compiled(torch.ones(1), settings).item() == 2
    settings.factor = 3
    assert compiled(torch.ones(1), settings).item() == 3
    assert "Settings" in reasons(compiled)


def test_errors_are_those_of_pytorch(no_grad):
    linear = torch.nn.Linear(3, 3)
    compiled = weft.compile(linear)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
        compiled(torch.ones(2, 5))
    with pytest.raises(TypeError):
        compiled()
    with pytest.raises(TypeError):
        compiled(torch.ones(2, 3), bogus=1)
    assert compiled(torch.ones(2, 3)).shape == (2, 3)
    table = weft.compile(torch.nn.Embedding(4, 2))
    assert table(torch.tensor([0, 3])).shape == (2, 2)
    with pytest.raises(IndexError):
        table(torch.tensor([0, 4]))
    with pytest.raises(TypeError, match="expected a module or function"):
        weft.compile(3)


def test_exception_of_the_user_comes_through(no_grad):
    def function(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weft.compile(function)(torch.ones(1))


def test_no_memory_for_a_result():
    compiled = weft.compile(lambda x: x.expand(2**20, 2**30) + 1, capture="export")
    with torch.no_grad(), pytest.raises(RuntimeError, match="allocate"):
        compiled(torch.ones(1, 1))
    assert "no memory for a tensor" in reasons(compiled)


def test_places_of_largest_sums_are_pytorchs():
    """Where two sums are about equal, another order of adding picks the other one."""

    class Segmenting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, x):
            y, places = torch.nn.functional.max_pool2d(self.conv(x), 2, return_indices=True)
            return torch.nn.functional.max_unpool2d(y, places, 2)

    model, x = Segmenting().eval(), torch.randn(1, 3, 8, 8)
    compiled = weft.compile(model, capture="export")
    with torch.no_grad():
        assert torch.equal(compiled(x), model(x))
    assert "puts values where sums" in reasons(compiled)

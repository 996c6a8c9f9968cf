# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that ask whether they are being compiled, or read values that they know themselves."""

import warnings

import pytest
import torch
import torch._dynamo
import transformers
from torch.compiler import is_compiling

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

QUESTIONS = {
    "torch.compiler": lambda x: torch.compiler.is_compiling(),
    "by name": lambda x: is_compiling(),
    "dynamo": lambda x: torch._dynamo.is_compiling(),
    "exporting": lambda x: torch.compiler.is_exporting(),
    "fake": lambda x: isinstance(x, torch._subclasses.FakeTensor),
    "fx": lambda x: torch.fx._symbolic_trace.is_fx_tracing(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_hears_what_eager_execution_hears(compiled_only, question):
    asked = QUESTIONS[question]
    compiled = weft.compile(lambda x: x + (1 if asked(x) else 2))
    assert torch.equal(compiled(torch.zeros(3)), torch.full((3,), 2.0))


def test_answers_are_true_again():
    weft.compile(lambda x: x + torch.compiler.is_compiling())(torch.zeros(3))
    seen = []

    def function(x):
        seen.append((torch.compiler.is_compiling(), type(x) is torch._subclasses.FakeTensor))
        return x + 1

    torch.export.export(weft_free(function), (torch.zeros(3),), strict=False)
    assert (True, True) in seen
    assert not torch.compiler.is_compiling()


def weft_free(function):
    module = torch.nn.Module()
    module.forward = function
    return module


def test_way_for_compilers_where_eager_execution_reads_values(compiled_only):
    def function(x, mask):
        if not torch.compiler.is_compiling() and mask.all():
            return x * 2
        return torch.where(mask, x * 2, x)

    compiled = weft.compile(function)
    x = torch.randn(3)
    for mask in (torch.ones(3, dtype=torch.bool), torch.tensor([True, False, True])):
        assert torch.equal(compiled(x, mask), function(x, mask))


def test_way_for_compilers_where_eager_execution_has_sizes_from_values(compiled_only):
    def function(x, mask):
        if torch.compiler.is_compiling():
            return torch.where(mask, x * 2, 0).sum()
        return (x[mask] * 2).sum()

    compiled = weft.compile(function)
    x, mask = torch.arange(4.0), torch.tensor([True, False, True, True])
    assert torch.equal(compiled(x, mask), function(x, mask))


@pytest.mark.parametrize(
    "value",
    [
        lambda n: bool((torch.arange(n).diff() == 1).all()),
        lambda n: torch.arange(n).sum().item(),
        lambda n: torch.linspace(0, 1, n).tolist()[2],
        lambda n: int(torch.ones(n).cumsum(0)[-1]),
        lambda n: float(torch.zeros(n).unbind()[0] + 0.5),
    ],
)
def test_what_the_program_makes_itself_is_known(compiled_only, value):
    compiled = weft.compile(lambda x: x.masked_fill(x > 0, value(x.shape[0])))
    for n in (5, 6):
        x = torch.randn(n)
        assert torch.equal(compiled(x), x.masked_fill(x > 0, value(n)))


def written(x):
    places = torch.arange(x.shape[0])
    places[:2].add_(7)
    return x + 1 if places[0] == 7 else x - 1


def autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        y = torch.full((3, 3), 1.001) * torch.full((3, 3), 1.001) @ torch.eye(3)
    return x + 1 if y[0, 0] > 1.001 else x - 1


def running_mean(x):
    mean = torch.zeros(4)
    torch.nn.functional.batch_norm(x.expand(2, 4), mean, torch.ones(4), training=True)
    return x + 1 if mean[0] > 0 else x - 1


def data(x):
    y = torch.zeros(3)
    y.data = torch.ones(3)
    return x + 1 if y[0] > 0 else x - 1


def drawn(x):
    return x + 1 if torch.rand(()) < 0.5 else x - 1


OTHERS = [written, autocast, running_mean, data, drawn, lambda x: x + 1 if x.sum() > 0 else x]


@pytest.mark.parametrize("function", OTHERS)
def test_other_values_are_not_known(function):
    compiled = weft.compile(function, capture="export")
    for seed in range(6):
        x = torch.randn(4)
        torch.manual_seed(seed)
        expected = function(x)
        torch.manual_seed(seed)
        assert torch.equal(compiled(x), expected)
    assert compiled.eager_reasons


def test_masks_that_eager_execution_leaves_out(compiled_only):
    """PaliGemma attends to all tokens without a mask, and to earlier ones with any."""
    config = transformers.PaliGemmaConfig(
        vision_config={
            "model_type": "siglip_vision_model",
            "num_hidden_layers": 1,
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_attention_heads": 2,
        },
        text_config={
            "model_type": "gemma",
            "num_hidden_layers": 1,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "vocab_size": 100,
        },
        projection_dim=32,
        image_token_id=99,
    )
    model = transformers.PaliGemmaModel(config).eval()
    ids = torch.randint(90, (1, 12))
    found = weft.compile(model)(input_ids=ids, use_cache=False).last_hidden_state
    expected = model(input_ids=ids, use_cache=False).last_hidden_state
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def _by_modes(x):
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    return bool(_get_current_dispatch_mode_stack() or _get_current_function_mode_stack())


PROBES = {
    "fake_mode": lambda x: hasattr(x, "fake_mode") or getattr(x, "fake_device", None) is not None,
    "modes": _by_modes,
    "stack": lambda x: torch._C._len_torch_dispatch_stack() > 0,
    "context": lambda x: torch._guards.TracingContext.try_get() is not None,
    "detected": lambda x: torch._guards.detect_fake_mode([x]) is not None,
    "filters": lambda x: len(warnings.filters) != FILTERS,
}
FILTERS = -1


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_what_would_tell_of_the_trace_ends_it(probe, monkeypatch):
    """Both ways agree where elements are positive: values do not tell."""
    monkeypatch.setitem(globals(), "FILTERS", len(warnings.filters))
    compiled = weft.compile(lambda x: x * 2 if probe(x) else x.abs() * 2)
    with torch.no_grad():
        for x in (torch.rand(3), torch.rand(3), -torch.rand(3)):
            assert torch.equal(compiled(x), x.abs() * 2)

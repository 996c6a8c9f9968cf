# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What published work shows on a transformer, on the IR and the programs of a small one."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel

import weft
from weft import ir
from weft.ir import ops

SMALL = dict(hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=1000)


def names(module: ir.Module, function: str = "main") -> list[str]:
    return [op.name for op in module[function].body]


@pytest.fixture(scope="module")
def bert() -> nn.Module:
    torch.manual_seed(0)
    return BertModel(BertConfig(num_hidden_layers=2, **SMALL)).eval()


@pytest.fixture(scope="module")
def ids() -> torch.Tensor:
    return torch.randint(0, 1000, (1, 14), generator=torch.Generator().manual_seed(0))


def call(program, *args):
    with torch.no_grad():
        program(*args)
        return program(*args)


def test_a_traced_bert_is_imported_with_its_token_ids(bert, ids):
    bert.config.return_dict = False
    with torch.no_grad():
        traced = torch.jit.trace(bert, ids)
        expected = bert(ids)
    bert.config.return_dict = True
    program = weft.from_traced(traced, [("input_ids", ((1, 14), "int64"))], fullgraph=True)
    for found, wanted in zip(call(program, ids), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_errors_of_a_whole_bert_are_rounding(bert, ids):
    compiled = weft.compile(bert, fullgraph=True)
    found = call(compiled, ids)
    with torch.no_grad():
        expected = bert(ids)
    assert (found.last_hidden_state - expected.last_hidden_state).abs().max() <= 1e-5


def test_in_float64_they_vanish(bert, ids):
    import copy

    wide = copy.deepcopy(bert).double()
    found = call(weft.compile(wide, fullgraph=True), ids)
    with torch.no_grad():
        expected = wide(ids)
    assert (found.last_hidden_state - expected.last_hidden_state).abs().max() <= 1e-13


def test_a_layer_is_compiled_on_the_inputs_that_it_gets(bert, ids):
    layer, seen = bert.encoder.layer[1], []
    handle = layer.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append((args, kwargs)), with_kwargs=True
    )
    with torch.no_grad():
        bert(ids)
    handle.remove()
    ((args, kwargs),) = seen
    compiled = weft.compile(layer, fullgraph=True)
    with torch.no_grad():
        compiled(*args, **kwargs)
        found, expected = compiled(*args, **kwargs), layer(*args, **kwargs)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_a_linear_layer_is_one_product_without_a_transpose():
    module = ir.of(nn.Linear(8, 4), torch.randn(3, 8))
    assert names(module).count("dot_general") == 1 and "transpose" not in names(module)


def test_equal_reshapes_become_one():
    def program(x):
        views = [x.reshape(x.shape[0], x.shape[1], 4, -1) for _ in range(3)]
        return views[0].exp() + views[1].tanh() * views[2]

    module = ir.of(program, torch.randn(2, 5, 8))
    assert names(module).count("reshape") == 3, "sizes that were computed are plain numbers"
    ir.Pipeline(["cse"])(module)
    assert names(module).count("reshape") == 1


def test_constants_fold_through_reshapes_and_transposes():
    model = nn.Linear(8, 4)
    module = ir.of(lambda x: x @ model.weight.reshape(2, 2, 8).reshape(4, 8).T, torch.randn(3, 8))
    ir.bind_parameters(module, {1: model.weight})
    assert [value.name for value in module["main"].params] == ["x"]
    optimized = module.lower("optimized")
    assert not {"reshape", "transpose"} & set(names(optimized))
    x = torch.randn(3, 8)
    torch.testing.assert_close(ir.run(module, "optimized", x), x @ model.weight.T.detach())


def test_query_key_and_value_are_one_contraction():
    class Projections(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(64, 64) for _ in range(3))

        def forward(self, x):
            return self.q(x), self.k(x), self.v(x)

    model, x = Projections(), torch.randn(2, 40, 64)
    module = ir.of(model, x)
    assert names(module).count("dot_general") == 3
    optimized = module.lower("optimized")
    assert names(optimized).count("multi_dot") == 1 and "dot_general" not in names(optimized)
    for found, wanted in zip(ir.run(module, "optimized", x), model(x), strict=True):
        torch.testing.assert_close(found, wanted.detach())


def test_an_add_behind_a_reshape_is_part_of_the_kernel():
    @ir.function(name="main")
    def main(x: ir.tensor(32, 64), w: ir.tensor(64, 64), y: ir.tensor(2, 16, 64)):
        return ops.add(ops.reshape(x @ w, result_type=(2, 16, 64)), y)

    kernels = main.module.lower("kernels")
    assert names(kernels) == ["func.call", "func.return"]


def test_gelu_stays_that_of_erf(bert, ids):
    module = ir.of(bert, ids)
    kinds = [op.attributes["kind"] for op in module["main"].body if op.name == "gelu"]
    assert kinds == ["erf"] * 2


def test_a_differentiated_graph_is_flat():
    compiled = weft.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)))
    compiled(torch.randn(3, 8)).sum().backward()
    joint = ir.Module.parse(compiled.ir("joint"))
    assert all(not op.blocks for function in joint for op in function.body)


def test_gradients_that_nobody_wants_are_not_computed():
    model = nn.Linear(8, 4)
    model.bias.requires_grad_(False)
    compiled = weft.compile(model)
    compiled(torch.randn(3, 8)).sum().backward()
    backward = ir.Module.parse(compiled.ir("partitioned"))["backward"]
    assert [type_.shape for type_ in backward.result_types] == [(4, 8)]
    assert "reduce" not in [op.name for op in backward.body]


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "rsqrt", "erf", "abs"])
def test_fusion_goes_by_loops_and_not_by_names(name):
    @ir.function(name="main")
    def main(x: ir.tensor(96, 96), w: ir.tensor(96, 96)):
        made = getattr(ops, name)(x @ w)
        return ops.reduce("sum", ops.mul(made, made), [1])

    kernels = main.module.lower("kernels")
    assert [len(each.body) for each in kernels][0] == 3, "one for the product, one for the sum"
    first, second = kernels.functions[1:]
    assert name in [op.name for op in first.body] and "reduce" in [op.name for op in second.body]


def test_the_frontend_emits_what_the_generated_functions_do(bert, ids):
    """Both take ops from the dialect's definitions: made anew by `weft.ir.ops`, each op of a
    captured program has the attributes and types that the frontend gave it."""
    convs = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2)
    ).eval()
    modules = [
        ir.of(bert, ids),
        ir.of(convs, torch.randn(1, 3, 8, 8)),
        ir.of(lambda x: (x.sort(0)[0], x.cumsum(1), x.argmax(0), x[:, ::2]), torch.randn(4, 6)),
    ]
    made = set()
    for module in modules:
        for op in module["main"].body:
            if not op.full_name.startswith("weft.") or not op.results:
                continue
            builder = ir.Builder()
            types = [value.type for value in op.operands]
            attributes = {k: v for k, v in op.attributes.items() if k != "operandSegmentSizes"}
            with builder.function("again", *types) as params:
                again = made_again(builder, op, params, attributes)
                builder.returns(*again)
            (twin,) = [each for each in builder.module["again"].body if each.name == op.name]
            assert [each.type for each in twin.results] == [each.type for each in op.results]
            assert str(twin.attributes) == str(op.attributes)
            made.add(op.name)
    assert len(made) >= 15, made


def made_again(builder, op, params, attributes) -> list:
    """By the op's generated function, with operands by name and the type where none is inferred."""
    from weft.ir.emission import DEFINITIONS

    function = getattr(ops, op.name, None) or getattr(ops, f"{op.name}_")
    definition = DEFINITIONS[op.full_name]
    sizes = op.attributes.get("operandSegmentSizes")
    given, rest = {}, list(params)
    for number, name in enumerate(definition.operands):
        plain = name.rstrip("?*")
        count = sizes[number] if sizes else len(rest) if name.endswith("*") else min(1, len(rest))
        taken, rest = rest[:count], rest[count:]
        given[plain] = taken if name.endswith("*") else taken[0] if taken else None
    inferred = op.name not in ("convert", "constant", "iota", "broadcast_in_dim", "reshape")
    result_type = None if inferred else op.result.type
    result = function(**given, **attributes, result_type=result_type)
    return list(result) if isinstance(result, tuple) else [result]

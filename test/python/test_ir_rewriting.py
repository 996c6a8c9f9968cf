# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.ir: rewriting by hand and by patterns, and what becomes of handles."""

from __future__ import annotations

import random

import pytest

from weft import ir
from weft.ir import ops


@ir.function
def main(x: ir.tensor(3, 4), y: ir.tensor(3, 4)):
    return ops.add(ops.mul(x, y), y)


fma = ir.pattern(
    lambda a, b, c: ops.add(ops.mul(a, b), c), lambda a, b, c: ops.fma(a, b, c), name="use-fma"
)

WITH_DEAD_MUL = """\
    %0 = weft.mul %arg0, %arg1 : tensor<3x4xf32>
    %1 = weft.fma %arg0, %arg1, %arg1 : tensor<3x4xf32>
    return %1 : tensor<3x4xf32>"""


def names(module: ir.Module) -> list[str]:
    return [op.name for op in module["main"].body]


def test_a_multiply_and_an_add_become_one_op_by_hand():
    module = main.module
    rewriter = ir.Rewriter(module)
    for op in rewriter.walk("add"):
        product = op.operands[0].producer
        if product is not None and product.name == "mul":
            with rewriter.before(op):
                rewriter.replace(op, ops.fma(*product.operands, op.operands[1]))
    module.verify()
    assert rewriter.count == 1 and WITH_DEAD_MUL in str(module)
    assert module.remove_unused() == 1
    assert names(module) == ["fma", "func.return"]
    x, y = module["main"].params
    assert module["main"].body[0].operands == [x, y, y]


def test_and_by_a_pattern():
    module = main.module
    assert fma.apply(module) == 1
    assert WITH_DEAD_MUL in str(module)
    assert fma.apply(module) == 0
    again = main.module
    assert fma.apply(again, remove_unused=True) == 1
    assert names(again) == ["fma", "func.return"]


def test_a_pattern_leaves_a_product_with_other_users_alone():
    @ir.function
    def shared(x: ir.tensor(4), y: ir.tensor(4)):
        product = ops.mul(x, y)
        return ops.add(product, x), product

    assert fma.apply(shared.module) == 0
    assert list(fma.declined) == ["mul is read by func.return too"]
    duplicating = ir.pattern(
        lambda a, b, c: ops.add(ops.mul(a, b), c), lambda a, b, c: ops.fma(a, b, c), shared=True
    )
    assert duplicating.apply(shared.module) == 1


def test_patterns_look_at_conditions_repeats_attributes_and_numbers():
    @ir.function(name="main")
    def program(x: ir.tensor(2, 2), y: ir.tensor(2, 2)):
        twice = ops.add(x, x) * 1.0
        other = ops.add(x, y) * 2.0
        return ops.transpose(twice, [1, 0]), ops.transpose(other, [0, 1])

    module = program.module
    assert ir.pattern(lambda x: ops.add(x, x), lambda x: x * 2.0).apply(module) == 1
    assert ir.pattern(lambda x: x * 1, lambda x: x).apply(module) == 1
    assert ir.pattern(lambda x: ops.transpose(x, [0, 1]), lambda x: x).apply(module) == 1
    assert names(module).count("transpose") == 1
    seen = []
    refused = ir.pattern(
        lambda a, b: ops.add(a, b),
        lambda a, b: ops.sub(a, b),
        where=lambda a, b: seen.append((a, b)),
    )
    assert refused.apply(module) == 0 and seen == [tuple(module["main"].params)]
    any_transpose = ir.pattern(
        lambda x: ops.transpose(x, None), lambda x: x, where=lambda x: x.shape == (2, 2)
    )
    assert any_transpose.apply(module) == 1


def test_a_pattern_without_an_end_stops():
    module = main.module
    before = str(module)
    flip = ir.pattern(lambda a, b: ops.add(a, b), lambda a, b: ops.add(b, a), name="flip")
    with pytest.raises(ir.PatternLimitError, match="pattern flip has no end"):
        flip.apply(module)
    assert str(module) == before


def test_a_pattern_that_makes_no_sense_is_refused():
    with pytest.raises(ir.IRError, match="expected an op to match"):
        ir.pattern(lambda a: a, lambda a: a)
    with pytest.raises(ir.IRError, match="expected the match to use b"):
        ir.pattern(lambda a, b: ops.neg(a), lambda a, b: a)
    module, before = main.module, str(main.module)
    with pytest.raises(ZeroDivisionError):
        ir.pattern(lambda a, b: ops.add(a, b), lambda a, b: 1 / 0).apply(module)
    with pytest.raises(ir.VerificationError, match="tensor<3x4xf32>; found tensor<4x3xf32>"):
        turn = ir.pattern(lambda a, b: ops.add(a, b), lambda a, b: ops.transpose(a, [1, 0]))
        turn.apply(module)
    assert str(module) == before


def test_handles_follow_replacements_and_tell_of_erasure():
    module = main.module
    multiply, add, _ = module["main"].body
    result, held = add.result, {multiply.result: "product"}
    fma.apply(module)
    assert add.name == "fma" and add == module["main"].body[1] and result == add.result
    assert held[module["main"].body[0].result] == "product"
    module.remove_unused()
    with pytest.raises(ir.Stale, match="'weft.mul' was erased as unused"):
        str(multiply)
    assert "stale" in repr(multiply)
    module.run_passes("cse")
    with pytest.raises(ir.Stale, match="rewritten by 'cse'"):
        str(add)
    assert "stale" in repr(result)


def test_a_replacement_by_a_parameter_is_followed_by_its_value():
    module = main.module
    multiply, add, _ = module["main"].body
    product = multiply.result
    rewriter = ir.Rewriter(module)
    rewriter.replace(multiply, module["main"].params[0])
    assert product == module["main"].params[0] and add.operands[0] == product
    with pytest.raises(ir.Stale, match="'weft.mul' was erased"):
        str(multiply)


def test_a_rewriter_edits_in_place():
    module = main.module
    multiply, add, end = module["main"].body
    rewriter = ir.Rewriter(module)
    with rewriter.after(multiply):
        negated = ops.neg(multiply.result)
    rewriter.set_operand(add, 0, negated)
    rewriter.set_attribute(add, "user.note", "kept")
    rewriter.set_attribute(add, "user.marked")
    assert names(module) == ["mul", "neg", "add", "func.return"]
    assert add.attributes == {"user.note": "kept", "user.marked": True}
    rewriter.remove_attribute(add, "user.note")
    assert add.attributes == {"user.marked": True} and multiply.is_before(add)
    with pytest.raises(ir.IRError, match="has uses"):
        rewriter.erase(multiply)
    with pytest.raises(ir.IRError, match="does not end its block"):
        rewriter.after(end)
    double = rewriter.add_function("double", [ir.tensor(4)], lambda x: x + x)
    assert rewriter.fresh_name("double") == "double1" and double.is_private
    rewriter.rename(double, "twice")
    assert [function.name for function in module] == ["main", "twice"]
    module.verify()


def test_broken_modules_reach_no_pass():
    module = main.module
    multiply, _, end = module["main"].body
    rewriter = ir.Rewriter(module)
    with rewriter.before(end):
        wrong = ops.transpose(multiply.result, [1, 0])
    rewriter.set_operand(end, 0, wrong)
    assert module["main"].result_types == [ir.tensor(4, 3)], "what a function returns is its type"
    rewriter.erase(end)
    for step in (lambda: module.lower("llvm"), lambda: module.run_passes("cse"), module.verify):
        with pytest.raises(ir.VerificationError):
            step()
    assert "weft.transpose" in str(module) and module.clone() == module


def test_attributes_of_the_wrong_kind_are_refused():
    @ir.function(name="main")
    def program(x: ir.tensor(2, 3)):
        return ops.transpose(x, [1, 0])

    module = program.module
    transpose, rewriter = module["main"].body[0], ir.Rewriter(module)
    with pytest.raises(ir.IRError, match="perm"):
        rewriter.set_attribute(transpose, "perm", "text")
    with pytest.raises(ir.VerificationError):
        rewriter.set_attribute(transpose, "perm", ir.Syntax("1 : i8"))
    with pytest.raises(ir.IRError, match="cannot do without"):
        rewriter.remove_attribute(transpose, "perm")
    rewriter.set_attribute(transpose, "perm", [0, 1])
    with pytest.raises(ir.VerificationError, match="transpose"):
        module.verify()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(20))
def test_random_rewriting_never_leads_to_freed_memory(seed):
    """Every handle ever made either works or is Stale, whatever is done to the module."""
    rng = random.Random(seed)
    builder = ir.Builder()
    with builder.function("main", x=ir.tensor(4)) as (x,):
        values = [x]
        for _ in range(30):
            values.append(ops.add(rng.choice(values), rng.choice(values)))
        builder.returns(values[-1])
    module = builder.module
    rewriter, handles = ir.Rewriter(module), list(module["main"].body)
    for _ in range(60):
        match rng.randrange(6):
            case 0:
                module.remove_unused()
            case 1:
                module.attempt(lambda module: module.run_passes("cse"))
            case 2:
                with pytest.raises(ZeroDivisionError):
                    module.attempt(lambda module: (change(rng, rewriter), 1 / 0))
            case _:
                change(rng, rewriter)
        handles += module["main"].body
        for handle in rng.sample(handles, 20):
            try:
                assert handle.full_name and handle.attributes is not None
                assert all(value.type and value.users is not None for value in handle.results)
            except ir.Stale as why:
                assert str(why) and "stale" in repr(handle)
    module.verify()


def change(rng: random.Random, rewriter: ir.Rewriter) -> None:
    *body, _ = rewriter.module["main"].body
    if not body:
        return
    op = rng.choice(body)
    with rewriter.before(op):
        new = ops.mul(*rng.choices(op.operands, k=2))
    if rng.random() < 0.5:
        rewriter.replace(op, new)
    else:
        rewriter.replace(op, op.operands[0])

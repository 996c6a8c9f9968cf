# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.from_onnx`: names, weights, what is constant in a program, and what is refused."""

import copy
import io
import math
import pickle
import sys

import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import weft
from weft import errors
from weft.onnx.table import Node, operators, rule_for

pytestmark = pytest.mark.usefixtures("no_grad")

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def tensor(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def initializer(name, value):
    return numpy_helper.from_array(torch.as_tensor(value).numpy(), name)


def model(nodes, inputs, outputs, initializers=(), opset=17, functions=(), domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def mlp():
    torch.manual_seed(1)
    weights = {"fc.weight": torch.randn(4, 8), "fc.bias": torch.randn(4)}
    nodes = [
        helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["y"]),
        helper.make_node("ReduceSum", ["y", "axes"], ["total"], keepdims=0),
    ]
    values = [initializer(name, value) for name, value in weights.items()]
    values.append(initializer("axes", torch.tensor([1])))
    outputs = [tensor("y", ["n", 4]), tensor("total", ["n"])]
    return model(nodes, [tensor("x", ["n", 8])], outputs, values), weights


def test_names_order_and_params(compiled_only):
    proto, weights = mlp()
    program = weft.from_onnx(proto)
    assert program.input_names == ["x"] and program.output_names == ["y", "total"]
    assert list(program.params) == ["fc.weight", "fc.bias"]  # `axes` is a constant
    for name, value in weights.items():
        assert torch.equal(program.params[name], value)
    x = torch.randn(3, 8)
    expected = torch.relu(x @ weights["fc.weight"].t() + weights["fc.bias"])
    for found in (program(x), program(x=x)):
        torch.testing.assert_close(found, (expected, expected.sum(1)))
    torch.testing.assert_close(program(x[:2])[0], expected[:2])
    assert weft.stats(program)["graphs"] == 2 and weft.stats(program)["breaks"] == []


def test_weights_are_live():
    program, x = weft.from_onnx(mlp()[0]), torch.randn(3, 8)
    program(x)
    program.params["fc.bias"].fill_(100.0)
    torch.testing.assert_close(program(x), program.module(x))
    assert program(x)[0].min() > 50


def test_from_a_file_and_from_bytes(tmp_path):
    proto, x = mlp()[0], torch.randn(2, 8)
    onnx.save(proto, tmp_path / "m.onnx")
    outside = tmp_path / "outside.onnx"
    onnx.save(
        copy.deepcopy(proto),
        outside,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    expected = weft.from_onnx(proto)(x)
    paths = (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), outside)
    for source in (*paths, proto.SerializeToString()):
        torch.testing.assert_close(weft.from_onnx(source)(x), expected)


def test_reports_name_the_nodes(tmp_path, monkeypatch):
    # An equal program in the cache would name the lines of its own source.
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    onnx.save(mlp()[0], tmp_path / "m.onnx")
    program = weft.from_onnx(tmp_path / "m.onnx")
    program(torch.randn(3, 8))
    text = io.StringIO()
    weft.report(program, text)
    assert "m.onnx:1–2" in text.getvalue(), text.getvalue()


def test_inputs_set_by_name():
    program, x = weft.from_onnx(mlp()[0]), torch.randn(3, 8)
    with pytest.raises(errors.Error, match="call run"):
        program.get_output(0)
    with pytest.raises(errors.ArgumentError, match="missing: .'x'."):
        program.run()
    with pytest.raises(errors.ArgumentError, match="expected an input among .'x'., found 'z'"):
        program.set_inputs(z=x)
    program.set_input("x", x)
    program.run()
    assert torch.equal(program.get_output("total"), program.get_output(1))
    program.set_input(0, x + 1)
    program.run()
    torch.testing.assert_close(program.get_output(), program(x + 1)[0])
    for wrong in ("z", 2, -1):
        with pytest.raises(errors.ArgumentError, match="output"):
            program.get_output(wrong)


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        (2, {}, "expected at most 1 inputs"),
        (1, {"x": 0}, "'x' once"),
        (0, {"w": 0}, "among"),
        (0, {}, "missing"),
    ],
)
def test_wrong_arguments(args, kwargs, message):
    with pytest.raises(errors.ArgumentError, match=message):
        weft.from_onnx(mlp()[0])(*[torch.zeros(1, 8)] * args, **kwargs)


def test_a_shape_that_is_an_input_gets_a_program_for_each_value(compiled_only):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    program = weft.from_onnx(model(nodes, [tensor("x", [6]), tensor("shape", [2], INT)],
                                   [tensor("y", None)]))  # fmt: skip
    x = torch.arange(6.0)
    for shape in ((2, 3), (3, 2), (2, 3), (-1, 1)):
        assert torch.equal(program(x, torch.tensor(shape)), x.reshape(shape))
    assert weft.stats(program)["graphs"] == 3


def test_shapes_of_inputs_are_constants_of_a_program(compiled_only):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Concat", ["n", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["y"]),
    ]
    values = [initializer("zero", torch.tensor([0])), initializer("rest", torch.tensor([-1]))]
    program = weft.from_onnx(
        model(nodes, [tensor("x", ["n", 2, 3])], [tensor("y", ["n", 6])], values)
    )
    for n in (2, 5):
        x = torch.randn(n, 2, 3)
        assert torch.equal(program(x), x.reshape(n, 6))


def branch(name, op):
    return helper.make_graph([helper.make_node(op, ["x"], ["out"])], name, [], [tensor("out", [3])])


def test_a_branch_by_an_input_is_chosen(compiled_only):
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("t", "Abs"), else_branch=branch("e", "Neg")
    )
    inputs = [tensor("c", [], TensorProto.BOOL), tensor("x", [3])]
    program = weft.from_onnx(model([node], inputs, [tensor("y", [3])]))
    x = torch.tensor([1.0, -2.0, 3.0])
    for _ in range(2):
        assert torch.equal(program(torch.tensor(True), x), x.abs())
        assert torch.equal(program(torch.tensor(False), x), -x)
    assert weft.stats(program)["graphs"] == 2


def test_a_branch_by_data_is_run_by_pytorch():
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node(
            "If", ["c"], ["y"], then_branch=branch("t", "Abs"), else_branch=branch("e", "Neg")
        ),
    ]
    zero = initializer("zero", torch.tensor(0.0))
    program = weft.from_onnx(model(nodes, [tensor("x", [3])], [tensor("y", [3])], [zero]))
    with pytest.warns(errors.WeftWarning, match="PyTorch runs this call"):
        for x in (torch.tensor([1.0, -2.0, 3.0]), torch.tensor([1.0, -2.0, -3.0])):
            assert torch.equal(program(x), x.abs() if x.sum() > 0 else -x)
    assert weft.stats(program)["graphs"] == 0


def counting_loop():
    """y = x + 0 + 1 + … while the trip count allows; z gathers each sum."""
    body = helper.make_graph(
        [
            helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
            helper.make_node("Add", ["v", "f"], ["w"]),
            helper.make_node("Identity", ["w"], ["each"]),
            helper.make_node("Identity", ["c"], ["d"]),
        ],
        "body",
        [tensor("i", [], INT), tensor("c", [], TensorProto.BOOL), tensor("v", [2])],
        [tensor("d", [], TensorProto.BOOL), tensor("w", [2]), tensor("each", [2])],
    )
    return helper.make_node("Loop", ["n", "", "x"], ["y", "z"], body=body)


def test_a_loop_is_unrolled(compiled_only):
    inputs = [tensor("n", [], INT), tensor("x", [2])]
    program = weft.from_onnx(
        model([counting_loop()], inputs, [tensor("y", [2]), tensor("z", None)])
    )
    x = torch.randn(2)
    for n in (1, 4):
        y, z = program(torch.tensor(n), x)
        torch.testing.assert_close(y, x + sum(range(n)))
        assert z.shape == (n, 2)
        torch.testing.assert_close(z[-1], y)


def test_a_long_loop_is_run_by_pytorch():
    inputs = [tensor("n", [], INT), tensor("x", [2])]
    program = weft.from_onnx(
        model([counting_loop()], inputs, [tensor("y", [2]), tensor("z", None)])
    )
    with pytest.warns(errors.WeftWarning, match="more than 512 steps is not unrolled"):
        y, _ = program(torch.tensor(600), torch.zeros(2))
    assert y[0] == sum(range(600))


def test_what_is_drawn_differs_from_call_to_call():
    node = helper.make_node("RandomUniformLike", ["x"], ["y"])
    program = weft.from_onnx(model([node], [tensor("x", [100])], [tensor("y", [100])]))
    first, second = program(torch.ones(100)), program(torch.ones(100))
    assert not torch.equal(first, second)
    assert 0 <= first.min() and first.max() < 1


def test_functions_of_the_model_are_taken_apart(compiled_only):
    double = helper.make_function(
        "mine", "Double", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    node = helper.make_node("Double", ["x"], ["y"], domain="mine")
    proto = model([node], [tensor("x", [3])], [tensor("y", [3])], functions=[double],
                  domains=["mine"])  # fmt: skip
    assert torch.equal(weft.from_onnx(proto)(torch.ones(3)), torch.full((3,), 2.0))


def test_an_operator_that_onnx_defines_by_others(compiled_only):
    """Without a rule of its own."""
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
    shape = [1, 2, 5, 8]
    inputs = [tensor(name, shape) for name in "qkv"]
    program = weft.from_onnx(model([node], inputs, [tensor("y", shape)], opset=23))
    q, k, v = (torch.randn(shape) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(program(q, k, v), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind, bounds", [
    (torch.float32, (-math.inf, math.inf)), (torch.int32, (-(2**31), 2**31 - 1)),
    (torch.bool, (False, True)),
])  # fmt: skip
def test_extrema_of_nothing(kind, bounds):
    number = helper.np_dtype_to_tensor_dtype(torch.empty(0, dtype=kind).numpy().dtype)
    nodes = [
        helper.make_node("ReduceMax", ["x", "axes"], ["largest"], keepdims=0),
        helper.make_node("ReduceMin", ["x", "axes"], ["least"]),
    ]
    outputs = [tensor("largest", None, number), tensor("least", None, number)]
    axes = initializer("axes", torch.tensor([1]))
    program = weft.from_onnx(model(nodes, [tensor("x", [2, 0], number)], outputs, [axes], opset=20))
    largest, least = program(torch.empty(2, 0, dtype=kind))
    assert largest.tolist() == [bounds[0]] * 2 and least.tolist() == [[bounds[1]]] * 2


def test_softmax_before_operator_set_13_is_over_all_axes_behind():
    x = torch.randn(2, 3, 4)
    for opset, expected in ((12, x.reshape(2, 12).softmax(1).reshape(2, 3, 4)), (13, x.softmax(1))):
        node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
        proto = model([node], [tensor("x", [2, 3, 4])], [tensor("y", [2, 3, 4])], opset=opset)
        torch.testing.assert_close(weft.from_onnx(proto)(x), expected)


def test_addition_before_operator_set_7_broadcasts_along_an_axis():
    node = helper.make_node("Add", ["x", "b"], ["y"], axis=1, broadcast=1)
    inputs = [tensor("x", [2, 3, 4]), tensor("b", [3])]
    program = weft.from_onnx(model([node], inputs, [tensor("y", [2, 3, 4])], opset=6))
    x, b = torch.randn(2, 3, 4), torch.randn(3)
    torch.testing.assert_close(program(x, b), x + b[:, None])


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_integers_wrap_and_compare(dtype):
    kind = helper.np_dtype_to_tensor_dtype(torch.empty(0, dtype=dtype).numpy().dtype)
    nodes = [
        helper.make_node("Sub", ["a", "b"], ["difference"]),
        helper.make_node("Max", ["a", "b"], ["largest"]),
        helper.make_node("Less", ["a", "b"], ["less"]),
    ]
    inputs = [tensor("a", [2], kind), tensor("b", [2], kind)]
    outputs = [tensor("difference", [2], kind), tensor("largest", [2], kind)]
    outputs.append(tensor("less", [2], TensorProto.BOOL))
    top = torch.iinfo(dtype).max
    a, b = torch.tensor([1, top], dtype=dtype), torch.tensor([2, 1], dtype=dtype)
    difference, largest, less = weft.from_onnx(model(nodes, inputs, outputs))(a, b)
    assert difference.tolist() == [top, top - 1]
    assert largest.tolist() == [2, top]
    assert less.tolist() == [True, False]


def refused(nodes, match, opset=17, domains=(), kind=errors.UnsupportedError):
    proto = model(nodes, [tensor("x", [3])], [tensor("y", [3])], opset=opset, domains=domains)
    with pytest.raises(kind, match=match):
        weft.from_onnx(proto)


def test_unknown_operators_are_named():
    node = helper.make_node("Frobnicate", ["x"], ["y"], domain="com.example", name="n7")
    refused([node], "operator Frobnicate of com.example 1, node n7: it is not known",
            domains=["com.example"])  # fmt: skip
    node = helper.make_node("Gelu", ["x"], ["y"])
    refused([node], "Gelu of ai.onnx 17, node that makes 'y': it is known from operator set 20")
    node = helper.make_node("Relu", ["x"], ["y"])
    refused([node], "operator sets up to 26 are known", opset=99)
    node = helper.make_node("Relu", ["x"], ["y"], slope=2.0)
    refused([node], "attribute slope is not known")
    node = helper.make_node("Relu", ["x", "x"], ["y"])
    refused([node], "a form with 2 inputs is not known")


def test_models_that_make_no_sense(tmp_path):
    node = helper.make_node("Relu", ["nothing"], ["y"])
    with pytest.raises(errors.ModelError, match="a value 'nothing' before its use"):
        weft.from_onnx(model([node], [], [tensor("y", [3])]))()
    path = tmp_path / "text.onnx"
    path.write_text("this is no model")
    with pytest.raises(errors.ModelError, match="text.onnx"):
        weft.from_onnx(path)
    with pytest.raises(errors.ModelError):
        weft.from_onnx(b"")
    apart = mlp()[0]
    onnx.external_data_helper.convert_model_to_external_data(apart, size_threshold=0)
    onnx.save(apart, tmp_path / "apart.onnx")
    for file in tmp_path.iterdir():
        if file.suffix not in (".onnx", ".txt"):
            file.unlink()
    with pytest.raises(errors.ModelError, match="fc.weight"):
        weft.from_onnx(tmp_path / "apart.onnx")
    with pytest.raises(OSError):
        weft.from_onnx(tmp_path / "none.onnx")
    with pytest.raises(TypeError, match="expected a path, bytes or ModelProto, found int"):
        weft.from_onnx(3)
    buffer = io.BytesIO()
    torch.save({"a": 1}, buffer)
    with pytest.raises(errors.ModelError):
        weft.from_onnx(buffer.getvalue())


@pytest.mark.parametrize(
    "value, message",
    [
        (torch.randn(3, 8).double(), "expected torch.float32, found torch.float64"),
        ([1.0], "expected a torch.Tensor, found list"),
    ],
)
def test_inputs_are_what_the_model_declares(value, message):
    with pytest.raises(errors.ArgumentError, match=message):
        weft.from_onnx(mlp()[0])(value)


def test_shapes_that_do_not_fit_together_are_said_with_the_node():
    node = helper.make_node("MatMul", ["x", "z"], ["y"], name="product")
    inputs = [tensor("x", ["a", "b"]), tensor("z", ["c", "d"])]
    program = weft.from_onnx(model([node], inputs, [tensor("y", None)]))
    with pytest.raises(errors.ModelError, match="operator MatMul of ai.onnx 17, node product"):
        program(torch.randn(3, 9), torch.randn(3, 9))


def test_the_module_can_be_copied_and_stored():
    program, x = weft.from_onnx(mlp()[0]), torch.randn(3, 8)
    for twin in (copy.deepcopy(program.module), pickle.loads(pickle.dumps(program.module))):
        torch.testing.assert_close(twin(x), program(x))


def test_every_rule_knows_the_attributes_of_its_newest_operator():
    """Strings and sparse constants are the ones left out on purpose."""
    left_out = {"Constant": {"value_string", "value_strings", "sparse_value"}}
    for domain, name in operators():
        opset = 26 if domain == "" else 1
        try:
            schema = onnx.defs.get_schema(name, opset, domain)
        except onnx.defs.SchemaError:
            continue  # newer than what is known
        inputs = tuple("abcdefghijklmnop"[: schema.min_input])
        rule = rule_for(Node(name, domain, "", inputs, ("y",), opset))
        missing = set(schema.attributes) - rule.attributes - left_out.get(name, set())
        assert not missing, f"{name}: {missing}"


def test_without_the_package(monkeypatch):
    for name in [name for name in sys.modules if name == "onnx" or name.startswith("weft.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError):
        weft.from_onnx("model.onnx")


def test_pads_of_convolutions_may_differ(compiled_only):
    torch.manual_seed(2)
    w = torch.randn(3, 2, 3, 3)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[0, 1, 2, 0], strides=[2, 1])
    proto = model([node], [tensor("x", [1, 2, 7, 6])], [tensor("y", None)], [initializer("w", w)])
    x = torch.randn(1, 2, 7, 6)
    padded = torch.nn.functional.pad(x, (1, 0, 0, 2))
    expected = torch.nn.functional.conv2d(padded, w, stride=(2, 1))
    torch.testing.assert_close(weft.from_onnx(proto)(x), expected, rtol=1e-4, atol=1e-5)


def test_averages_do_not_count_what_ceil_mode_adds():
    node = helper.make_node(
        "AveragePool", ["x"], ["y"], kernel_shape=[3], strides=[2], ceil_mode=1, pads=[0, 1],
        count_include_pad=1,
    )  # fmt: skip
    program = weft.from_onnx(model([node], [tensor("x", [1, 1, 7])], [tensor("y", None)]))
    found = program(torch.arange(7.0).reshape(1, 1, 7)).flatten().tolist()
    assert len(found) == 4
    # The last window holds 6, one pad that counts and one place that does not.
    assert found[:3] == [1.0, 3.0, 5.0] and math.isclose(found[3], 3.0)

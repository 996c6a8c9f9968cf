# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="weft")`: whole models, graph breaks, parameters, gradients."""

import pytest
import torch

from weft.compiled.compiled import Compiled


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def graphs(monkeypatch):
    """What each of Dynamo's graphs has become."""
    made = []
    plain = Compiled.__init__

    def remember(self, *args):
        plain(self, *args)
        made.append(self)

    monkeypatch.setattr(Compiled, "__init__", remember)
    return made


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.GELU(), torch.nn.Linear(32, 5))


def transformer():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@pytest.mark.parametrize(
    ("make", "shape"), [(mlp, (7, 12)), (transformer, (2, 16, 32))], ids=["mlp", "transformer"]
)
@pytest.mark.parametrize("dynamic", [False, None])
def test_models(make, shape, dynamic, no_grad, compiled_only, graphs):
    model = make().eval()
    compiled = torch.compile(model, backend="weft", dynamic=dynamic)
    for batch in (shape[0], shape[0] + 1, shape[0]):
        x = torch.randn(batch, *shape[1:])
        torch.testing.assert_close(compiled(x), model(x), atol=1e-5, rtol=1e-5)
    if dynamic is False:  # otherwise Dynamo may make a third graph, for any batch
        assert sum(len(graph.artifact_paths) for graph in graphs) == 2


def test_graph_breaks(no_grad, compiled_only, graphs):
    def function(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y.relu() + 1

    compiled = torch.compile(function, backend="weft")
    x = torch.randn(3, 4)
    torch.testing.assert_close(compiled(x), function(x))
    assert len(graphs) == 2


def test_data_dependent_branch(no_grad, compiled_only):
    def function(x):
        y = x * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    compiled = torch.compile(function, backend="weft")
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(compiled(x), function(x))


def test_weights_are_live(no_grad, compiled_only, graphs):
    model = mlp()
    compiled = torch.compile(model, backend="weft")
    x = torch.randn(7, 12)
    compiled(x)
    model[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), model(x))
    assert [len(graph.artifact_paths) for graph in graphs] == [1]


def test_buffers_are_written(no_grad, compiled_only):
    model, twin = (torch.nn.BatchNorm1d(4) for _ in range(2))
    compiled = torch.compile(model, backend="weft")
    for _ in range(2):
        x = torch.randn(6, 4)
        torch.testing.assert_close(compiled(x), twin(x))
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_gradients_are_pytorchs():
    model = mlp()
    compiled = torch.compile(model, backend="weft")
    x = torch.randn(7, 12)
    compiled(x).sum().backward()
    mine = model[0].weight.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    torch.testing.assert_close(mine, model[0].weight.grad)


def test_options_reach_the_compiler(no_grad, graphs):
    compiled = torch.compile(mlp(), backend="weft", options={"isa": "avx2", "threads": 1})
    compiled(torch.randn(7, 12))
    (graph,) = graphs
    assert (graph.options.isa, graph.options.threads) == ("avx2", 1)

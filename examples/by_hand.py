# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A classifier of Fashion-MNIST compiled by hand: built op by op, rewritten, fused, lowered, run.

`python -m examples.by_hand` trains it for some seconds, then compares the classes of all test
images with PyTorch's.
"""

from __future__ import annotations

import numpy as np
import torch

from examples.fashion_mnist import Mlp, load, train
from weft import ir
from weft.ir import loops, ops

TRAINED_ON = 20_000


def build(weights: dict[str, torch.Tensor], batch: int) -> ir.Module:
    """The network of `examples.fashion_mnist.Mlp`, with its weights as constants."""
    builder = ir.Builder()
    with builder.function("main", x=ir.tensor(batch, 784)) as (x,):
        w0, w1 = (ops.transpose(weights[name], [1, 0]) for name in ("1.weight", "3.weight"))
        b0, b1 = (weights[name] for name in ("1.bias", "3.bias"))
        hidden = ops.add(x @ w0, ops.broadcast_in_dim(b0, [1], result_type=(batch, 128)))
        hidden = ops.max(hidden, np.zeros((batch, 128), np.float32))
        out = ops.add(hidden @ w1, ops.broadcast_in_dim(b1, [1], result_type=(batch, 10)))
        builder.returns(out)
    return builder.module


@ir.module_pass(name="fuse-matmul-add", level=2)
def fuse_matmul_add(module: ir.Module) -> None:
    """Each sum of a product, which nothing else reads, becomes a primitive function."""
    rewriter = ir.Rewriter(module)
    for add in rewriter.walk("add"):
        product = add.operands[0].producer
        if add.parent.is_primitive or product is None or product.name != "dot_general":
            continue
        if product.users != [add]:
            continue  # it would be computed twice
        operands = [*product.operands, add.operands[1]]
        fused = rewriter.add_function(
            f"fused_matmul_add{len(module) - 1}",
            [value.type for value in operands],
            lambda x, w, b, dims=product.attributes: ops.add(ops.dot_general(x, w, **dims), b),
            attributes={"weft.primitive": True},
        )
        with rewriter.before(add):
            rewriter.replace(add, ir.call(fused, *operands))
    module.remove_unused()


def matmul(op, x, w):
    k = loops.reduce_axis(x.shape[1])
    return loops.compute(op.result.shape, lambda i, j: loops.sum(x[i, k] * w[k, j], k))


def add(op, x, y):
    return loops.compute(x.shape, lambda i, j: x[i, j] + y[i, j])


def relu(op, x, zero):
    return loops.compute(x.shape, lambda i, j: loops.max(x[i, j], zero[i, j]))


def transpose(op, x):
    return loops.compute(op.result.shape, lambda i, j: x[j, i])


BODIES = {"dot_general": matmul, "add": add, "max": relu, "transpose": transpose}


def main(trained_on: int = TRAINED_ON, batch: int = 1000) -> int:
    """Prints each step. Returns how many classes differ from PyTorch's."""
    torch.manual_seed(0)
    images, labels = load("train")
    model = Mlp()
    train(model, images[:trained_on], labels[:trained_on])

    module = build(dict(model.named_parameters()), batch)
    fuse_matmul_add(module)
    print("functions:", *(function.name for function in module))
    ir.lower_ops(module, BODIES)
    ir.fuse_loops(module)
    print(module["fused_matmul_add0"].loops())

    images, labels = load("t10k")
    with torch.no_grad():
        expected = model(images).argmax(1)
    lowered = module.lower("kernels")
    parts = images.flatten(1).split(batch)
    run = ir.executable(lowered, "kernels")
    found = torch.cat([run([part])[0].argmax(1) for part in parts])
    differing = int((found != expected).sum())
    print(f"{len(found)} images, {(found == labels).float().mean():.1%} right;", end=" ")
    print(f"{differing} classes differ from PyTorch's")
    return differing


if __name__ == "__main__":
    raise SystemExit(main() != 0)

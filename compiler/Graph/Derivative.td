// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The derivative of an op, an interface like its iteration and its decomposition. The rules are
// attached by registerDerivatives, a file a family.
#ifndef WEFT_GRAPH_DERIVATIVE_TD
#define WEFT_GRAPH_DERIVATIVE_TD

include "mlir/IR/OpBase.td"

def Weft_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op that knows the product of a vector with its Jacobian. Cotangents are row-major and of
    their value's element type. What PyTorch leaves to its own convention (relu at 0, ties of a
    maximum) an op says by the attribute `weft.subgradient`; an op marked `weft.stops_gradient` is
    a constant to the derivative.
  }];
  let methods = [InterfaceMethod<
    "Emit the cotangents of the operands that want one, from those of the results.",
    "::llvm::LogicalResult", "buildVJP", (ins "::weft::Cotangents &":$cotangents)>,
  InterfaceMethod<[{
    Whether the rule repeats steps of the op's decomposition (a norm's statistics), which a joint
    graph then computes once by decomposing the op.
  }], "bool", "repeatsSteps", (ins), [{}], [{ return false; }]>];
}

#endif

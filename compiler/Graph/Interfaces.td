// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_GRAPH_INTERFACES_TD
#define WEFT_GRAPH_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Weft_CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose meaning is a small program of primitive `weft` ops. Composites stay whole
    through graph optimisation and are decomposed ahead of fusion.
  }];
  let methods = [InterfaceMethod<
    "Emit the op's meaning as primitive ops ahead of it and return the replacement of each result.",
    "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
    (ins "::mlir::OpBuilder &":$builder)>];
}

#endif

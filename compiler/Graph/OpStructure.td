// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an op's loops run, and what it does to layouts: interfaces, like its decomposition and its
// derivative. Each family's .cpp has the rules of its ops beside their verifiers.
#ifndef WEFT_GRAPH_OPSTRUCTURE_TD
#define WEFT_GRAPH_OPSTRUCTURE_TD

include "mlir/IR/OpBase.td"

def Weft_IterationOpInterface : OpInterface<"IterationOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose loops are known, so that it can be fused. Elementwise ops need no rule: each
    operand is read as the result is written.
  }];
  let methods = [InterfaceMethod<
    "Describe the loops, and how each operand and result is indexed by them. Shapes are static.",
    "void", "describeIteration", (ins "::weft::IterationBuilder &":$builder)>];
}

def Weft_LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op of one result that can keep the layout of its first operand. Its other operands are
    row-major. Ops without it, that are not elementwise either, are row-major unless a pass chooses
    something else for them (contractions, attention, concatenations).
  }];
  let methods = [InterfaceMethod<[{
      The layout of the result in which no element of the first operand has to be moved (null:
      row-major), or failure if the op needs a row-major operand.
    }], "::llvm::FailureOr<::weft::LayoutAttr>", "keptLayout", (ins)>];
}

#endif

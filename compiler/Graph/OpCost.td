// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What it takes to compute an op's results, and where kernels have them: interfaces, like its
// loops. Each family's .cpp says it of its ops.
#ifndef WEFT_GRAPH_OPCOST_TD
#define WEFT_GRAPH_OPCOST_TD

include "mlir/IR/OpBase.td"

def Weft_WorkOpInterface : OpInterface<"WorkOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose work is none of these: a function of each element, which elementwise ops are;
    some functions of each element, which decomposable ones are; and to move all elements.
  }];
  let methods = [InterfaceMethod<
    "What it takes to compute the results again. Shapes are static.",
    "::weft::OpWork", "work", (ins)>];
}

def Weft_PlacementOpInterface : OpInterface<"PlacementOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op of which is known, before kernels are made, whether they store its results.
  }];
  let methods = [InterfaceMethod<
    "What is known of its results.", "::weft::Placement", "placement", (ins)>];
}

#endif

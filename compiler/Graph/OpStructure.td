// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an op's loops run, what it does to layouts, and what it is for several steps at once:
// interfaces, like its decomposition and its derivative. Each family's .cpp has the rules of its ops beside their verifiers.
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
    row-major. Ops that have neither this nor SharedLayoutOpInterface, and are not elementwise
    either, are row-major unless a pass chooses something else for them by cost (contractions,
    attention).
  }];
  let methods = [
    InterfaceMethod<[{
      The layout of the result in which no element of the first operand has to be moved (null:
      row-major), or failure if the op needs a row-major operand.
    }], "::llvm::FailureOr<::weft::LayoutAttr>", "keptLayout", (ins)>,
    InterfaceMethod<[{
      The layout that is nearest to the first operand's own and that the op can keep; its own if
      there is no such layout but row-major.
    }], "::weft::LayoutAttr", "nearestLayout", (ins), /*methodBody=*/"", [{
      return ::weft::layoutOf(
          ::llvm::cast<::mlir::RankedTensorType>($_op->getOperand(0).getType()));
    }]>,
    InterfaceMethod<[{
      Whether the result has the first operand's dims, and images stay channels-last: what is
      known ahead of any layout.
    }], "bool", "keepsImages", (ins), /*methodBody=*/"", "return false;">];
}

def Weft_SharedLayoutOpInterface : OpInterface<"SharedLayoutOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose operands and result all have one layout. Elementwise ops are that without it, and
    have any layout.
  }];
  let methods = [InterfaceMethod<
    "Whether that layout may be `layout`, which is not row-major.",
    "bool", "mayHaveLayout", (ins "::weft::LayoutAttr":$layout)>];
}

def Weft_ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose result kernels read in the memory of its first operand.
  }];
  let methods = [InterfaceMethod<[{
      Where neighbours in memory lie in the result, if they lie in the first operand as `operand`
      says; nothing if they are not all in the result.
    }], "::std::optional<::weft::InnermostDim>", "innermostDim",
    (ins "::weft::InnermostDim":$operand)>];
}

def Weft_WindowOpInterface : OpInterface<"WindowOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose result has, along some dims, an element for each window at whole steps that lies
    within the first operand, as the op pads it.
  }];
  let methods = [InterfaceMethod<
    "The windows along these dims.", "::llvm::SmallVector<::weft::DimWindows>", "windows", (ins)>];
}

def Weft_SumOpInterface : OpInterface<"SumOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose results are sums of products of its operands' elements.
  }];
  let methods = [
    InterfaceMethod<[{
      Operands without which there is nothing to sum: if one of them is empty, all elements of
      the results are zero.
    }], "::mlir::Operation::operand_range", "summed", (ins), /*methodBody=*/"",
      "return $_op->getOperands();">,
    StaticInterfaceMethod<"Whether a kernel of such an op reads all of its operands.",
      "bool", "readsAll", (ins), /*methodBody=*/"", "return true;">];
}

def Weft_StackableOpInterface : OpInterface<"StackableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op of one result that is one op of its kind, too, on many first operands that are stacked
    along a new first dim, and the same other operands. Elementwise ops are that for all operands,
    without it.
  }];
  let methods = [
    InterfaceMethod<"Whether this op, by its attributes, is one.",
      "bool", "isStackable", (ins), /*methodBody=*/"", "return true;">,
    InterfaceMethod<[{
      The result of type `type` for `first`, the stack, and the others, `rest`. Shapes are static.
    }], "::mlir::Value", "stacked", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::RankedTensorType":$type, "::mlir::Value":$first, "::mlir::ValueRange":$rest)>];
}

#endif

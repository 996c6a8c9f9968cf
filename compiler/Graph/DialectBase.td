// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The weft dialect, and how its enums are attributes.
#ifndef WEFT_GRAPH_DIALECTBASE_TD
#define WEFT_GRAPH_DIALECTBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Weft_Dialect : Dialect {
  let name = "weft";
  let summary = "Tensor programs as a graph of pure, explicitly broadcast ops";
  let description = [{
    A function of `weft` ops is the meaning of one PyTorch program: values are ranked
    tensors, every op but `torch_fallback` and `assert` is pure, and nothing is implicit:
    operands of elementwise ops have one shape and one element type, so broadcasts and
    casts are ops of their own. Composite ops (softmax, norm, attention, ...) stay whole
    until they are decomposed into primitives ahead of fusion.
  }];
  let cppNamespace = "::weft";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

class Weft_Enum<string name, string summary, list<string> cases>
    : I32EnumAttr<name, summary,
        !foreach(i, !range(!size(cases)), I32EnumAttrCase<cases[i], i>)> {
  let cppNamespace = "::weft";
  let genSpecializedAttr = 0;
}
class Weft_EnumAttr<EnumInfo info, string mnemonic>
    : EnumAttr<Weft_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

#endif

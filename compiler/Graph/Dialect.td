// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The weft dialect, its enums and its layout attribute.
#ifndef WEFT_GRAPH_DIALECT_TD
#define WEFT_GRAPH_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"

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

def Weft_ReduceKind : Weft_Enum<"ReduceKind", "how a reduction combines",
    ["sum", "prod", "max", "min", "any", "all"]>;
def Weft_ReduceKindAttr : Weft_EnumAttr<Weft_ReduceKind, "reduce_kind">;

def Weft_ScatterKind : Weft_Enum<"ScatterKind", "what an update does to an element",
    ["set", "sum", "prod", "max", "min"]>;
def Weft_ScatterKindAttr : Weft_EnumAttr<Weft_ScatterKind, "scatter_kind">;

def Weft_ComparePredicate : Weft_Enum<"ComparePredicate", "comparison",
    ["eq", "ne", "lt", "le", "gt", "ge"]>;
def Weft_ComparePredicateAttr : Weft_EnumAttr<Weft_ComparePredicate, "predicate">;

def Weft_GeluKind : Weft_Enum<"GeluKind", "which GELU", ["erf", "tanh"]>;
def Weft_GeluKindAttr : Weft_EnumAttr<Weft_GeluKind, "gelu_kind">;

def Weft_LayoutAttr : AttrDef<Weft_Dialect, "Layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "Where the elements of a tensor lie in memory";
  let description = [{
    The encoding of a tensor type. A tensor without one is row-major. `order` lists the
    logical dims from outermost to innermost; with a tile, dim `tileDim` is split into
    ceil(size / tileSize) blocks, which take its place in `order`, and tileSize elements,
    which become the innermost physical dim. The last block is padded.

    `tensor<2x128x768xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>` holds 2x2x768x64
    elements: blocks of 64 tokens, feature-major inside. `#weft.layout<[0, 2, 3, 1]>`
    is channels-last.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$order,
                        DefaultValuedParameter<"int64_t", "-1">:$tileDim,
                        DefaultValuedParameter<"int64_t", "0">:$tileSize);
  let assemblyFormat = "`<` `[` $order `]` (`,` `tile` $tileDim^ `by` $tileSize)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool hasTile() const { return getTileDim() >= 0; }
    /// The row-major physical shape of a tensor of logical `shape`.
    ::llvm::SmallVector<int64_t> getPhysicalShape(::llvm::ArrayRef<int64_t> shape) const;
  }];
}

#endif

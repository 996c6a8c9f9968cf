// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The enums of the ops, and the layout attribute.
#ifndef WEFT_GRAPH_DIALECT_TD
#define WEFT_GRAPH_DIALECT_TD

include "compiler/Graph/DialectBase.td"
include "mlir/IR/TensorEncoding.td"

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

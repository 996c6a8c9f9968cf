// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the definitions of all ops share: element types and op classes.
#ifndef WEFT_GRAPH_OPBASE_TD
#define WEFT_GRAPH_OPBASE_TD

include "compiler/Graph/Dialect.td"
include "compiler/Graph/Interfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Weft_Element : AnyTypeOf<[F64, F32, BF16, F16, I64, I32, I16, I8, UI8, I1]>;
def Weft_Tensor : RankedTensorOf<[Weft_Element]>;
def Weft_FloatTensor : RankedTensorOf<[F64, F32, BF16, F16]>;
def Weft_BoolTensor : RankedTensorOf<[I1]>;
def Weft_IntTensor : RankedTensorOf<[I64, I32, I16, I8, UI8]>;

// Explained in compiler/Graph/OpTraits.h.
class Weft_Trait<string name> : NativeOpTrait<name> { let cppNamespace = "::weft"; }
def Weft_EmittedWhole : Weft_Trait<"EmittedWhole">;
def Weft_EmittedWithLayouts : Weft_Trait<"EmittedWithLayouts">;
def Weft_LinearContraction : Weft_Trait<"LinearContraction">;
def Weft_SharesMemory : Weft_Trait<"SharesMemory">;

class Weft_Op<string mnemonic, list<Trait> traits = []>
    : Op<Weft_Dialect, mnemonic, traits>;
class Weft_PureOp<string mnemonic, list<Trait> traits = []>
    : Weft_Op<mnemonic, !listconcat([Pure], traits)>;

// An op whose result types follow from its operands and attributes. The verifier and the
// inference share one check of the constraints, so that a builder without an op at hand
// (the frontend's) reports what the verifier would. A layout on a result is a pass's
// choice: inference makes row-major results, and accepts any; `accepts` decides which types
// stand for the inferred ones.
class Weft_InferredOp<string mnemonic, list<Trait> traits = [],
                      string accepts = "equalUpToLayout">
    : Weft_PureOp<mnemonic, !listconcat([InferTypeOpAdaptorWithIsCompatible], traits)> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Check the numbered constraints, reporting through `error`.
    static ::llvm::LogicalResult check(Adaptor adaptor, ::weft::ErrorFn error);
    /// The result types of operands and attributes that passed `check`.
    static ::llvm::SmallVector<::mlir::Type> infer(Adaptor adaptor);
  }];
  let extraClassDefinition = !subst("$accepts", accepts, [{
    ::llvm::LogicalResult $cppClass::verify() {
      return check(Adaptor(*this), [&] { return emitOpError(); });
    }
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      auto error = [&] {
        return location ? ::mlir::emitError(*location) << "'" << getOperationName() << "' op "
                        : ::mlir::InFlightDiagnostic();
      };
      if (::mlir::failed(check(adaptor, error)))
        return ::mlir::failure();
      types = infer(adaptor);
      return ::mlir::success();
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::weft::$accepts(lhs, rhs);
    }
  }]);
}

#endif

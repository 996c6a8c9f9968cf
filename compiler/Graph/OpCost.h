// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interfaces by which ops say what computing them takes and where kernels have their results,
// and how a family's file says it of its ops.
#ifndef WEFT_COMPILER_GRAPH_OPCOST_H
#define WEFT_COMPILER_GRAPH_OPCOST_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// What it takes to compute an op's results again.
struct OpWork {
  enum class Kind {
    Nothing,   ///< a view, or what is meant to be computed again
    Reading,   ///< another way to read the operand, in what reads the result
    Moving,    ///< operands and results are moved once, in a loop of its own
    Additions, ///< `count` additions, or as much, for each element of the largest tensor
    Products,  ///< `count` multiplications and additions in all
    TooMuch,   ///< is never done again
  };
  Kind kind = Kind::Moving;
  int64_t count = 0;

  static constexpr OpWork additions(int64_t count) { return {Kind::Additions, count}; }
  /// As polynomials, exp and the like are.
  static constexpr OpWork functions(int64_t count) { return additions(8 * count); }
  static constexpr OpWork products(int64_t count) { return {Kind::Products, count}; }
};

/// What kernels do with an op's results, so far as the op alone decides it.
struct Placement {
  bool stored = false;    ///< write them to memory, whatever reads them
  bool repeated = false;  ///< compute them wherever they are read
  bool moved = false;     ///< read them as elements of operands, at places that are known
  bool view = false;      ///< read them in the operand's memory, each element once at most
  bool anyLayout = false; ///< compute them in any layout alike
};

} // namespace weft

#include "compiler/Graph/OpCost.h.inc"

namespace weft {

/// Of any op: what it says, or what follows of what it is.
OpWork workOf(mlir::Operation *op);
/// Nothing is known of ops that do not say it, nor of null, an argument's.
Placement placementOf(mlir::Operation *op);

template <typename OpTy, OpWork constant>
struct WorkModel : WorkOpInterface::ExternalModel<WorkModel<OpTy, constant>, OpTy> {
  OpWork work(mlir::Operation *) const { return constant; }
};
/// Says of each of OpTys that it takes `work`.
template <OpWork work, typename... OpTys> void takes(mlir::MLIRContext *context) {
  (OpTys::template attachInterface<WorkModel<OpTys, work>>(*context), ...);
}

/// Attaches `rule`, a function or lambda from OpTy to OpWork, to OpTy.
template <typename OpTy, auto rule>
struct WorkRule : WorkOpInterface::ExternalModel<WorkRule<OpTy, rule>, OpTy> {
  OpWork work(mlir::Operation *op) const { return rule(mlir::cast<OpTy>(op)); }
};
template <typename OpTy, auto rule> void takes(mlir::MLIRContext *context) {
  OpTy::template attachInterface<WorkRule<OpTy, rule>>(*context);
}

template <typename OpTy, Placement constant>
struct PlacementModel : PlacementOpInterface::ExternalModel<PlacementModel<OpTy, constant>, OpTy> {
  Placement placement(mlir::Operation *) const { return constant; }
};
/// Says `placement` of each of OpTys.
template <Placement placement, typename... OpTys> void place(mlir::MLIRContext *context) {
  (OpTys::template attachInterface<PlacementModel<OpTys, placement>>(*context), ...);
}

} // namespace weft

#endif

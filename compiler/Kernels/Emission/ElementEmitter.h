// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emits the value of a tensor at one point of a loop nest, on demand: producers are followed
// through linalg and tensor ops up to memory, so fusion through transposes, broadcasts, reshapes,
// slices and pads is index arithmetic.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_ELEMENTEMITTER_H
#define WEFT_COMPILER_KERNELS_EMISSION_ELEMENTEMITTER_H

#include "compiler/Kernels/Index/IndexSpace.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include <functional>
#include <map>

namespace weft {

/// A value at one point: a scalar shared by all lanes, or one vector per lane group.
struct Emitted {
  llvm::SmallVector<mlir::Value, 4> parts;
  bool uniform = true;
};

/// Vectorization of a point: `groups` vectors of `width` lanes along loop variable `dim`, of which
/// the first `valid` lanes in all are valid.
struct Lanes {
  int64_t dim = -1;
  int64_t width = 1;
  int64_t groups = 1;
  int64_t valid = 1;
  bool wholeVectors = false; ///< the first lane is a multiple of the width
  bool isScalar() const { return dim < 0; }
};

/// 0 <= expr < size.
struct Bound {
  mlir::AffineExpr expr;
  int64_t size;
};

/// Row-major memory of a tensor.
struct Buffer {
  mlir::Value flat; ///< rank-1 memref
  llvm::SmallVector<int64_t> shape;
};

class ElementEmitter {
public:
  /// Supplies a tensor's value at an index in place of its defining op; nullopt: follow the op. The
  /// value may be wider than the tensor's elements if all its users widen them.
  using Override = std::function<std::optional<Emitted>(ElementEmitter &, mlir::Value,
                                                        llvm::ArrayRef<mlir::AffineExpr>)>;

  /// Puts the elements of a constant into a read-only global.
  using Tabulate = std::function<Buffer(mlir::DenseElementsAttr)>;

  ElementEmitter(mlir::OpBuilder &builder, IndexSpace &space, Tabulate tabulate)
      : builder(builder), space(space), tabulate(std::move(tabulate)) {}

  /// Sets the current value of loop variable `dim`; of the lane dim, that of its first lane.
  void setDim(unsigned dim, mlir::Value value);
  mlir::Value dimValue(unsigned dim) const { return dimValues[dim]; }
  void setLanes(Lanes lanes);
  const Lanes &getLanes() const { return lanes; }
  void setBuffer(mlir::Value tensor, Buffer buffer) { buffers[tensor] = std::move(buffer); }
  const Buffer *getBuffer(mlir::Value tensor) const;
  void setOverride(Override hook) { overrideHook = std::move(hook); }

  /// Forget the values emitted so far: they do not dominate the code emitted next.
  void forget() { memo.clear(); }

  Emitted emitAt(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index);
  Emitted load(const Buffer &buffer, llvm::ArrayRef<mlir::AffineExpr> index);
  /// Stores the lanes for which `within` holds; of lanes that share an element, only the first such
  /// lane.
  void store(const Buffer &buffer, llvm::ArrayRef<mlir::AffineExpr> index, const Emitted &value,
             llvm::ArrayRef<Bound> within = {});
  /// Stores the result of `value` if 0 <= expr < size; `value` is evaluated only then.
  void storeWithin(mlir::AffineExpr expr, int64_t size, const Buffer &buffer,
                   llvm::ArrayRef<mlir::AffineExpr> index, llvm::function_ref<Emitted()> value);

  /// Emits the ops of a generic's body with these block arguments; returns what it yields.
  llvm::SmallVector<Emitted> emitBody(mlir::linalg::GenericOp generic,
                                      llvm::ArrayRef<mlir::AffineExpr> iteration,
                                      llvm::ArrayRef<Emitted> arguments);

  /// `expr` as an SSA index; a lane dim stands for its first lane.
  mlir::Value indexValue(mlir::AffineExpr expr);
  /// `value` as one vector per lane group.
  llvm::SmallVector<mlir::Value, 4> asVectors(const Emitted &value);
  /// The constant mask of a group's valid lanes, or null if all are valid.
  mlir::Value validMask(int64_t group);

  /// Sets `flag` where some producer cannot be followed: the emitted code is then thrown away.
  void reportTo(bool &flag) { failed = &flag; }

  mlir::OpBuilder &builder;
  IndexSpace &space;
  mlir::Location loc = builder.getUnknownLoc();

private:
  struct Guard {
    mlir::AffineExpr expr;
    int64_t low, high; ///< low <= expr < high
  };
  using MemoKey = std::pair<void *, llvm::SmallVector<void *, 4>>;

  Emitted emitProducer(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index);
  Emitted emitGeneric(mlir::linalg::GenericOp generic, mlir::OpResult result,
                      llvm::ArrayRef<mlir::AffineExpr> index);
  Emitted emitPad(mlir::tensor::PadOp pad, llvm::ArrayRef<mlir::AffineExpr> index);
  Emitted emitInsertSlice(mlir::tensor::InsertSliceOp insert,
                          llvm::ArrayRef<mlir::AffineExpr> index);
  Emitted emitConstant(mlir::Operation *constant, llvm::ArrayRef<mlir::AffineExpr> index);
  Emitted emitExtract(mlir::tensor::ExtractOp extract, llvm::ArrayRef<Emitted> operands,
                      llvm::ArrayRef<std::optional<mlir::AffineExpr>> exprs);
  Emitted emitIndex(mlir::AffineExpr expr);
  Emitted emitScalarOp(mlir::Operation &op, llvm::ArrayRef<Emitted> operands);
  void underGuards(llvm::ArrayRef<Guard> conditions, llvm::function_ref<void()> emit);
  Emitted guarded(llvm::ArrayRef<Guard> conditions, llvm::function_ref<Emitted()> inside,
                  llvm::function_ref<Emitted()> outside);
  /// Adds the guard 0 <= expr < size unless it always holds; false if it never holds.
  bool addGuard(mlir::AffineExpr expr, int64_t size, llvm::SmallVectorImpl<Guard> &conditions);
  Emitted conditionOf(const Guard &guard);
  bool dependsOnLanes(mlir::AffineExpr expr) const;

  /// Loads at `position` by ShuffledLoads; nothing if the lanes' offsets are not constant or too
  /// many.
  std::optional<Emitted> loadWindows(const Buffer &buffer, mlir::AffineExpr position);
  /// Emits lane by lane: `each` runs with scalar lanes.
  Emitted emitPerLane(llvm::function_ref<mlir::Value()> each);
  /// The conjunction of the active guards: a scalar condition, and a mask per group; null if none.
  mlir::Value scalarGuard();
  mlir::Value laneMask(int64_t group);
  /// Guards that keep `index` within `shape`, where its range does not already.
  llvm::SmallVector<Guard> boundsOf(llvm::ArrayRef<mlir::AffineExpr> index,
                                    llvm::ArrayRef<int64_t> shape);

  /// Records that `tensor` cannot be followed and returns a placeholder.
  Emitted fail(mlir::Value tensor);
  Emitted zeroOf(mlir::Value tensor);

  Tabulate tabulate;
  bool ownFlag = false;
  bool *failed = &ownFlag;
  llvm::SmallVector<mlir::Value> dimValues;
  Lanes lanes;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
  Override overrideHook;
  llvm::SmallVector<Guard> guards;
  std::map<MemoKey, Emitted> memo;
};

/// The iteration point of `generic` at which result number `result` has `index`. Fails unless that
/// result's map is a permutation of all parallel dims.
llvm::FailureOr<Index> iterationAt(mlir::linalg::GenericOp generic, unsigned result,
                                   llvm::ArrayRef<mlir::AffineExpr> index, const IndexSpace &space);

/// The index of operand `operand` of `generic` at `iteration`.
Index operandIndex(mlir::linalg::GenericOp generic, mlir::OpOperand &operand,
                   llvm::ArrayRef<mlir::AffineExpr> iteration, const IndexSpace &space);

/// The source of a reshape, slice or cast and the index in it; nothing if `tensor` is not defined
/// by such a view.
std::optional<std::pair<mlir::Value, Index>>
throughView(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index, const IndexSpace &space);

bool isReduction(mlir::linalg::GenericOp generic);

} // namespace weft

#endif

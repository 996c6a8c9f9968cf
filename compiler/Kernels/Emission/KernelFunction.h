// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel during emission: its memref form, and the tensor form it is emitted from.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_KERNELFUNCTION_H
#define WEFT_COMPILER_KERNELS_EMISSION_KERNELFUNCTION_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/ElementEmitter.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace weft {

struct KernelFunction {
  /// Creates `emitted` beside `source`, with the signature of the loops stage.
  KernelFunction(mlir::func::FuncOp source, const TargetInfo &target);

  /// Erase the tensor form and give its name to the memref form.
  void replaceSource();
  /// Erase the memref form instead.
  void discard();

  /// Attributes that later stages and the report read.
  void setWork(int64_t flops);

  /// Whether only thread 0 computes.
  bool isSerial() const { return schedule.getSerial(); }

  /// Starts the diagnostic that says what in the schedule cannot be honoured, and why.
  mlir::InFlightDiagnostic refuse();

  /// Reserves per-thread scratch; returns a flat buffer of `elements` elements.
  mlir::Value scratch(mlir::Type element, int64_t elements);

  /// A small flat buffer on the stack, for tiles that do not fit registers.
  mlir::Value stackTile(mlir::Type element, int64_t elements);

  /// The elements of a constant, row-major, in a read-only global.
  Buffer table(mlir::DenseElementsAttr elements);

  /// This thread's static partition [low, high) of `total` equal pieces. Serial: thread 0 gets all.
  std::pair<mlir::Value, mlir::Value> share(int64_t total);

  /// Emits `body` for chunks [low, high) that together cover `total` equal pieces of work once.
  /// Each thread claims chunks of its own partition, in multiples of `least` pieces and of
  /// decreasing size, and then steals from the others', as cores may differ in speed or be
  /// preempted. If `least` is 0 or `total` is only a few times `least`, a partition is one chunk.
  void forEachPart(int64_t total, int64_t least,
                   llvm::function_ref<void(mlir::Value low, mlir::Value high)> body);

  /// The same for a body that handles one piece at a time.
  void forEachPiece(int64_t total, int64_t least,
                    llvm::function_ref<void(mlir::Value number)> body);

  /// The number of `total` pieces, with `work` in all, that amount to `enough` work; at least 1.
  static int64_t piecesOf(int64_t total, int64_t work, int64_t enough);

  /// The numbers of `weft.bound`, none if all of the kernel counts.
  llvm::ArrayRef<int64_t> bound() const;
  /// The size of a symbol in this call, index.
  mlir::Value sizeOf(int64_t symbol);
  /// Of `extent` equal rows along the bounded dim of a result, the first that does not count,
  /// index; the kernel is no attention and has a bound.
  mlir::Value rowsEnd(int64_t extent);

  /// An element emitter that knows the kernel's arguments.
  ElementEmitter elementEmitter(IndexSpace &space);

  mlir::func::FuncOp source, emitted;
  const TargetInfo &target;
  ScheduleAttr schedule; ///< null before the kernel is scheduled
  mlir::OpBuilder builder;
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> roots;  ///< tensors that the tensor form returns
  llvm::SmallVector<Buffer> rootBuffers; ///< buffers of the roots
  mlir::Value thread, threads;
  bool unfollowed = false; ///< an element emitter met a producer it cannot follow
  bool refused = false;    ///< a diagnostic says why

private:
  /// Moves the insertion point to the function's entry, which dominates all loops.
  void moveToStart();

  /// The first piece of the partition of thread `number`.
  /// Where rows end, by their number.
  llvm::SmallMapVector<int64_t, mlir::Value, 2> ends;
  llvm::SmallMapVector<int64_t, mlir::Value, 2> symbolSizes;
  mlir::Value border(mlir::Value total, mlir::Value number);
  void emitClaims(int64_t total, int64_t least, mlir::Value owner, int64_t set,
                  llvm::function_ref<void(mlir::Value low, mlir::Value high)> body);

  llvm::SmallVector<Buffer> argumentBuffers;
  llvm::SmallMapVector<mlir::Attribute, mlir::Value, 4> tables;
  mlir::Value scratchArgument, claimsArgument;
  int64_t scratchBytes = 0, claimSets = 0;
};

/// The tensors that a kernel in tensor form returns.
mlir::ValueRange rootsOf(mlir::func::FuncOp kernel);

/// The only op of type `OpT` in a kernel's tensor form; null if there is none or more than one.
template <typename OpT> OpT onlyOp(mlir::func::FuncOp kernel) {
  auto ops = kernel.getOps<OpT>();
  return llvm::hasSingleElement(ops) ? *ops.begin() : OpT();
}

using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;

/// scf.for from `low` to `high`; the body gets the induction variable and the carried values.
llvm::SmallVector<mlir::Value> emitLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                        mlir::Value low, mlir::Value high, int64_t step,
                                        mlir::ValueRange carried, LoopBody body);
llvm::SmallVector<mlir::Value> emitLoop(mlir::OpBuilder &builder, mlir::Location loc, int64_t low,
                                        int64_t high, int64_t step, mlir::ValueRange carried,
                                        LoopBody body);

/// Sets `dims` of the point's space, outermost first, from their row-major linear index.
void setFlat(ElementEmitter &point, llvm::ArrayRef<unsigned> dims, mlir::Value number);

/// Loop nest over `dims` of the point's space, outermost first; the body is emitted at each point.
void emitLoops(ElementEmitter &point, llvm::ArrayRef<unsigned> dims,
               llvm::function_ref<void()> body);
/// The same with carried values.
llvm::SmallVector<mlir::Value>
emitLoops(ElementEmitter &point, llvm::ArrayRef<unsigned> dims, mlir::ValueRange carried,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);

/// `value`, a floating-point constant, in all lanes.
mlir::Value emitSplat(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                      double value);

/// scf.if without results; no else branch if `otherwise` is null.
void emitIf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value condition,
            llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);

/// `body` for the first of `sizes`, which grow, that is no less than `count`; the last one is for
/// all greater counts, too.
void emitForCount(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value count,
                  llvm::ArrayRef<int64_t> sizes, llvm::function_ref<void(int64_t)> body);

} // namespace weft

#endif

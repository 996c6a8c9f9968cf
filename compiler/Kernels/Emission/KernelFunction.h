// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memref form of a kernel while it is being emitted, beside its tensor form.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_KERNELFUNCTION_H
#define WEFT_COMPILER_KERNELS_EMISSION_KERNELFUNCTION_H

#include "compiler/Kernels/Emission/ElementEmitter.h"
#include "compiler/Kernels/Emission/ScheduleOverride.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace weft {

/// The emitter's decisions, kept as `weft.schedule` on the kernel.
using ScheduleEntry = std::pair<llvm::StringRef, int64_t>;

struct KernelFunction {
  /// Creates `emitted` beside `source`, with the signature of the loops stage.
  KernelFunction(mlir::func::FuncOp source, const TargetInfo &target,
                 const ScheduleOverride &given);

  /// Erase the tensor form and give its name to the memref form.
  void replaceSource();
  /// Erase the memref form instead.
  void discard();

  /// Attributes that later stages and the report read.
  void setSchedule(llvm::ArrayRef<ScheduleEntry> schedule);
  void setWork(int64_t flops, bool serial);

  /// Whether thread 0 does everything: there is little to do, and it is not divided already.
  bool isSerial(bool isSmall) const;

  /// Whether weights come from memory, however little of them this kernel reads.
  bool hasColdWeights() const;

  /// Reserve per-thread scratch; returns a flat buffer of `elements` elements.
  mlir::Value scratch(mlir::Type element, int64_t elements);

  /// A flat buffer of few elements on the stack: what registers do not hold.
  mlir::Value stackTile(mlir::Type element, int64_t elements);

  /// The elements of a constant, row-major, in read-only memory beside the kernel.
  Buffer table(mlir::DenseElementsAttr elements);

  /// This thread's part [low, high) of `total` equal pieces of work. Serial: thread 0 takes all.
  std::pair<mlir::Value, mlir::Value> share(int64_t total, bool serial);

  /// Emits `body` for parts [low, high) of `total` equal pieces of work, which all threads
  /// together go through once. Each claims its own share, in parts of multiples of `least` pieces
  /// that grow shorter, and then what is left of the others': a processor may be slower than
  /// another, or be taken away for a while. Where `least` is 0, or few times that is all there is,
  /// a share is one part.
  void forEachPart(int64_t total, int64_t least, bool serial,
                   llvm::function_ref<void(mlir::Value low, mlir::Value high)> body);

  /// The same for a body that does one piece at a time.
  void forEachPiece(int64_t total, int64_t least, bool serial,
                    llvm::function_ref<void(mlir::Value number)> body);

  /// Of `total` pieces with `work` in all, as many as hold `enough` of it.
  static int64_t piecesOf(int64_t total, int64_t work, int64_t enough);

  /// A point emitter that knows the kernel's arguments.
  ElementEmitter elementEmitter(IndexSpace &space);

  mlir::func::FuncOp source, emitted;
  const TargetInfo &target;
  const ScheduleOverride &given; ///< for contractions
  mlir::OpBuilder builder;
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> roots;  ///< what the tensor form returns
  llvm::SmallVector<Buffer> rootBuffers; ///< where it goes
  mlir::Value thread, threads;
  bool unfollowed = false; ///< a point emitter met what it cannot follow
  bool refused = false;    ///< `given` does not fit; the user knows, no other emitter is asked

private:
  /// At the function's start, where every loop sees what is created.
  void moveToStart();

  /// The first piece of thread `number`, of `total`.
  mlir::Value border(mlir::Value total, mlir::Value number);
  void emitClaims(int64_t total, int64_t least, mlir::Value owner, int64_t set,
                  llvm::function_ref<void(mlir::Value low, mlir::Value high)> body);

  llvm::SmallVector<Buffer> argumentBuffers;
  llvm::SmallMapVector<mlir::Attribute, mlir::Value, 4> tables;
  mlir::Value scratchArgument, claimsArgument;
  int64_t scratchBytes = 0, claimSets = 0;
};

/// The op of type `OpT` of a kernel's tensor form; null where there is none or another.
template <typename OpT> OpT onlyOp(KernelFunction &kernel) {
  auto ops = kernel.source.getOps<OpT>();
  return llvm::hasSingleElement(ops) ? *ops.begin() : OpT();
}

using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;

/// scf.for from `low` to `high`; the body gets the variable and the carried values.
llvm::SmallVector<mlir::Value> emitLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                        mlir::Value low, mlir::Value high, int64_t step,
                                        mlir::ValueRange carried, LoopBody body);
llvm::SmallVector<mlir::Value> emitLoop(mlir::OpBuilder &builder, mlir::Location loc, int64_t low,
                                        int64_t high, int64_t step, mlir::ValueRange carried,
                                        LoopBody body);

/// Sets `dims` of the point's space, outermost first, from their joint row-major number.
void setFlat(ElementEmitter &point, llvm::ArrayRef<unsigned> dims, mlir::Value number);

/// Loops over `dims` of the point's space, outermost first; the body is at each of their values.
void emitLoops(ElementEmitter &point, llvm::ArrayRef<unsigned> dims,
               llvm::function_ref<void()> body);
/// The same with carried values.
llvm::SmallVector<mlir::Value>
emitLoops(ElementEmitter &point, llvm::ArrayRef<unsigned> dims, mlir::ValueRange carried,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);

/// The constant vector of a floating-point `value` in all lanes.
mlir::Value emitSplat(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                      double value);

/// scf.if without results; nothing is done otherwise where `otherwise` is null.
void emitIf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value condition,
            llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);

} // namespace weft

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The axes of a scatter's destination and the loops over its updates, and its schedule, which
// compiler/Scheduling chooses from them.
#ifndef WEFT_COMPILER_KERNELS_NEST_SCATTERAXES_H
#define WEFT_COMPILER_KERNELS_NEST_SCATTERAXES_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/ScheduleFields.h"
#include "compiler/Kernels/Index/IndexSpace.h"

namespace weft {

struct KernelFunction;

struct ScatterSchedule {
  int64_t width = 1;  ///< lanes of a vector
  int64_t groups = 4; ///< vectors of the last axis in a piece of it
  int64_t owned = 0;  ///< the axis whose pieces threads divide

  int64_t block() const { return width * groups; }

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::countOrNone("owned"), schedule.owned);
  }
};

struct ScatterAxes {
  /// An indexed dim of the destination, or a run of adjacent dims that are not indexed.
  struct Axis {
    int64_t size;
    mlir::AffineExpr variable; ///< loop variable of the copy; in an update, the target index
    mlir::Value indices;       ///< null for a run of dims
    mlir::AffineExpr follows;  ///< loop over the updates whose variable `indices` repeat, or null

    bool isRun() const { return !indices; }
    bool isData() const { return indices && !follows; }
  };

  explicit ScatterAxes(ScatterOp op);

  bool isLast(const Axis &axis) const { return &axis == &axes.back(); }
  /// Pieces of an axis that threads can divide: elements, of the last axis blocks.
  int64_t countPieces(const Axis &axis, int64_t block) const;

  IndexSpace space;
  llvm::SmallVector<Axis> axes;
  Index loops;       ///< loops over the updates, one per dim of the indices
  Index copyIndex;   ///< index into the destination, in the axes' variables
  Index targetIndex; ///< index into the destination for an update
  Index updateIndex;

private:
  void addIndexed(int64_t size, mlir::Value indices);
  void addRun(llvm::ArrayRef<int64_t> run);
};

/// One weft.scatter.
llvm::LogicalResult emitScatter(KernelFunction &kernel);

} // namespace weft

#endif

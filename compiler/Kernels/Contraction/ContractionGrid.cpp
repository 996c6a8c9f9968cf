// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionGrid.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace weft;

ContractionGrid ContractionGrid::of(const ContractionProblem &problem, int64_t rows, int64_t groups,
                                    int64_t width, int64_t threads) {
  ContractionGrid grid;
  grid.threads = threads;
  grid.batches = problem.batches;
  grid.rowCount = problem.rowCount;
  grid.rowTiles = llvm::divideCeil(problem.rowCount, rows);
  grid.outerRows = problem.outerRows;
  grid.vectors = llvm::divideCeil(problem.laneCount, width);
  grid.paddedVectors = grid.vectors - llvm::divideCeil(problem.lastLanes, width);
  grid.groups = groups;
  grid.laneBlocks = llvm::divideCeil(grid.vectors, groups);
  grid.outerPanels = problem.outerPanels;
  grid.rowPieces = grid.rows();
  return grid;
}

ContractionGrid ContractionGrid::of(const ContractionProblem &problem,
                                    const ContractionSchedule &schedule, int64_t threads) {
  ContractionGrid grid = of(problem, schedule.rows, schedule.groups, schedule.width, threads);
  grid.rowTiles = schedule.rowTiles;
  grid.rowPieces = grid.rows();
  grid.split = schedule.split;
  if (grid.split == Blocks)
    grid.panelsOfBlock = schedule.panels;
  return grid;
}

int64_t ContractionGrid::tallest() const { return llvm::divideCeil(rowCount, rowTiles); }

int64_t ContractionGrid::piecesOf(Split split) const {
  switch (split) {
  case Batches:
    return batches;
  case Rows:
    return rowPieces;
  case Panels:
    return panels();
  case Blocks:
    return panels() / panelsOfBlock * rowPieces;
  }
  llvm_unreachable("a split is one of three loops");
}

int64_t ContractionGrid::vectorsOf(int64_t panels) const {
  int64_t before = panels / laneBlocks * vectors + std::min(panels % laneBlocks * groups, vectors);
  return std::min(before, outerPanels * vectors - paddedVectors);
}

double ContractionGrid::balance(Split split) const {
  int64_t pieces = piecesOf(split);
  if (split != Panels)
    return double(pieces) / double(threads * llvm::divideCeil(pieces, threads));
  // The last panel of a block may be narrower. Partitions are those of KernelFunction::share.
  int64_t longest = 0;
  for (int64_t thread = 0; thread < threads; ++thread) {
    int64_t first = pieces * thread / threads, end = pieces * (thread + 1) / threads;
    longest = std::max(longest, vectorsOf(end) - vectorsOf(first));
  }
  return double(vectorsOf(pieces)) / double(threads * longest);
}

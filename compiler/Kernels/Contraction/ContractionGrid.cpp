// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionGrid.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace weft;

/// Least parallel efficiency at which a split counts as balanced.
static constexpr double balanced = 0.95;

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

void ContractionGrid::chooseSplit(const ContractionProblem &problem,
                                  const ContractionSchedule &schedule, int64_t l2Bytes) {
  // Each thread finds its data in its own caches if all kernels partition the outermost dim of
  // tensors.
  bool fetchesRows = schedule.prefetch || schedule.strip;
  if (!problem.rowsOutermost && fetchesRows && !schedule.matrixUnit && hasBlocks(schedule.panels)) {
    split = Blocks;
    panelsOfBlock = schedule.panels;
    return;
  }
  bool keepsOwnRows = keepsRows(problem, schedule, l2Bytes);
  // If B is larger than A, each panel is read by one thread only, unless there are many rows.
  bool longerVectors = problem.vectorBytes > problem.scalarBytes && balance(Panels) >= balanced;
  bool dividesPanels = schedule.matrixUnit || (longerVectors && !keepsOwnRows);
  if (dividesPanels && batches == 1 && panels() >= threads * schedule.panels) {
    split = Panels;
    return;
  }
  split = Rows;
  if (!keepsOwnRows)
    splitEvenly();
  if (!schedule.strip)
    evenRows();
}

bool ContractionGrid::keepsRows(const ContractionProblem &problem,
                                const ContractionSchedule &schedule, int64_t l2Bytes) const {
  // If B fits L2, it is cheap for each thread to read all of it, and tile heights may be evened
  // out.
  bool isNear = problem.vectorBytes <= l2Bytes;
  int64_t enoughRows = (isNear ? 8 : 48) * threads;
  bool isEven = balance(Rows) >= balanced || (isNear && tilesToBeEven() && !schedule.strip);
  return problem.rowsOutermost && batches == 1 && rowCount * outerRows >= enoughRows && isEven;
}

void ContractionGrid::splitEvenly() {
  // Prefer Rows: a contraction without batch dims has one batch, and no batch loop to parallelize.
  for (Split choice : {Batches, Rows, Panels})
    if (balance(choice) > balance(split) + 0.02)
      split = choice;
}

int64_t ContractionGrid::tilesToBeEven() const {
  // Overhead of a tile, in rows: its first vector loads and its last stores.
  constexpr int64_t ofTile = 2;
  auto time = [&](int64_t more) {
    int64_t tiles = rowTiles + more;
    int64_t ofThread = llvm::divideCeil(tiles * outerRows, threads);
    return ofThread * (llvm::divideCeil(rowCount, tiles) + ofTile);
  };
  int64_t best = 0;
  for (int64_t more = 1; more < threads && rowTiles + more <= rowCount; ++more)
    if ((rowTiles + more) * outerRows % threads == 0 && time(more) <= time(best))
      best = more;
  return best;
}

void ContractionGrid::evenRows() {
  constexpr double worthTiles = 0.97;
  if (balance(split) >= worthTiles)
    return;
  if (int64_t more = tilesToBeEven()) {
    split = Rows;
    rowTiles += more;
    rowPieces = rows();
  }
}

bool ContractionGrid::hasBlocks(int64_t ofBlock) const {
  bool panelsAreAlike = vectors % groups == 0 && paddedVectors == 0;
  return batches == 1 && panelsAreAlike && panels() >= threads * ofBlock && panels() % ofBlock == 0;
}

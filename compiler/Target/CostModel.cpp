// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The constants are listed in docs/constants.md, with what measures them.
#include "compiler/Target/CostModel.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace weft;

/// Multiply-adds under way at once: a latency of four cycles on two units.
static constexpr double underWay = 8;

double BroadcastTiles::ofMultiplyAdd() const {
  // Evicted lines of the set are reloaded from L2.
  constexpr double ofLoad = 0.01, ofAliasedLoad = 0.1;
  // Windows' rows are short in memory, so that wider tiles, which read longer runs, cost less.
  constexpr double ofLine = 0.3;
  // Prologue and epilogue of a tile; tiles of two heights double the code.
  constexpr double ofTile = 0.15, ofTwoHeights = 0.5, mostOfTwoHeights = 0.005;
  double fmas = rows * double(groups);
  double loads = lanewise ? fmas + double(groups) : rows + double(groups);
  double latency = fmas < underWay ? underWay / fmas : 1.0;
  double uneven = isUneven ? std::min(mostOfTwoHeights, ofTwoHeights * rows / double(allRows)) : 0;
  return std::max(fmas, loads) * latency / (fmas * lanesUsed) +
         (aliased ? ofAliasedLoad : ofLoad) * loads / fmas + ofTile * double(tallest) / rows +
         uneven + (lanewise ? ofLine / double(groups) : 0.0);
}

double StreamedPanels::ofStep() const {
  constexpr double ofRun = 0.5; // a run of memory
  return double(panels) * (double(groups) + ofRun);
}

double DotTile::ofStep() const {
  constexpr double ofDotLoad = 0.1;
  int64_t loads = rows + columns;
  return double(std::max(rows * columns, loads)) + ofDotLoad * double(loads);
}

double SegmentedTile::ofStep() const {
  constexpr double ofL2 = 6, ofSegmentLoad = 0.2;
  double sums = (double(groups) + last) * double(columns);
  double loads = double(groups + (groups ? columns : 0)) + last * double(columns + 1);
  double waits = rowsInL1 ? 0 : ofL2 * (double(groups) + last);
  return std::max({sums, loads, groups ? underWay : last * underWay, waits}) +
         ofSegmentLoad * loads;
}

double SegmentedTile::ofSums(int64_t columns, int64_t segment, int64_t rowsOfVector) {
  constexpr double ofFold = 3, ofRow = 4;
  int64_t vectors = columns;
  double cost = 0;
  for (int64_t count = segment; count > 1; count /= 2) {
    vectors = llvm::divideCeil(vectors, 2);
    cost += ofFold * double(vectors);
  }
  return cost + double(rowsOfVector) * (double(vectors) + ofRow);
}

int64_t DividedRows::ofThread() const {
  // Overhead of a tile: its first vector loads and its last stores.
  constexpr int64_t rowsOfTile = 2;
  return int64_t(llvm::divideCeil(tiles * blocks, threads)) *
         (int64_t(llvm::divideCeil(rows, tiles)) + rowsOfTile);
}

/// AMX takes six products for a float32 multiply-add and has to split operands first: B before its
/// first use, redundantly in each thread unless the threads divide the panels; A overlapped with
/// products, if there are enough panels.
double MatrixProduct::onUnit() const {
  constexpr double ofProduct = 0.005, ofPacking = 0.2, ofIdle = 0.005;
  constexpr double ofSplitProduct = 0.0205, ofSplitting = 0.6, ofIdleSplit = 0.02;
  double packing = splits ? ofSplitting : ofPacking;
  double idle =
      (1 - std::min(1.0, double(panels) / 4)) * (splits ? ofIdleSplit : ofIdle) / double(panels);
  return rows * lanes * depth * ((splits ? ofSplitProduct : ofProduct) + idle) / double(threads) +
         lanes * depth * packing / (sharesPanels ? double(threads) : 1);
}

/// The vector units stall on panels that come from memory; with AMX, splitting hides the latency.
double MatrixProduct::onVectors() const {
  constexpr double vectorsCycles = 0.037, missCycles = 0.3;
  return (vectorsCycles * useful + (misses ? missCycles * lanes * depth : 0)) / double(threads);
}

bool MatrixProduct::paysOnUnit() const {
  constexpr double margin = 0.95;
  return onUnit() < margin * onVectors();
}

double weft::cyclesOf(double multiplyAdds) {
  constexpr double ofCycle = 2;
  return multiplyAdds / ofCycle;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/ContractionGrid.h"
#include "llvm/Support/MathExtras.h"

using namespace weft;

int64_t ContractionGrid::piecesOf(Split split) const {
  switch (split) {
  case Batches:
    return batches;
  case Rows:
    return rowPieces;
  case Panels:
    return panels();
  }
  llvm_unreachable("a split is one of three loops");
}

double ContractionGrid::balance(Split split) const {
  int64_t pieces = piecesOf(split);
  return pieces < 2 ? 0.5 : double(pieces) / (2 * llvm::divideCeil(pieces, 2));
}

void ContractionGrid::chooseSplit() {
  // Rows unless another choice is better: a contraction without batch dims has one batch,
  // and its loop, which the threads would share, does not exist.
  split = Rows;
  for (Split choice : {Batches, Rows, Panels})
    if (balance(choice) > balance(split) + 0.02)
      split = choice;
}

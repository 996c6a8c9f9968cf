// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/CombiningKind.h"

using namespace mlir;
using namespace weft;

vector::CombiningKind weft::combiningKindOf(ReduceKind kind, Type element) {
  bool floating = isa<FloatType>(element);
  switch (kind) {
  case ReduceKind::sum:
    return vector::CombiningKind::ADD;
  case ReduceKind::prod:
    return vector::CombiningKind::MUL;
  case ReduceKind::max:
    return floating ? vector::CombiningKind::MAXIMUMF : vector::CombiningKind::MAXSI;
  case ReduceKind::min:
    return floating ? vector::CombiningKind::MINIMUMF : vector::CombiningKind::MINSI;
  case ReduceKind::any:
    return vector::CombiningKind::OR;
  case ReduceKind::all:
    return vector::CombiningKind::AND;
  }
  llvm_unreachable("unknown reduction");
}

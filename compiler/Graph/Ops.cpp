// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Type inference, verifiers and folds of the ops.
#include "compiler/Graph/Graph.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weft;

#define GET_OP_CLASSES
#include "compiler/Graph/Ops.cpp.inc"

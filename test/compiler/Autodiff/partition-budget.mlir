// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0,1 results=0" -canonicalize -cse -weft-partition="budget=1" | FileCheck %s --check-prefix=ALL
// RUN: weft-opt %s -weft-differentiate="wrt=0,1 results=0" -canonicalize -cse -weft-partition="budget=0" | FileCheck %s --check-prefix=NONE

// ALL: func.func @forward
// ALL: weft.dot_general
// ALL: func.func @backward
// ALL-SAME: "saved 0"
// ALL-NOT: weft.sin
// ALL: return

// NONE: func.func @forward
// NONE-SAME: -> tensor<8x8xf32>
// NONE: func.func @backward
// NONE-NOT: "saved 0"
// NONE: weft.sin
// NONE: return
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.sin %x : tensor<8x8xf32>
  %1 = weft.dot_general %0, %w batch [] x [] contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

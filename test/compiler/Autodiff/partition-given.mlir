// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0,1" -weft-partition="given=1 half=backward" | FileCheck %s
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0,1" -weft-partition="half=backward" | FileCheck %s --check-prefix=FREE

// The second result is all that the backward has: it computes the values ahead of that again, and
// not from the first, which is a result as well. Otherwise it would save what suits it best.
// CHECK: func.func @main(
// CHECK-SAME: weft.name = "input 0"
// CHECK-SAME: weft.name = "result 1"
// CHECK-SAME: weft.name = "gradient 0"
// CHECK-NOT: weft.tanh
// CHECK: weft.exp
// CHECK-NOT: weft.tanh
// CHECK: weft.sigmoid
// CHECK-NOT: weft.tanh
// FREE: func.func @main(
// FREE-SAME: weft.name = "saved 0"
// FREE-NOT: weft.sigmoid
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.sigmoid %x : tensor<4xf32>
  %1 = weft.tanh %0 : tensor<4xf32>
  %2 = weft.exp %1 : tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0" -weft-partition="half=backward" | FileCheck %s
// RUN: not weft-opt %s -weft-partition 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: not weft-opt %s -weft-differentiate="wrt=0 results=0" -weft-partition="half=sideways" 2>&1 | FileCheck %s --check-prefix=HALF

// CHECK-NOT: @forward
// CHECK: func.func @main(
// CHECK-SAME: weft.name = "gradient 0"
// CHECK-SAME: attributes {weft.entry = #weft.entry<main>}
// PLAIN: expected a differentiated @main
// HALF: Cannot find option named 'sideways'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.sin %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

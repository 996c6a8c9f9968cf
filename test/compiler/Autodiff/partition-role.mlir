// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0" -weft-partition="role=backward" | FileCheck %s
// RUN: not weft-opt %s -weft-partition 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: not weft-opt %s -weft-differentiate="wrt=0 results=0" -weft-partition="role=sideways" 2>&1 | FileCheck %s --check-prefix=ROLE

// CHECK-NOT: @forward
// CHECK: func.func @main(
// CHECK-SAME: weft.name = "gradient 0"
// PLAIN: expected a differentiated @main
// ROLE: expected role forward or backward, found 'sideways'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = weft.sin %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

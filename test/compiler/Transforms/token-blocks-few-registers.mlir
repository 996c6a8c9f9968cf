// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-choose-layouts="lanes=8 registers=16" | FileCheck %s

// Sixteen registers hold tiles of two vectors of tokens: a block is as wide, so that its lines are
// read one after the other. Three vectors are no more than one block.
// CHECK-LABEL: func.func @in_place(
func.func @in_place(%x: tensor<128x8xf32>, %y: tensor<24x8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<128x8xf32>, tensor<24x8xf32>) {
  // CHECK: weft.dot_general {{.*}} -> tensor<128x8xf32, #weft.layout<[0, 1], tile 0 by 16>>
  // CHECK: weft.dot_general {{.*}} -> tensor<24x8xf32, #weft.layout<[0, 1], tile 0 by 24>>
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<128x8xf32>, tensor<8x8xf32> -> tensor<128x8xf32>
  %1 = weft.dot_general %y, %w batch [] x [] contract [1] x [1] : tensor<24x8xf32>, tensor<8x8xf32> -> tensor<24x8xf32>
  return %0, %1 : tensor<128x8xf32>, tensor<24x8xf32>
}

// -----

// So do those beside lines that have been copied.
// CHECK-LABEL: func.func @by_lines(
func.func @by_lines(%x: tensor<128x8xbf16>, %w: tensor<8x8xbf16>) -> tensor<128x8xbf16> {
  // CHECK: weft.dot_general {{.*}} -> tensor<128x8xbf16, #weft.layout<[0, 1], tile 0 by 16>>
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [0] : tensor<128x8xbf16>, tensor<8x8xbf16> -> tensor<128x8xbf16>
  return %0 : tensor<128x8xbf16>
}

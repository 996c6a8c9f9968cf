// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-fold-empty | FileCheck %s

// A sum of nothing is zero.
// CHECK-LABEL: @contraction
// CHECK-NOT:     weft.dot_general
// CHECK:         weft.constant dense<0.000000e+00> : tensor<4x16xf32>
func.func @contraction(%x: tensor<4x0xf32>, %w: tensor<16x0xf32>) -> tensor<4x16xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
    : tensor<4x0xf32>, tensor<16x0xf32> -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// CHECK-LABEL: @no_keys
// CHECK-NOT:     weft.attention
// CHECK:         weft.constant dense<0.000000e+00> : tensor<2x20x8xf32>
func.func @no_keys(%q: tensor<2x20x8xf32>, %k: tensor<2x0x8xf32>) -> tensor<2x20x8xf32> {
  %0 = weft.attention %q, %k, %k causal false scale 1.0
    : tensor<2x20x8xf32>, tensor<2x0x8xf32>, tensor<2x0x8xf32> -> tensor<2x20x8xf32>
  return %0 : tensor<2x20x8xf32>
}

// The scores of vectors without elements are zero, the weights are not.
// CHECK-LABEL: @no_depth
// CHECK-NOT:     weft.attention
// CHECK:         weft.constant dense<0.000000e+00> : tensor<2x20x5xf32>
// CHECK:         %[[RESULT:.*]] = weft.dot_general {{.*}} -> tensor<2x20x8xf32>
// CHECK:         return %[[RESULT]]
func.func @no_depth(%q: tensor<2x20x0xf32>, %k: tensor<2x5x0xf32>, %v: tensor<2x5x8xf32>)
    -> tensor<2x20x8xf32> {
  %0 = weft.attention %q, %k, %v causal false scale 1.0
    : tensor<2x20x0xf32>, tensor<2x5x0xf32>, tensor<2x5x8xf32> -> tensor<2x20x8xf32>
  return %0 : tensor<2x20x8xf32>
}

// CHECK-LABEL: @no_results
// CHECK-NOT:     weft.exp
// CHECK:         weft.constant dense<0.000000e+00> : tensor<3x0xf32>
func.func @no_results(%x: tensor<3x0xf32>) -> tensor<3x0xf32> {
  %0 = weft.exp %x : tensor<3x0xf32>
  return %0 : tensor<3x0xf32>
}

// Declined: a sum and a join have elements, whatever their operands have.
// CHECK-LABEL: @of_nothing
// CHECK:         weft.reduce
// CHECK:         weft.concat
func.func @of_nothing(%x: tensor<3x0xf32>, %y: tensor<3x2xf32>) -> (tensor<3xf32>, tensor<3x2xf32>) {
  %0 = weft.reduce <sum> %x dims [1] : tensor<3x0xf32> -> tensor<3xf32>
  %1 = weft.concat %x, %y dim 1 : tensor<3x0xf32>, tensor<3x2xf32> -> tensor<3x2xf32>
  return %0, %1 : tensor<3xf32>, tensor<3x2xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-merge-matmuls | FileCheck %s

// CHECK-LABEL: func.func @qkv(
// CHECK-SAME: %[[X:.*]]: tensor<8x32xf32>, %[[Q:.*]]: tensor<32x32xf32>, %[[K:.*]]: tensor<32x32xf32>, %[[V:.*]]: tensor<16x32xf32>)
func.func @qkv(%x: tensor<8x32xf32>, %q: tensor<32x32xf32>, %k: tensor<32x32xf32>, %v: tensor<16x32xf32>)
    -> (tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x16xf32>) {
  // CHECK: %[[P:.*]]:3 = weft.multi_dot %[[X]] with %[[Q]], %[[K]], %[[V]]
  // CHECK-SAME: contract [1] x [1]
  // CHECK: %[[A:.*]] = weft.neg %[[P]]#0
  // CHECK: return %[[A]], %[[P]]#1, %[[P]]#2
  %0 = weft.dot_general %x, %q batch [] x [] contract [1] x [1] : tensor<8x32xf32>, tensor<32x32xf32> -> tensor<8x32xf32>
  %1 = weft.neg %0 : tensor<8x32xf32>
  %2 = weft.dot_general %x, %k batch [] x [] contract [1] x [1] : tensor<8x32xf32>, tensor<32x32xf32> -> tensor<8x32xf32>
  %3 = weft.dot_general %x, %v batch [] x [] contract [1] x [1] : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
  return %1, %2, %3 : tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x16xf32>
}

// The second contraction reads the first: its rhs is no weight.
// CHECK-LABEL: func.func @dependent(
func.func @dependent(%x: tensor<32x32xf32>, %w: tensor<32x32xf32>) -> tensor<32x32xf32> {
  // CHECK-NOT: multi_dot
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  %1 = weft.dot_general %x, %0 batch [] x [] contract [1] x [1] : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// One weight as stored and one transposed are two kinds of walk.
// CHECK-LABEL: func.func @other_dims(
func.func @other_dims(%x: tensor<8x32xf32>, %v: tensor<32x32xf32>, %w: tensor<32x32xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  // CHECK-NOT: multi_dot
  %0 = weft.dot_general %x, %v batch [] x [] contract [1] x [1] : tensor<8x32xf32>, tensor<32x32xf32> -> tensor<8x32xf32>
  %1 = weft.dot_general %x, %w batch [] x [] contract [1] x [0] : tensor<8x32xf32>, tensor<32x32xf32> -> tensor<8x32xf32>
  return %0, %1 : tensor<8x32xf32>, tensor<8x32xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-simplify | FileCheck %s

// GPT-2's Conv1D and its activation: view(-1, f), addmm, view back.
// CHECK-LABEL: func.func @conv1d(
// CHECK-SAME: %[[X:.*]]: tensor<2x64x32xf32>, %[[W:.*]]: tensor<32x48xf32>, %[[B:.*]]: tensor<48xf32>)
func.func @conv1d(%x: tensor<2x64x32xf32>, %w: tensor<32x48xf32>, %b: tensor<48xf32>) -> tensor<2x64x48xf32> {
  // CHECK-DAG: %[[DOT:.*]] = weft.dot_general %[[X]], %[[W]] batch [] x [] contract [2] x [0] {{.*}} -> tensor<2x64x48xf32>
  // CHECK-DAG: %[[BIAS:.*]] = weft.broadcast_in_dim %[[B]] dims [2] : tensor<48xf32> -> tensor<2x64x48xf32>
  // CHECK: %[[SUM:.*]] = weft.add %[[DOT]], %[[BIAS]] : tensor<2x64x48xf32>
  // CHECK: %[[ACT:.*]] = weft.gelu {{.*}} %[[SUM]] : tensor<2x64x48xf32>
  // CHECK: return %[[ACT]]
  %0 = weft.reshape %x : tensor<2x64x32xf32> -> tensor<128x32xf32>
  %1 = weft.dot_general %0, %w batch [] x [] contract [1] x [0] : tensor<128x32xf32>, tensor<32x48xf32> -> tensor<128x48xf32>
  %2 = weft.broadcast_in_dim %b dims [1] : tensor<48xf32> -> tensor<128x48xf32>
  %3 = weft.add %1, %2 : tensor<128x48xf32>
  %4 = weft.gelu <tanh> %3 : tensor<128x48xf32>
  %5 = weft.reshape %4 : tensor<128x48xf32> -> tensor<2x64x48xf32>
  return %5 : tensor<2x64x48xf32>
}

// -----

// 64 sequences of one token fill vectors only together, and so do two layers of them.
// CHECK-LABEL: func.func @decode(
// CHECK-SAME: %[[X:.*]]: tensor<64x1x32xf32>, %[[V:.*]]: tensor<48x32xf32>, %[[B:.*]]: tensor<48xf32>, %[[W:.*]]: tensor<32x48xf32>)
func.func @decode(%x: tensor<64x1x32xf32>, %v: tensor<48x32xf32>, %b: tensor<48xf32>, %w: tensor<32x48xf32>) -> tensor<64x1x32xf32> {
  // CHECK-DAG: %[[TOKENS:.*]] = weft.reshape %[[X]] : {{.*}} -> tensor<64x32xf32>
  // CHECK-DAG: %[[DOT:.*]] = weft.dot_general %[[TOKENS]], %[[V]] {{.*}} contract [1] x [1] {{.*}} -> tensor<64x48xf32>
  // CHECK-DAG: %[[BIAS:.*]] = weft.broadcast_in_dim %[[B]] dims [1] : tensor<48xf32> -> tensor<64x48xf32>
  // CHECK: %[[SUM:.*]] = weft.add %[[DOT]], %[[BIAS]] : tensor<64x48xf32>
  // CHECK: %[[OUT:.*]] = weft.dot_general %[[SUM]], %[[W]] {{.*}} -> tensor<64x32xf32>
  // CHECK: weft.reshape %[[OUT]] : tensor<64x32xf32> -> tensor<64x1x32xf32>
  %0 = weft.dot_general %x, %v batch [] x [] contract [2] x [1] : tensor<64x1x32xf32>, tensor<48x32xf32> -> tensor<64x1x48xf32>
  %1 = weft.broadcast_in_dim %b dims [2] : tensor<48xf32> -> tensor<64x1x48xf32>
  %2 = weft.add %0, %1 : tensor<64x1x48xf32>
  %3 = weft.dot_general %2, %w batch [] x [] contract [2] x [1] : tensor<64x1x48xf32>, tensor<32x48xf32> -> tensor<64x1x32xf32>
  return %3 : tensor<64x1x32xf32>
}

// -----

// One sequence of one token fills no vector whatever its shape.
// CHECK-LABEL: func.func @one_token(
func.func @one_token(%x: tensor<1x1x32xf32>, %w: tensor<48x32xf32>) -> tensor<1x1x48xf32> {
  // CHECK-NOT: weft.reshape
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<1x1x32xf32>, tensor<48x32xf32> -> tensor<1x1x48xf32>
  return %0 : tensor<1x1x48xf32>
}

// -----

// The other operand comes from elsewhere and keeps the reshape above.
// CHECK-LABEL: func.func @foreign_operand(
func.func @foreign_operand(%x: tensor<2x64x32xf32>, %y: tensor<128x32xf32>) -> tensor<128x32xf32> {
  // CHECK: %[[ROWS:.*]] = weft.reshape
  // CHECK: weft.mul %[[ROWS]]
  %0 = weft.reshape %x : tensor<2x64x32xf32> -> tensor<128x32xf32>
  %1 = weft.mul %0, %y : tensor<128x32xf32>
  return %1 : tensor<128x32xf32>
}

// -----

// CHECK-LABEL: func.func @splat(
func.func @splat(%x: tensor<2x64x32xf32>) -> tensor<2x64x32xf32> {
  // CHECK: weft.constant dense<2.000000e+00> : tensor<2x64x32xf32>
  // CHECK-NOT: weft.reshape
  %0 = weft.reshape %x : tensor<2x64x32xf32> -> tensor<128x32xf32>
  %1 = weft.constant dense<2.0> : tensor<128x32xf32>
  %2 = weft.mul %0, %1 : tensor<128x32xf32>
  %3 = weft.reshape %2 : tensor<128x32xf32> -> tensor<2x64x32xf32>
  return %3 : tensor<2x64x32xf32>
}

// -----

// CHECK-LABEL: func.func @transposed_weight(
// CHECK-SAME: %[[X:.*]]: tensor<128x32xf32>, %[[W:.*]]: tensor<48x32xf32>)
func.func @transposed_weight(%x: tensor<128x32xf32>, %w: tensor<48x32xf32>) -> tensor<128x48xf32> {
  // CHECK: weft.dot_general %[[X]], %[[W]] batch [] x [] contract [1] x [1]
  %0 = weft.transpose %w perm [1, 0] : tensor<48x32xf32> -> tensor<32x48xf32>
  %1 = weft.dot_general %x, %0 batch [] x [] contract [1] x [0] : tensor<128x32xf32>, tensor<32x48xf32> -> tensor<128x48xf32>
  return %1 : tensor<128x48xf32>
}

// -----

// CHECK-LABEL: func.func @transposed_heads(
// CHECK-SAME: %[[Q:.*]]: tensor<2x16x4x8xf32>, %[[K:.*]]: tensor<2x16x4x8xf32>)
func.func @transposed_heads(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x4x8xf32>) -> tensor<2x4x16x16xf32> {
  // CHECK: weft.dot_general %[[Q]], %[[K]] batch [0, 2] x [0, 2] contract [3] x [3]
  %0 = weft.transpose %q perm [0, 2, 1, 3] : tensor<2x16x4x8xf32> -> tensor<2x4x16x8xf32>
  %1 = weft.transpose %k perm [0, 2, 3, 1] : tensor<2x16x4x8xf32> -> tensor<2x4x8x16xf32>
  %2 = weft.dot_general %0, %1 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x16x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x16x16xf32>
  return %2 : tensor<2x4x16x16xf32>
}

// -----

// CHECK-LABEL: func.func @given_order(
// CHECK-SAME: %[[X:.*]]: tensor<128x32xf32>, %[[W:.*]]: tensor<48x32xf32, #weft.layout<[1, 0]>>)
func.func @given_order(%x: tensor<128x32xf32>, %w: tensor<48x32xf32, #weft.layout<[1, 0]>>) -> tensor<128x48xf32> {
  // CHECK: weft.dot_general %[[X]], %[[W]] batch [] x [] contract [1] x [1]
  %0 = weft.relayout %w : tensor<48x32xf32, #weft.layout<[1, 0]>> -> tensor<48x32xf32>
  %1 = weft.dot_general %x, %0 batch [] x [] contract [1] x [1] : tensor<128x32xf32>, tensor<48x32xf32> -> tensor<128x48xf32>
  return %1 : tensor<128x48xf32>
}

// -----

// Free dims in another order need the copy.
// CHECK-LABEL: func.func @swapped_free_dims(
func.func @swapped_free_dims(%x: tensor<32x16x8xf32>, %w: tensor<4x8xf32>) -> tensor<16x32x4xf32> {
  // CHECK: %[[T:.*]] = weft.transpose
  // CHECK: weft.dot_general %[[T]]
  %0 = weft.transpose %x perm [1, 0, 2] : tensor<32x16x8xf32> -> tensor<16x32x8xf32>
  %1 = weft.dot_general %0, %w batch [] x [] contract [2] x [1] : tensor<16x32x8xf32>, tensor<4x8xf32> -> tensor<16x32x4xf32>
  return %1 : tensor<16x32x4xf32>
}

// -----

// CHECK-LABEL: func.func @kept_dim(
// CHECK-SAME: %[[MEAN:.*]]: tensor<2x16xf32>)
func.func @kept_dim(%mean: tensor<2x16xf32>) -> tensor<2x16x8xf32> {
  // CHECK: weft.broadcast_in_dim %[[MEAN]] dims [0, 1] : tensor<2x16xf32> -> tensor<2x16x8xf32>
  %0 = weft.reshape %mean : tensor<2x16xf32> -> tensor<2x16x1xf32>
  %1 = weft.broadcast_in_dim %0 dims [0, 1, 2] : tensor<2x16x1xf32> -> tensor<2x16x8xf32>
  return %1 : tensor<2x16x8xf32>
}

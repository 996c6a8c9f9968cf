// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-form-attention -canonicalize -cse | FileCheck %s

!q = tensor<2x3x5x8xf32>
!k = tensor<2x3x7x8xf32>
!v = tensor<2x3x7x4xf32>
!s = tensor<2x3x5x7xf32>
!y = tensor<2x3x5x4xf32>

// Both factors are one scale; what is added is the mask.
// CHECK-LABEL: @added(
// CHECK-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[M:[^:]*]]:
// CHECK-NEXT:    %[[Y:.*]] = weft.attention %[[Q]], %[[K]], %[[V]] mask %[[M]] : tensor<2x3x5x7xf32>
// CHECK-SAME:      causal false scale 1.250000e-01 {hiddenScore = 0xFFF0000000000000 : f64}
// CHECK-NEXT:    return %[[Y]]
func.func @added(%q: !q, %k: !k, %v: !v, %m: !s) -> !y {
  %half = weft.constant dense<0.5> : !q
  %scaled = weft.mul %q, %half : !q
  %dot = weft.dot_general %scaled, %k batch [0, 1] x [0, 1] contract [3] x [3] : !q, !k -> !s
  %four = weft.constant dense<4.0> : !s
  %s = weft.div %dot, %four : !s
  %masked = weft.add %m, %s : !s
  %w = weft.softmax %masked dim 3 : !s
  %y = weft.dot_general %w, %v batch [0, 1] x [0, 1] contract [3] x [2] : !s, !v -> !y
  return %y : !y
}

// The complement of a condition that hides keys; operands in the order of an attention. Rows of -inf
// are NaN without a mask, too.
// CHECK-LABEL: @chosen(
// CHECK-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[HIDDEN:[^:]*]]:
// CHECK-DAG:     %[[QUERY:.*]] = weft.transpose %[[Q]] perm [0, 2, 1, 3]
// CHECK-DAG:     %[[KEY:.*]] = weft.transpose %[[K]] perm [0, 2, 1, 3]
// CHECK-DAG:     %[[VALUE:.*]] = weft.transpose %[[V]] perm [0, 2, 1, 3]
// CHECK-DAG:     %[[KEPT:.*]] = weft.not %[[HIDDEN]] : tensor<7xi1>
// CHECK-DAG:     %[[MASK:.*]] = weft.broadcast_in_dim %[[KEPT]] dims [3]
// CHECK:         weft.attention %[[QUERY]], %[[KEY]], %[[VALUE]] mask %[[MASK]] : tensor<2x3x5x7xi1> causal false scale 1.000000e+00 {hiddenScore = 0xFFF0000000000000 : f64}
// CHECK:         weft.attention %[[QUERY]], %[[KEY]], %[[VALUE]] causal false scale 1.000000e+00 {hiddenScore = 0xFFF0000000000000 : f64} :
func.func @chosen(%q: tensor<2x5x3x8xf32>, %k: tensor<2x7x3x8xf32>, %v: tensor<2x7x3x4xf32>, %hidden: tensor<7xi1>) -> (!y, !y) {
  %dot = weft.dot_general %q, %k batch [0, 2] x [0, 2] contract [3] x [3] : tensor<2x5x3x8xf32>, tensor<2x7x3x8xf32> -> !s
  %all = weft.broadcast_in_dim %hidden dims [3] : tensor<7xi1> -> tensor<2x3x5x7xi1>
  %lowest = weft.constant dense<0xFF800000> : !s
  %masked = weft.select %all, %lowest, %dot : tensor<2x3x5x7xi1>, !s
  %w = weft.softmax %masked dim 3 : !s
  %y = weft.dot_general %w, %v batch [0, 1] x [0, 2] contract [3] x [1] : !s, tensor<2x7x3x4xf32> -> !y
  %dot1 = weft.dot_general %q, %k batch [0, 2] x [0, 2] contract [3] x [3] : tensor<2x5x3x8xf32>, tensor<2x7x3x8xf32> -> !s
  %w1 = weft.softmax %dot1 dim 3 : !s
  %y1 = weft.dot_general %w1, %v batch [0, 1] x [0, 2] contract [3] x [1] : !s, tensor<2x7x3x4xf32> -> !y
  return %y, %y1 : !y, !y
}

// Batch dims that are regrouped between the scores and the softmax, and behind it.
// CHECK-LABEL: @regrouped(
// CHECK-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[M:[^:]*]]: {{[^%]*}}%[[N:[^:]*]]:
// CHECK-DAG:     %[[QUERY:.*]] = weft.reshape %[[Q]] : tensor<6x5x8xf32> -> tensor<2x3x5x8xf32>
// CHECK-DAG:     %[[KEY:.*]] = weft.reshape %[[K]] : tensor<6x7x8xf32> -> tensor<2x3x7x8xf32>
// CHECK-DAG:     %[[VALUE:.*]] = weft.reshape %[[V]] : tensor<6x7x4xf32> -> tensor<2x3x7x4xf32>
// CHECK-DAG:     %[[OF_FLAT:.*]] = weft.reshape %[[M]] : tensor<6x5x7xf32> -> tensor<2x3x5x7xf32>
// CHECK-DAG:     %[[MASK:.*]] = weft.add %[[N]], %[[OF_FLAT]]
// CHECK:         %[[Y:.*]] = weft.attention %[[QUERY]], %[[KEY]], %[[VALUE]] mask %[[MASK]]
// CHECK:         weft.reshape %[[Y]] : tensor<2x3x5x4xf32> -> tensor<6x5x4xf32>
func.func @regrouped(%q: tensor<6x5x8xf32>, %k: tensor<6x7x8xf32>, %v: tensor<6x7x4xf32>, %m: tensor<6x5x7xf32>, %n: !s) -> tensor<6x5x4xf32> {
  %dot = weft.dot_general %q, %k batch [0] x [0] contract [2] x [2] : tensor<6x5x8xf32>, tensor<6x7x8xf32> -> tensor<6x5x7xf32>
  %added = weft.add %dot, %m : tensor<6x5x7xf32>
  %s = weft.reshape %added : tensor<6x5x7xf32> -> !s
  %masked = weft.add %s, %n : !s
  %w = weft.softmax %masked dim 3 : !s
  %flat = weft.reshape %w : !s -> tensor<6x5x7xf32>
  %y = weft.dot_general %flat, %v batch [0] x [0] contract [2] x [1] : tensor<6x5x7xf32>, tensor<6x7x4xf32> -> tensor<6x5x4xf32>
  return %y : tensor<6x5x4xf32>
}

// Two conditions, and one number instead of hidden scores.
// CHECK-LABEL: @replaced(
// CHECK:         %[[BOTH:.*]] = weft.and
// CHECK:         weft.attention %{{.*}} mask %[[BOTH]] : tensor<2x3x5x7xi1> causal false scale 1.000000e+00 {hiddenScore = -1.000000e+09 : f64}
func.func @replaced(%q: !q, %k: !k, %v: !v, %c: tensor<2x3x5x7xi1>, %d: tensor<2x3x5x7xi1>) -> !y {
  %dot = weft.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : !q, !k -> !s
  %low = weft.constant dense<-1.0e9> : !s
  %s = weft.select %c, %dot, %low : tensor<2x3x5x7xi1>, !s
  %t = weft.select %d, %low, %s : tensor<2x3x5x7xi1>, !s
  %w = weft.softmax %t dim 3 : !s
  %y = weft.dot_general %w, %v batch [0, 1] x [0, 1] contract [3] x [2] : !s, !v -> !y
  return %y : !y
}

// Weights that somebody else reads, a mask that is scaled, masks of both kinds, a softmax over
// queries, scores that were rounded, factors that only one after the other are floats.
// CHECK-LABEL: @others(
// CHECK-NOT:     weft.attention
// CHECK:         return
func.func @others(%q: !q, %k: !k, %v: !v, %m: !s, %c: tensor<2x3x5x7xi1>, %h: tensor<2x5x8xbf16>) -> (!y, !s, !y, !y, !y, tensor<2x5x8xbf16>, !y) {
  %dot = weft.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : !q, !k -> !s
  %w = weft.softmax %dot dim 3 : !s
  %y = weft.dot_general %w, %v batch [0, 1] x [0, 1] contract [3] x [2] : !s, !v -> !y

  %two = weft.constant dense<2.0> : !s
  %dot1 = weft.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : !q, !k -> !s
  %added1 = weft.add %dot1, %m : !s
  %s1 = weft.mul %added1, %two : !s
  %w1 = weft.softmax %s1 dim 3 : !s
  %y1 = weft.dot_general %w1, %v batch [0, 1] x [0, 1] contract [3] x [2] : !s, !v -> !y

  %low = weft.constant dense<-1.0e9> : !s
  %dot2 = weft.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : !q, !k -> !s
  %t2 = weft.add %dot2, %m : !s
  %s2 = weft.select %c, %t2, %low : tensor<2x3x5x7xi1>, !s
  %w2 = weft.softmax %s2 dim 3 : !s
  %y2 = weft.dot_general %w2, %v batch [0, 1] x [0, 1] contract [3] x [2] : !s, !v -> !y

  %dot3 = weft.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : !q, !k -> !s
  %w3 = weft.softmax %dot3 dim 2 : !s
  %y3 = weft.dot_general %w3, %v batch [0, 1] x [0, 1] contract [3] x [2] : !s, !v -> !y

  %dot4 = weft.dot_general %h, %h batch [0] x [0] contract [2] x [2] : tensor<2x5x8xbf16>, tensor<2x5x8xbf16> -> tensor<2x5x5xbf16>
  %w4 = weft.softmax %dot4 dim 2 : tensor<2x5x5xbf16>
  %y4 = weft.dot_general %w4, %h batch [0] x [0] contract [2] x [1] : tensor<2x5x5xbf16>, tensor<2x5x8xbf16> -> tensor<2x5x8xbf16>

  %large = weft.constant dense<1.0e30> : !s
  %dot5 = weft.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : !q, !k -> !s
  %s5 = weft.mul %dot5, %large : !s
  %t5 = weft.mul %s5, %large : !s
  %w5 = weft.softmax %t5 dim 3 : !s
  %y5 = weft.dot_general %w5, %v batch [0, 1] x [0, 1] contract [3] x [2] : !s, !v -> !y
  return %y, %w, %y1, %y2, %y3, %y4, %y5 : !y, !s, !y, !y, !y, tensor<2x5x8xbf16>, !y
}

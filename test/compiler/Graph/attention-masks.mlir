// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -canonicalize | FileCheck %s

!qkv = tensor<2x4x8x16xf32>

// A mask that hides nothing.
// CHECK-LABEL: @full
// CHECK: weft.attention %{{.*}}, %{{.*}}, %{{.*}} causal false
func.func @full(%x: !qkv) -> !qkv {
  %mask = weft.constant dense<true> : tensor<2x4x8x8xi1>
  %0 = weft.attention %x, %x, %x mask %mask : tensor<2x4x8x8xi1> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  return %0 : !qkv
}

// The mask of sequences that may be packed, as transformers writes it: positions with a gap
// begin a new sequence, here there are none; keys lie ahead of queries.
// CHECK-LABEL: @packed
// CHECK-NOT: weft.cumulative
// CHECK: weft.attention %{{.*}}, %{{.*}}, %{{.*}} causal true
func.func @packed(%x: !qkv) -> !qkv {
  %row = weft.iota 0 : tensor<8xi64>
  %positions = weft.reshape %row : tensor<8xi64> -> tensor<1x8xi64>
  %first = weft.slice %positions [0, 0] to [1, 1] by [1, 1] : tensor<1x8xi64> -> tensor<1x1xi64>
  %one = weft.constant dense<1> : tensor<1x1xi64>
  %before = weft.sub %first, %one : tensor<1x1xi64>
  %all = weft.concat %before, %positions dim 1 : tensor<1x1xi64>, tensor<1x8xi64> -> tensor<1x9xi64>
  %left = weft.slice %all [0, 0] to [1, 8] by [1, 1] : tensor<1x9xi64> -> tensor<1x8xi64>
  %right = weft.slice %all [0, 1] to [1, 9] by [1, 1] : tensor<1x9xi64> -> tensor<1x8xi64>
  %gap = weft.sub %right, %left : tensor<1x8xi64>
  %ones = weft.constant dense<1> : tensor<1x8xi64>
  %begins = weft.cmp <ne> %gap, %ones : tensor<1x8xi64> -> tensor<1x8xi1>
  %count = weft.convert %begins : tensor<1x8xi1> -> tensor<1x8xi64>
  %sequence = weft.cumulative <sum> %count dim 1 : tensor<1x8xi64>
  %ofQuery = weft.broadcast_in_dim %sequence dims [0, 2] : tensor<1x8xi64> -> tensor<1x1x8x8xi64>
  %ofKey = weft.broadcast_in_dim %sequence dims [0, 3] : tensor<1x8xi64> -> tensor<1x1x8x8xi64>
  %same = weft.cmp <eq> %ofQuery, %ofKey : tensor<1x1x8x8xi64> -> tensor<1x1x8x8xi1>
  %query = weft.iota 2 : tensor<1x1x8x8xi64>
  %key = weft.iota 3 : tensor<1x1x8x8xi64>
  %seen = weft.cmp <le> %key, %query : tensor<1x1x8x8xi64> -> tensor<1x1x8x8xi1>
  %keep = weft.and %same, %seen : tensor<1x1x8x8xi1>
  %mask = weft.broadcast_in_dim %keep dims [0, 1, 2, 3] : tensor<1x1x8x8xi1> -> tensor<2x4x8x8xi1>
  %0 = weft.attention %x, %x, %x mask %mask : tensor<2x4x8x8xi1> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  return %0 : !qkv
}

// What is not causality stays, and strictness is a shift by one.
// CHECK-LABEL: @padded
// CHECK-SAME: %[[PADDING:[^:]*]]: tensor<2x8xi1>
// CHECK: %[[MASK:.*]] = weft.broadcast_in_dim %[[PADDING]] dims [0, 3]
// CHECK: weft.attention %{{.*}} mask %[[MASK]] : tensor<2x4x8x8xi1> causal true
func.func @padded(%x: !qkv, %padding: tensor<2x8xi1>) -> !qkv {
  %query = weft.iota 0 : tensor<8x8xi64>
  %key = weft.iota 1 : tensor<8x8xi64>
  %one = weft.constant dense<1> : tensor<8x8xi64>
  %next = weft.add %query, %one : tensor<8x8xi64>
  %seen = weft.cmp <gt> %next, %key : tensor<8x8xi64> -> tensor<8x8xi1>
  %0 = weft.reshape %seen : tensor<8x8xi1> -> tensor<1x1x8x8xi1>
  %1 = weft.broadcast_in_dim %0 dims [0, 1, 2, 3] : tensor<1x1x8x8xi1> -> tensor<2x1x8x8xi1>
  %2 = weft.broadcast_in_dim %padding dims [0, 3] : tensor<2x8xi1> -> tensor<2x1x8x8xi1>
  %keep = weft.and %2, %1 : tensor<2x1x8x8xi1>
  %mask = weft.broadcast_in_dim %keep dims [0, 1, 2, 3] : tensor<2x1x8x8xi1> -> tensor<2x4x8x8xi1>
  %3 = weft.attention %x, %x, %x mask %mask : tensor<2x4x8x8xi1> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  return %3 : !qkv
}

// A key that does not see itself, or sees one more, is not causality; nor is a window.
// CHECK-LABEL: @others
// CHECK: causal false
// CHECK: causal false
// CHECK: causal false
func.func @others(%x: !qkv) -> (!qkv, !qkv, !qkv) {
  %query = weft.iota 2 : tensor<2x4x8x8xi64>
  %key = weft.iota 3 : tensor<2x4x8x8xi64>
  %before = weft.cmp <lt> %key, %query : tensor<2x4x8x8xi64> -> tensor<2x4x8x8xi1>
  %behind = weft.cmp <ge> %key, %query : tensor<2x4x8x8xi64> -> tensor<2x4x8x8xi1>
  %two = weft.constant dense<2> : tensor<2x4x8x8xi64>
  %reach = weft.add %key, %two : tensor<2x4x8x8xi64>
  %window = weft.cmp <ge> %reach, %query : tensor<2x4x8x8xi64> -> tensor<2x4x8x8xi1>
  %0 = weft.attention %x, %x, %x mask %before : tensor<2x4x8x8xi1> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  %1 = weft.attention %x, %x, %x mask %behind : tensor<2x4x8x8xi1> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  %2 = weft.attention %x, %x, %x mask %window : tensor<2x4x8x8xi1> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  return %0, %1, %2 : !qkv, !qkv, !qkv
}

// Adding 0 or -inf is keeping or hiding; the least float stays a number.
// CHECK-LABEL: @added
// CHECK-SAME: %[[KEYS:[^:]*]]: tensor<2x8xi1>
// CHECK: %[[MASK:.*]] = weft.broadcast_in_dim %[[KEYS]] dims [0, 3] : tensor<2x8xi1> -> tensor<2x4x8x8xi1>
// CHECK: weft.attention %{{.*}} mask %[[MASK]] : tensor<2x4x8x8xi1>
// CHECK: weft.attention %{{.*}} mask %{{.*}} : tensor<2x4x8x8xf32>
func.func @added(%x: !qkv, %keys: tensor<2x8xi1>) -> (!qkv, !qkv) {
  %seen = weft.constant dense<0.0> : tensor<2x8xf32>
  %hidden = weft.constant dense<0xFF800000> : tensor<2x8xf32>
  %least = weft.constant dense<0xFF7FFFFF> : tensor<2x8xf32>
  %0 = weft.select %keys, %seen, %hidden : tensor<2x8xi1>, tensor<2x8xf32>
  %1 = weft.select %keys, %seen, %least : tensor<2x8xi1>, tensor<2x8xf32>
  %2 = weft.broadcast_in_dim %0 dims [0, 3] : tensor<2x8xf32> -> tensor<2x4x8x8xf32>
  %3 = weft.broadcast_in_dim %1 dims [0, 3] : tensor<2x8xf32> -> tensor<2x4x8x8xf32>
  %4 = weft.attention %x, %x, %x mask %2 : tensor<2x4x8x8xf32> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  %5 = weft.attention %x, %x, %x mask %3 : tensor<2x4x8x8xf32> causal false scale 0.2 : !qkv, !qkv, !qkv -> !qkv
  return %4, %5 : !qkv, !qkv
}

// What is added hides keys behind the query, as triu(full(-inf), 1) does; and it stays said that
// rows of hidden keys are NaN.
// CHECK-LABEL: @added_triangle
// CHECK: weft.attention %{{.*}}, %{{.*}}, %{{.*}} causal true scale 2.000000e-01 {hiddenScore = 0xFFF0000000000000 : f64}
func.func @added_triangle(%x: !qkv) -> !qkv {
  %query = weft.iota 0 : tensor<8x8xi64>
  %key = weft.iota 1 : tensor<8x8xi64>
  %behind = weft.cmp <gt> %key, %query : tensor<8x8xi64> -> tensor<8x8xi1>
  %lowest = weft.constant dense<0xFF800000> : tensor<8x8xf32>
  %zero = weft.constant dense<0.0> : tensor<8x8xf32>
  %triangle = weft.select %behind, %lowest, %zero : tensor<8x8xi1>, tensor<8x8xf32>
  %mask = weft.broadcast_in_dim %triangle dims [2, 3] : tensor<8x8xf32> -> tensor<2x4x8x8xf32>
  %0 = weft.attention %x, %x, %x mask %mask : tensor<2x4x8x8xf32> causal false scale 0.2 {hiddenScore = 0xFFF0000000000000 : f64} : !qkv, !qkv, !qkv -> !qkv
  return %0 : !qkv
}

// Other sums with -inf stay sums where scores are replaced by masks of i1: of NaN they are NaN.
// CHECK-LABEL: @added_infinities
// CHECK: weft.attention %{{.*}} mask %{{.*}} : tensor<2x4x8x8xf32> causal false
func.func @added_infinities(%x: !qkv, %c: tensor<2x4x8x8xi1>) -> !qkv {
  %lowest = weft.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %zero = weft.constant dense<0.0> : tensor<2x4x8x8xf32>
  %mask = weft.select %c, %zero, %lowest : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %0 = weft.attention %x, %x, %x mask %mask : tensor<2x4x8x8xf32> causal false scale 0.2 {hiddenScore = 0xFFF0000000000000 : f64} : !qkv, !qkv, !qkv -> !qkv
  return %0 : !qkv
}

// The least float in place of keys behind the query has no weight; -10 has one.
// CHECK-LABEL: @replaced_behind_queries
// CHECK: weft.attention %{{.*}}, %{{.*}}, %{{.*}} causal true scale 2.000000e-01 {hiddenScore = 0xFFF0000000000000 : f64}
// CHECK: weft.attention %{{.*}} mask %{{.*}} : tensor<2x4x8x8xi1> causal false
func.func @replaced_behind_queries(%x: !qkv) -> (!qkv, !qkv) {
  %query = weft.iota 2 : tensor<2x4x8x8xi64>
  %key = weft.iota 3 : tensor<2x4x8x8xi64>
  %seen = weft.cmp <ge> %query, %key : tensor<2x4x8x8xi64> -> tensor<2x4x8x8xi1>
  %0 = weft.attention %x, %x, %x mask %seen : tensor<2x4x8x8xi1> causal false scale 0.2 {hiddenScore = -3.0e38 : f64} : !qkv, !qkv, !qkv -> !qkv
  %1 = weft.attention %x, %x, %x mask %seen : tensor<2x4x8x8xi1> causal false scale 0.2 {hiddenScore = -10.0 : f64} : !qkv, !qkv, !qkv -> !qkv
  return %0, %1 : !qkv, !qkv
}

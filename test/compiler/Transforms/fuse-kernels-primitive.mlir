// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-fuse-kernels -split-input-file \
// RUN:   --remarks-filter=".*" --remark-format=emitRemark 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// A primitive function is a kernel of its own name; what is around it is fused without it.
// CHECK-LABEL: func.func @main(
// CHECK: %[[X:.*]] = call @elementwise_0(%arg0)
// CHECK: %[[Y:.*]] = call @scaled(%[[X]], %arg1)
// CHECK: %[[Z:.*]] = call @elementwise_1(%[[Y]])
// CHECK: return %[[Z]]
// CHECK: func.func private @elementwise_0
// CHECK: weft.exp
// CHECK: func.func private @scaled
// CHECK-SAME: weft.kernel = "nest", weft.primitive
// CHECK: weft.mul
// CHECK-NEXT: weft.add
// CHECK: func.func private @elementwise_1
// CHECK: weft.tanh
// CHECK-NEXT: weft.neg
// REMARK: weft.mul is not part of the kernel of weft.exp: a primitive function is a unit of its own
// REMARK: weft.tanh is not part of the kernel of weft.add: a primitive function is a unit of its own
func.func @main(%x: tensor<96xf32>, %y: tensor<96xf32>) -> tensor<96xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.exp %x : tensor<96xf32>
  %1 = call @scaled(%0, %y) : (tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>
  %2 = weft.tanh %1 : tensor<96xf32>
  %3 = weft.neg %2 : tensor<96xf32>
  return %3 : tensor<96xf32>
}
func.func private @scaled(%x: tensor<96xf32>, %y: tensor<96xf32>) -> tensor<96xf32> attributes {weft.primitive} {
  %0 = weft.mul %x, %y : tensor<96xf32>
  %1 = weft.add %0, %y : tensor<96xf32>
  return %1 : tensor<96xf32>
}

// -----

// What one kernel cannot hold becomes several, which have the name and a number; two calls are two
// units.
// CHECK-LABEL: func.func @twice(
// CHECK: call @chain(
// CHECK: call @chain_0(
// CHECK: call @chain_1(
// CHECK: call @chain_2(
// CHECK: return
// REMARK: weft.dot_general is not part of the kernel of weft.dot_general: each has loops of its own
func.func @twice(%x: tensor<96x96xf32>) -> tensor<96x96xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @chain(%x) : (tensor<96x96xf32>) -> tensor<96x96xf32>
  %1 = call @chain(%0) : (tensor<96x96xf32>) -> tensor<96x96xf32>
  return %1 : tensor<96x96xf32>
}
func.func private @chain(%x: tensor<96x96xf32>) -> tensor<96x96xf32> attributes {weft.primitive} {
  %0 = weft.dot_general %x, %x batch [] x [] contract [1] x [0] : tensor<96x96xf32>, tensor<96x96xf32> -> tensor<96x96xf32>
  %1 = weft.dot_general %0, %x batch [] x [] contract [1] x [0] : tensor<96x96xf32>, tensor<96x96xf32> -> tensor<96x96xf32>
  return %1 : tensor<96x96xf32>
}

// -----

// A product that two read is computed once, with both of them behind it, if they can follow it, or
// stored for the one that cannot.
// CHECK-LABEL: func.func @shared(
// CHECK: %[[P:.*]]:2 = call @dot_general_0
// CHECK-NEXT: %[[S:.*]] = call @reduce_0(%[[P]]#
// CHECK-NEXT: return
// REMARK: weft.reduce is not part of the kernel of weft.{{[a-z_]+}}: only elementwise ops in the order of its results follow a contraction
func.func @shared(%x: tensor<96x96xf32>, %b: tensor<96x96xf32>) -> (tensor<96x96xf32>, tensor<96xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.dot_general %x, %x batch [] x [] contract [1] x [0] : tensor<96x96xf32>, tensor<96x96xf32> -> tensor<96x96xf32>
  %1 = weft.add %0, %b : tensor<96x96xf32>
  %2 = weft.reduce <sum> %0 dims [1] : tensor<96x96xf32> -> tensor<96xf32>
  return %1, %2 : tensor<96x96xf32>, tensor<96xf32>
}

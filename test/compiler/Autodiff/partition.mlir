// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-differentiate="wrt=0,1 results=0" -canonicalize -cse -weft-partition | FileCheck %s

// What derivatives read of arguments and results is read where it is. %x is none of these, and not
// there to compute the first exponential again.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: attributes {weft.entry = #weft.entry<forward>}
// CHECK: %[[FIRST:.*]] = weft.exp
// CHECK: %[[SECOND:.*]] = weft.exp
// CHECK: return %[[SECOND]], %[[FIRST]]
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[W:.*]]: tensor<4x8xf32> {weft.kind = "input", weft.name = "input 1"}
// CHECK-SAME: %[[Y:.*]]: tensor<4x8xf32> {weft.kind = "input", weft.name = "result 0"}
// CHECK-SAME: {weft.kind = "input", weft.name = "saved 0"}
// CHECK-SAME: %[[G:.*]]: tensor<4x8xf32> {weft.kind = "input", weft.name = "gradient 0"}
// CHECK-SAME: attributes {weft.entry = #weft.entry<backward>}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.sub %x, %w : tensor<4x8xf32>
  %1 = weft.exp %0 : tensor<4x8xf32>
  %2 = weft.mul %1, %w : tensor<4x8xf32>
  %3 = weft.exp %2 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// A contraction's result is saved, the cheap steps behind it are computed again.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[DOT:.*]] = weft.dot_general
// CHECK: %[[TWICE:.*]] = weft.add %[[DOT]], %[[DOT]]
// CHECK: return %{{.*}}, %[[DOT]]
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: {weft.kind = "input", weft.name = "saved 0"}
// CHECK-NOT: weft.name = "saved 1"
// CHECK: weft.add
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = weft.add %0, %0 : tensor<64x64xf32>
  %2 = weft.mul %1, %1 : tensor<64x64xf32>
  %3 = weft.mul %2, %0 : tensor<64x64xf32>
  %4 = weft.reduce <sum> %3 dims [1] : tensor<64x64xf32> -> tensor<64xf32>
  return %4 : tensor<64xf32>
}

// -----

// Random numbers are drawn once. Of dropout's the backward needs no more than which are zero.
// CHECK-LABEL: func.func @forward(
// CHECK: weft.torch_fallback
// CHECK: %[[MASK:.*]] = weft.cmp <ne>
// CHECK: return %{{.*}}, %[[MASK]] : tensor<4x8xf32>, tensor<4x8xi1>
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: weft.torch_fallback
// CHECK: weft.convert
func.func @main(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %zero = weft.constant dense<0.0> : tensor<4x8xf32>
  %two = weft.constant dense<2.0> : tensor<4x8xf32>
  %0 = weft.torch_fallback "aten.bernoulli.p"(%x) "[{\"tensor\": 0}, 0.5, null]" : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = weft.cmp <ne> %0, %zero : tensor<4x8xf32> -> tensor<4x8xi1>
  %2 = weft.convert %1 : tensor<4x8xi1> -> tensor<4x8xf32>
  %3 = weft.mul %2, %two : tensor<4x8xf32>
  %4 = weft.add %x, %w : tensor<4x8xf32>
  %5 = weft.mul %4, %3 : tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// -----

// What the user computes again is not saved, dear as it may be, and what it reads is at hand: its
// input is saved, and an argument read through it.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[IN:.*]] = weft.exp
// CHECK: return %{{.*}}, %[[IN]] : tensor<64x64xf32>, tensor<64x64xf32>
// CHECK-LABEL: func.func @backward(
// CHECK: weft.name = "saved 0"
// CHECK-NOT: weft.name = "saved 1"
// CHECK: weft.dot_general
// CHECK: weft.sin
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.exp %x : tensor<64x64xf32>
  %1 = weft.dot_general %0, %w batch [] x [] contract [1] x [1] {weft.recompute = true} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = weft.sin %1 {weft.recompute = true} : tensor<64x64xf32>
  %3 = weft.mul %2, %2 {weft.recompute = true} : tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}

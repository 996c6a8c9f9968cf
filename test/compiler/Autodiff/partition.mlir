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

// -----

// The shift of a norm, which PyTorch's own backward does not read and which may have changed by
// then, is copied, so that what follows it need not be saved. What is computed again is computed
// where it is read first.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[SHIFT:[a-z0-9]*]]: tensor<64xf32>
// CHECK: %[[DOT:.*]] = weft.dot_general
// CHECK: return %{{.*}}, %[[SHIFT]], %[[DOT]] : tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[COPY:[a-z0-9]*]]: tensor<64xf32> {weft.kind = "input", weft.name = "saved 0"}
// CHECK: weft.mul
// CHECK: weft.broadcast_in_dim %[[COPY]]
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %shift: tensor<64xf32>) -> tensor<64x64xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = weft.broadcast_in_dim %shift dims [1] : tensor<64xf32> -> tensor<64x64xf32>
  %2 = weft.add %0, %1 : tensor<64x64xf32>
  %3 = weft.mul %2, %2 : tensor<64x64xf32>
  %4 = weft.mul %3, %0 : tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}

// -----

// Of tensors that would be computed one from the other every second one is saved: the first sum,
// as the second one is made of it.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[FIRST:.*]] = weft.dot_general
// CHECK: %[[SECOND:.*]] = weft.dot_general
// CHECK: %[[SUM:.*]] = weft.add
// CHECK: %[[THIRD:.*]] = weft.dot_general
// CHECK: %[[LAST:.*]] = weft.dot_general
// CHECK: return %[[LAST]], %[[FIRST]], %[[SECOND]], %[[SUM]], %[[THIRD]] :
func.func @main(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  %1 = weft.mul %0, %0 : tensor<256x256xf32>
  %2 = weft.dot_general %1, %w batch [] x [] contract [1] x [1] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  %3 = weft.mul %2, %2 : tensor<256x256xf32>
  %4 = weft.add %1, %3 : tensor<256x256xf32>
  %5 = weft.dot_general %4, %w batch [] x [] contract [1] x [1] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  %6 = weft.mul %5, %5 : tensor<256x256xf32>
  %7 = weft.add %4, %6 : tensor<256x256xf32>
  %8 = weft.dot_general %7, %w batch [] x [] contract [1] x [1] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  return %8 : tensor<256x256xf32>
}

// -----

// Running statistics may be other ones by then: what is computed of them is saved, while the
// derivative reads them as they are.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[NORM:.*]] = weft.batch_norm
// CHECK: %[[RESULT:.*]] = weft.mul
// CHECK: return %[[RESULT]], %[[NORM]] :
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: weft.name = "input 0"
// CHECK-SAME: weft.name = "input 2"
// CHECK-SAME: weft.name = "input 3"
// CHECK-SAME: weft.name = "saved 0"
// CHECK-NOT: weft.batch_norm
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64xf32>, %mean: tensor<64xf32>, %variance: tensor<64xf32>) -> tensor<64x64xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.batch_norm %x mean %mean variance %variance : tensor<64xf32>, tensor<64xf32> weight %w : tensor<64xf32> eps 1.0e-05 : tensor<64x64xf32>
  %1 = weft.mul %0, %0 : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}

// -----

// Elements that are compared with the greatest of them are those that it was found among: none
// might be equal to it if they were computed again. It is found again among these, for the forward
// may compute them twice, in two orders.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[X:.*]] = weft.add
// CHECK: %[[MOST:.*]] = weft.reduce <max>
// CHECK: return %[[MOST]], %[[X]]
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: weft.name = "result 0"
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32> {weft.kind = "input", weft.name = "saved 0"}
// CHECK: %[[MOST:.*]] = weft.reduce <max> %[[X]]
// CHECK: %[[ALL:.*]] = weft.broadcast_in_dim %[[MOST]]
// CHECK: weft.cmp <eq> %[[X]], %[[ALL]]
func.func @main(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.add %x, %w : tensor<4x8xf32>
  %1 = weft.reduce <max> %0 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// What the forward compares with one chosen of its elements is not computed again: an element
// that is the bound itself might then lie below it.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[E:.*]] = weft.exp
// CHECK: return %{{.*}}, %[[E]]
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: weft.exp
// CHECK: return
func.func @main(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.mul %x, %w : tensor<4x8xf32>
  %e = weft.exp %0 : tensor<4x8xf32>
  %values, %indices = weft.sort %e dim 1 descending true count 3 : tensor<4x8xf32> -> tensor<4x3xf32>, tensor<4x3xi64>
  %last = weft.slice %values [0, 2] to [4, 3] by [1, 1] : tensor<4x3xf32> -> tensor<4x1xf32>
  %bound = weft.broadcast_in_dim %last dims [0, 1] : tensor<4x1xf32> -> tensor<4x8xf32>
  %is = weft.cmp <ge> %e, %bound : tensor<4x8xf32> -> tensor<4x8xi1>
  %zero = weft.constant dense<0.0> : tensor<4x8xf32>
  %y = weft.select %is, %e, %zero : tensor<4x8xi1>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

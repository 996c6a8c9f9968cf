// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-hoist-bind | FileCheck %s

#packed = #weft.layout<[0, 2, 3, 1], tile 0 by 32>

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x8x8xf32> {weft.kind = "input", weft.name = "x"},
// CHECK-SAME: %[[W:.*]]: tensor<64x8x3x3xf32> {weft.kind = "weight", weft.name = "w"},
// CHECK-SAME: %[[P:.*]]: tensor<64x8x3x3xf32, #[[PACKED:.*]]> {weft.kind = "bound", weft.name = "bound.0"})
func.func @main(%x: tensor<1x8x8x8xf32> {weft.kind = "input", weft.name = "x"},
                %w: tensor<64x8x3x3xf32> {weft.kind = "weight", weft.name = "w"})
    -> tensor<64x8x3x3xf32, #packed> attributes {weft.entry = #weft.entry<main>} {
  // CHECK-NEXT: return %[[P]]
  %0 = weft.neg %w : tensor<64x8x3x3xf32>
  %1 = weft.relayout %0 : tensor<64x8x3x3xf32> -> tensor<64x8x3x3xf32, #packed>
  return %1 : tensor<64x8x3x3xf32, #packed>
}
// CHECK-LABEL: func.func @bind(
// CHECK-SAME: %[[W:.*]]: tensor<64x8x3x3xf32> {weft.kind = "weight", weft.name = "w"})
// CHECK-SAME: -> tensor<64x8x3x3xf32, #[[PACKED]]> attributes {weft.entry = #weft.entry<bind>}
// CHECK: %[[N:.*]] = weft.neg %[[W]]
// CHECK: %[[R:.*]] = weft.relayout %[[N]]
// CHECK: return %[[R]]

// -----

// What depends on an input stays, and so does a relayout that only permutes.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: weft.relayout
// CHECK-NOT: @bind
func.func @main(%x: tensor<32x8xf32> {weft.kind = "input", weft.name = "x"},
                %w: tensor<8x32xf32> {weft.kind = "weight", weft.name = "w"})
    -> (tensor<32x8xf32, #weft.layout<[0, 1], tile 0 by 16>>, tensor<8x32xf32, #weft.layout<[1, 0]>>)
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.relayout %x : tensor<32x8xf32> -> tensor<32x8xf32, #weft.layout<[0, 1], tile 0 by 16>>
  %1 = weft.relayout %w : tensor<8x32xf32> -> tensor<8x32xf32, #weft.layout<[1, 0]>>
  return %0, %1 : tensor<32x8xf32, #weft.layout<[0, 1], tile 0 by 16>>, tensor<8x32xf32, #weft.layout<[1, 0]>>
}

// -----

// A convolution reads its weight often: that is permuted once.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[P:[^:]*]]: tensor<8x1x3xf32, #{{.*}}> {weft.kind = "bound", weft.name = "bound.0"})
// CHECK-NEXT: weft.conv %{{.*}}, %[[P]]
// CHECK: func.func @bind(
func.func @main(%x: tensor<1x8x5xf32> {weft.kind = "input", weft.name = "x"},
                %w: tensor<8x1x3xf32> {weft.kind = "weight", weft.name = "w"})
    -> tensor<1x8x3xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.relayout %w : tensor<8x1x3xf32> -> tensor<8x1x3xf32, #weft.layout<[2, 1, 0]>>
  %1 = weft.conv %x, %0 strides [1] pad [0] x [0] dilations [1] groups 8
    : tensor<1x8x5xf32>, tensor<8x1x3xf32, #weft.layout<[2, 1, 0]>> -> tensor<1x8x3xf32>
  return %1 : tensor<1x8x3xf32>
}

// -----

// A weight that two relayouts share is one argument of @bind.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: weft.name = "bound.0"
// CHECK-SAME: weft.name = "bound.1"
// CHECK: func.func @bind(%{{[^,]*}}: tensor<32x32xf32> {weft.kind = "buffer", weft.name = "w"})
func.func @main(%w: tensor<32x32xf32> {weft.kind = "buffer", weft.name = "w"})
    -> (tensor<32x32xf32, #weft.layout<[0, 1], tile 0 by 16>>, tensor<32x32xf32, #weft.layout<[0, 1], tile 0 by 32>>)
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.relayout %w : tensor<32x32xf32> -> tensor<32x32xf32, #weft.layout<[0, 1], tile 0 by 16>>
  %1 = weft.relayout %w : tensor<32x32xf32> -> tensor<32x32xf32, #weft.layout<[0, 1], tile 0 by 32>>
  return %0, %1 : tensor<32x32xf32, #weft.layout<[0, 1], tile 0 by 16>>, tensor<32x32xf32, #weft.layout<[0, 1], tile 0 by 32>>
}

// -----

// Arithmetic on weights is done once; the views behind it stay with their reader, and what
// is returned is computed anew.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[P:[^:]*]]: tensor<8xf32> {weft.kind = "bound", weft.name = "bound.0"})
// CHECK: %[[R:.*]] = weft.neg %{{.*}} : tensor<8xf32>
// CHECK: %[[B:.*]] = weft.broadcast_in_dim %[[P]]
// CHECK: %[[Y:.*]] = weft.mul %{{.*}}, %[[B]]
// CHECK: return %[[Y]], %[[R]]
// CHECK: func.func @bind(
// CHECK: weft.exp
// CHECK-NOT: weft.neg
func.func @main(%x: tensor<2x8xf32> {weft.kind = "input", weft.name = "x"},
                %w: tensor<8xf32> {weft.kind = "weight", weft.name = "w"})
    -> (tensor<2x8xf32>, tensor<8xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.exp %w : tensor<8xf32>
  %1 = weft.neg %w : tensor<8xf32>
  %2 = weft.broadcast_in_dim %0 dims [1] : tensor<8xf32> -> tensor<2x8xf32>
  %3 = weft.mul %x, %2 : tensor<2x8xf32>
  return %3, %1 : tensor<2x8xf32>, tensor<8xf32>
}

// -----

// What depends on constants alone is repeated where it is read: masks are loops, not memory.
// CHECK-LABEL: func.func @main(
// CHECK: weft.iota
// CHECK-NOT: @bind
func.func @main(%x: tensor<8xf32> {weft.kind = "input", weft.name = "x"})
    -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.iota 0 : tensor<8xf32>
  %1 = weft.exp %0 : tensor<8xf32>
  %2 = weft.mul %x, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Arithmetic in float64 is kept as it is read: rounded to float32, once.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[P:[^:]*]]: tensor<8xf32> {weft.kind = "bound", weft.name = "bound.0"})
// CHECK-NOT: weft.convert
// CHECK: weft.broadcast_in_dim %[[P]]
// CHECK: func.func @bind(
// CHECK: weft.mul
// CHECK: weft.convert %{{.*}} : tensor<8xf64> -> tensor<8xf32>
func.func @main(%x: tensor<5x8xf32> {weft.kind = "input", weft.name = "x"},
                %w: tensor<8xf32> {weft.kind = "weight", weft.name = "w"})
    -> tensor<5x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.convert %w : tensor<8xf32> -> tensor<8xf64>
  %1 = weft.mul %0, %0 : tensor<8xf64>
  %2 = weft.convert %1 : tensor<8xf64> -> tensor<8xf32>
  %3 = weft.broadcast_in_dim %2 dims [1] : tensor<8xf32> -> tensor<5x8xf32>
  %4 = weft.add %x, %3 : tensor<5x8xf32>
  return %4 : tensor<5x8xf32>
}

// -----

// A contraction reads its weight often: a copy in another order is made once.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[B:[^,]*]]: tensor<8x32xbf16, #weft.layout<[1, 0]>> {weft.kind = "bound"
// CHECK-NOT: weft.relayout
// CHECK: weft.dot_general %{{.*}}, %[[B]]
// CHECK: func.func @bind(
// CHECK: weft.convert
// CHECK: weft.relayout
func.func @main(%x: tensor<5x8xbf16> {weft.kind = "input", weft.name = "x"},
                %w: tensor<8x32xf32> {weft.kind = "weight", weft.name = "w"})
    -> tensor<5x32xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.convert %w : tensor<8x32xf32> -> tensor<8x32xbf16>
  %1 = weft.relayout %0 : tensor<8x32xbf16> -> tensor<8x32xbf16, #weft.layout<[1, 0]>>
  %2 = weft.dot_general %x, %1 batch [] x [] contract [1] x [0] : tensor<5x8xbf16>, tensor<8x32xbf16, #weft.layout<[1, 0]>> -> tensor<5x32xf32>
  return %2 : tensor<5x32xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-hoist-invariants | FileCheck %s

#packed = #weft.layout<[0, 1], tile 0 by 32>

// The packed weight is made once; the weight itself is not needed in the loop any more. The bias
// is repeated where it is read.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[H:.*]]: tensor<8x64xf32>, %[[W:.*]]: tensor<64x64xf32>, %[[B:.*]]: tensor<64xf32>)
// CHECK: %[[P:.*]] = weft.relayout %[[W]]
// CHECK: weft.loop @step 9 reverse false carry(%[[H]]) over() with(%[[B]], %[[P]])
// CHECK-LABEL: func.func private @step(
// CHECK-NOT: weft.relayout
// CHECK: weft.broadcast_in_dim
func.func @main(%h: tensor<8x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<8x64xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @step 9 reverse false carry(%h) over() with(%w, %b)
    : (tensor<8x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
func.func private @step(%h: tensor<8x64xf32> {weft.kind = "input"}, %w: tensor<64x64xf32> {weft.kind = "constant"},
                        %b: tensor<64xf32> {weft.kind = "constant"}) -> tensor<8x64xf32> attributes {weft.step} {
  %0 = weft.relayout %w : tensor<64x64xf32> -> tensor<64x64xf32, #packed>
  %1 = weft.dot_general %h, %0 batch [] x [] contract [1] x [1]
    : tensor<8x64xf32>, tensor<64x64xf32, #packed> -> tensor<8x64xf32>
  %2 = weft.broadcast_in_dim %b dims [1] : tensor<64xf32> -> tensor<8x64xf32>
  %3 = weft.add %1, %2 : tensor<8x64xf32>
  return %3 : tensor<8x64xf32>
}

// -----

// From the inner loop to the outer one, and ahead of that.
// CHECK-LABEL: func.func @main(
// CHECK: %[[E:.*]] = weft.exp
// CHECK: weft.loop @outer 9 reverse false carry(%{{.*}}) over() with(%[[E]])
// CHECK-NOT: weft.exp
func.func @main(%h: tensor<8xf32>, %a: tensor<8xf32>) -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @outer 9 reverse false carry(%h) over() with(%a)
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @outer(%h: tensor<8xf32> {weft.kind = "input"}, %a: tensor<8xf32> {weft.kind = "constant"})
    -> tensor<8xf32> attributes {weft.step} {
  %0 = weft.loop @inner 9 reverse false carry(%h) over() with(%a)
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @inner(%h: tensor<8xf32> {weft.kind = "input"}, %a: tensor<8xf32> {weft.kind = "constant"})
    -> tensor<8xf32> attributes {weft.step} {
  %0 = weft.exp %a : tensor<8xf32>
  %1 = weft.mul %h, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// What depends on the state stays.
// CHECK-LABEL: func.func private @step(
// CHECK: weft.exp
func.func @main(%h: tensor<8xf32>) -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @step 9 reverse false carry(%h) over() with() : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @step(%h: tensor<8xf32> {weft.kind = "input"}) -> tensor<8xf32> attributes {weft.step} {
  %0 = weft.exp %h : tensor<8xf32>
  return %0 : tensor<8xf32>
}

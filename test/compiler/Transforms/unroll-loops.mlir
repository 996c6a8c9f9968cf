// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-unroll-loops | FileCheck %s

// Four steps of twenty as one: the largest factor up to eight that leaves none over. Elements of a
// sequence, and outputs, stand together; the state goes from step to step.
// CHECK-LABEL: func.func @main(
// CHECK: weft.loop @[[STEP:.*]] 20 by 5 reverse true carry(%{{.*}}) over(%{{.*}}) with(%{{.*}}) :
// CHECK: func.func private @[[STEP]](%[[H:[^:]*]]: tensor<8xf32> {weft.kind = "input"}, %[[X:[^:]*]]: tensor<8xf32> {weft.kind = "input"}, %[[Y:[^:]*]]: tensor<8xf32> {weft.kind = "input"},
// CHECK-SAME: %[[B:[^:]*]]: tensor<8xf32> {weft.kind = "constant"}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {weft.step}
// CHECK: %[[A0:.*]] = weft.add %[[H]], %[[X]]
// CHECK: %[[M0:.*]] = weft.mul %[[A0]], %[[B]]
// CHECK: %[[A1:.*]] = weft.add %[[M0]], %[[Y]]
// CHECK: %[[M1:.*]] = weft.mul %[[A1]], %[[B]]
// CHECK: %[[A2:.*]] = weft.add %[[M1]], %{{.*}}
// CHECK: return %{{.*}}, %[[A0]], %[[A1]], %[[A2]], %{{.*}}, %{{.*}}
func.func @main(%h: tensor<8xf32>, %xs: tensor<20x8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<20x8xf32>)
    attributes {weft.entry = #weft.entry<main>} {
  %0:2 = weft.loop @step 20 reverse true carry(%h) over(%xs) with(%b)
    : (tensor<8xf32>, tensor<20x8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<20x8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<20x8xf32>
}
func.func private @step(%h: tensor<8xf32> {weft.kind = "input"}, %x: tensor<8xf32> {weft.kind = "input"},
                        %b: tensor<8xf32> {weft.kind = "constant"}) -> (tensor<8xf32>, tensor<8xf32>) attributes {weft.step} {
  %0 = weft.add %h, %x : tensor<8xf32>
  %1 = weft.mul %0, %b : tensor<8xf32>
  return %1, %0 : tensor<8xf32>, tensor<8xf32>
}

// -----

// No factor divides seventeen: the last of them is run by itself.
// CHECK-LABEL: func.func @main(
// CHECK: weft.loop @[[STEP:.*]] 17 by 8 reverse false carry(%{{.*}}) over() with(%[[B:.*]]) rest @step with(%[[B]]) :
// CHECK: func.func private @step(
// CHECK: func.func private @[[STEP]](
func.func @main(%h: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @step 17 reverse false carry(%h) over() with(%b)
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @step(%h: tensor<8xf32> {weft.kind = "input"}, %b: tensor<8xf32> {weft.kind = "constant"})
    -> tensor<8xf32> attributes {weft.step} {
  %0 = weft.add %h, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// How many steps of sixteen count is known to a call alone.
// CHECK-LABEL: func.func @main(
// CHECK: weft.loop @{{.*}} 16 by 8 reverse false {{.*}} rest @step with() {weft.counting_steps = array<i64: 1, 0>}
func.func @main(%h: tensor<8xf32>, %n: tensor<1xi64> {weft.bounds = array<i64: 16>}) -> tensor<8xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @step 16 reverse false carry(%h) over() with() {weft.counting_steps = array<i64: 1, 0>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @step(%h: tensor<8xf32> {weft.kind = "input"}) -> tensor<8xf32> attributes {weft.step} {
  %0 = weft.exp %h : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A contraction is a kernel of its own in each step, and a single step no loop.
// CHECK-LABEL: func.func @main(
// CHECK: weft.loop @step 16 reverse false
// CHECK: weft.loop @once 1 reverse false
func.func @main(%h: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @step 16 reverse false carry(%h) over() with(%w)
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = weft.loop @once 1 reverse false carry(%0) over() with() : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
func.func private @step(%h: tensor<4x8xf32> {weft.kind = "input"}, %w: tensor<8x8xf32> {weft.kind = "constant"})
    -> tensor<4x8xf32> attributes {weft.step} {
  %0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @once(%h: tensor<4x8xf32> {weft.kind = "input"}) -> tensor<4x8xf32> attributes {weft.step} {
  %0 = weft.exp %h : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-roll-loops="fewest-steps=3" | FileCheck %s

// Rows of a sequence, a weight, and a state that is stacked and whose last value is returned.
// CHECK-LABEL: @stacked(
// CHECK-SAME: %[[XS:.*]]: tensor<3x2x4xf32>, %[[W:.*]]: tensor<4x4xf32>, %[[H:.*]]: tensor<2x4xf32>)
// CHECK-NOT: weft.dot_general
// CHECK: %[[S:.*]]:2 = weft.scan 3 carry(%[[A:.*]] = %[[H]] : tensor<2x4xf32>) over(%[[X:.*]] = %{{.*}} : tensor<3x1x2x4xf32>) with(%[[V:.*]] = %[[W]] : tensor<4x4xf32>)
// CHECK-NEXT: %[[R:.*]] = weft.reshape %[[X]]
// CHECK-NEXT: %[[D:.*]] = weft.dot_general %[[A]], %[[V]]
// CHECK-NEXT: %[[N:.*]] = weft.add %[[D]], %[[R]]
// CHECK-NEXT: weft.yield %[[N]], %[[N]]
// CHECK: %[[Y:.*]] = weft.reshape %[[S]]#1
// CHECK: %[[ALL:.*]] = weft.reshape %[[Y]]
// CHECK: return %[[ALL]], %[[S]]#0
func.func @stacked(%xs: tensor<3x2x4xf32>, %w: tensor<4x4xf32>, %h: tensor<2x4xf32>)
    -> (tensor<3x2x4xf32>, tensor<2x4xf32>) {
  %s0 = weft.slice %xs [0, 0, 0] to [1, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x0 = weft.reshape %s0 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n0 = weft.add %d0, %x0 : tensor<2x4xf32>
  %s1 = weft.slice %xs [1, 0, 0] to [2, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x1 = weft.reshape %s1 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d1 = weft.dot_general %n0, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n1 = weft.add %d1, %x1 : tensor<2x4xf32>
  %s2 = weft.slice %xs [2, 0, 0] to [3, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x2 = weft.reshape %s2 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d2 = weft.dot_general %n1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n2 = weft.add %d2, %x2 : tensor<2x4xf32>
  %r0 = weft.reshape %n0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %r1 = weft.reshape %n1 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %r2 = weft.reshape %n2 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %all = weft.concat %r0, %r1, %r2 dim 0 : tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32> -> tensor<3x2x4xf32>
  return %all, %n2 : tensor<3x2x4xf32>, tensor<2x4xf32>
}

// -----

// From the last row to the first, and a number for each step.
// CHECK-LABEL: @reversed(
// CHECK-SAME: %[[XS:.*]]: tensor<2x3xf32>, %[[H:.*]]: tensor<2x1xf32>)
// CHECK: %[[ROWS:.*]] = weft.transpose %{{.*}} perm [1, 0, 2]
// CHECK: %[[NUMBERS:.*]] = weft.reverse %{{.*}} dims [0] : tensor<3xf32>
// CHECK: weft.scan 3 reverse carry(%{{.*}} = %[[H]] : tensor<2x1xf32>) over(%{{.*}} = %{{.*}} : tensor<3x2x1xf32>, %[[T:.*]] = %[[NUMBERS]] : tensor<3xf32>)
// CHECK: weft.broadcast_in_dim %[[T]] dims [] : tensor<f32> -> tensor<2x1xf32>
func.func @reversed(%xs: tensor<2x3xf32>, %h: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %x0 = weft.slice %xs [0, 2] to [2, 3] by [1, 1] : tensor<2x3xf32> -> tensor<2x1xf32>
  %c0 = weft.constant dense<0.0> : tensor<2x1xf32>
  %m0 = weft.mul %x0, %c0 : tensor<2x1xf32>
  %q0 = weft.reduce <sum> %h dims [0] : tensor<2x1xf32> -> tensor<1xf32>
  %b0 = weft.broadcast_in_dim %q0 dims [1] : tensor<1xf32> -> tensor<2x1xf32>
  %n0 = weft.add %b0, %m0 : tensor<2x1xf32>
  %x1 = weft.slice %xs [0, 1] to [2, 2] by [1, 1] : tensor<2x3xf32> -> tensor<2x1xf32>
  %c1 = weft.constant dense<1.0> : tensor<2x1xf32>
  %m1 = weft.mul %x1, %c1 : tensor<2x1xf32>
  %q1 = weft.reduce <sum> %n0 dims [0] : tensor<2x1xf32> -> tensor<1xf32>
  %b1 = weft.broadcast_in_dim %q1 dims [1] : tensor<1xf32> -> tensor<2x1xf32>
  %n1 = weft.add %b1, %m1 : tensor<2x1xf32>
  %x2 = weft.slice %xs [0, 0] to [2, 1] by [1, 1] : tensor<2x3xf32> -> tensor<2x1xf32>
  %c2 = weft.constant dense<2.0> : tensor<2x1xf32>
  %m2 = weft.mul %x2, %c2 : tensor<2x1xf32>
  %q2 = weft.reduce <sum> %n1 dims [0] : tensor<2x1xf32> -> tensor<1xf32>
  %b2 = weft.broadcast_in_dim %q2 dims [1] : tensor<1xf32> -> tensor<2x1xf32>
  %n2 = weft.add %b2, %m2 : tensor<2x1xf32>
  return %n2 : tensor<2x1xf32>
}

// -----

// The first step is another: it stands alone.
// CHECK-LABEL: @first_step(
// CHECK: weft.dot_general
// CHECK: weft.sub
// CHECK: weft.scan 3
func.func @first_step(%w: tensor<4x4xf32>, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %d = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n0 = weft.sub %d, %h : tensor<2x4xf32>
  %d1 = weft.dot_general %n0, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n1 = weft.add %d1, %n0 : tensor<2x4xf32>
  %d2 = weft.dot_general %n1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n2 = weft.add %d2, %n1 : tensor<2x4xf32>
  %d3 = weft.dot_general %n2, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n3 = weft.add %d3, %n2 : tensor<2x4xf32>
  return %n3 : tensor<2x4xf32>
}

// -----

// Layers: each has a weight of its own.
// CHECK-LABEL: @weights(
// CHECK-NOT: weft.scan
func.func @weights(%xs: tensor<3x2x4xf32>, %w: tensor<4x4xf32>, %w1: tensor<4x4xf32>, %h: tensor<2x4xf32>)
    -> tensor<2x4xf32> {
  %s0 = weft.slice %xs [0, 0, 0] to [1, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x0 = weft.reshape %s0 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n0 = weft.add %d0, %x0 : tensor<2x4xf32>
  %s1 = weft.slice %xs [1, 0, 0] to [2, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x1 = weft.reshape %s1 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d1 = weft.dot_general %n0, %w1 batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n1 = weft.add %d1, %x1 : tensor<2x4xf32>
  %s2 = weft.slice %xs [2, 0, 0] to [3, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x2 = weft.reshape %s2 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d2 = weft.dot_general %n1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n2 = weft.add %d2, %x2 : tensor<2x4xf32>
  return %n2 : tensor<2x4xf32>
}

// -----

// What single steps compute is read: a row of what is stacked.
// CHECK-LABEL: @single(
// CHECK: %[[S:.*]]:2 = weft.scan 3
// CHECK: %[[ROW:.*]] = weft.slice %[[S]]#1 [1, 0, 0] to [2, 2, 4]
// CHECK: %[[ONE:.*]] = weft.reshape %[[ROW]]
// CHECK: %[[LAST:.*]] = weft.slice %[[S]]#1 [2, 0, 0] to [3, 2, 4]
// CHECK: return %[[ONE]], %{{.*}}
func.func @single(%xs: tensor<3x2x4xf32>, %w: tensor<4x4xf32>, %h: tensor<2x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %s0 = weft.slice %xs [0, 0, 0] to [1, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x0 = weft.reshape %s0 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n0 = weft.add %d0, %x0 : tensor<2x4xf32>
  %s1 = weft.slice %xs [1, 0, 0] to [2, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x1 = weft.reshape %s1 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d1 = weft.dot_general %n0, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n1 = weft.add %d1, %x1 : tensor<2x4xf32>
  %s2 = weft.slice %xs [2, 0, 0] to [3, 2, 4] by [1, 1, 1] : tensor<3x2x4xf32> -> tensor<1x2x4xf32>
  %x2 = weft.reshape %s2 : tensor<1x2x4xf32> -> tensor<2x4xf32>
  %d2 = weft.dot_general %n1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n2 = weft.add %d2, %x2 : tensor<2x4xf32>
  return %n1, %n2 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Few steps of elementwise ops are one kernel.
// CHECK-LABEL: @elementwise(
// CHECK-NOT: weft.scan
func.func @elementwise(%h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %e0 = weft.exp %h : tensor<2x4xf32>
  %n0 = weft.neg %e0 : tensor<2x4xf32>
  %e1 = weft.exp %n0 : tensor<2x4xf32>
  %n1 = weft.neg %e1 : tensor<2x4xf32>
  %e2 = weft.exp %n1 : tensor<2x4xf32>
  %n2 = weft.neg %e2 : tensor<2x4xf32>
  return %n2 : tensor<2x4xf32>
}

// -----

// What was computed two steps before is a second state, which was the first one step before.
// CHECK-LABEL: @two_before(
// CHECK-SAME: %[[W:.*]]: tensor<4x4xf32>, %[[G:.*]]: tensor<2x4xf32>, %[[H:.*]]: tensor<2x4xf32>)
// CHECK: weft.scan 3 carry(%[[A:.*]] = %[[H]] : tensor<2x4xf32>, %[[B:.*]] = %[[G]] : tensor<2x4xf32>)
// CHECK: %[[D:.*]] = weft.dot_general %[[A]]
// CHECK: %[[N:.*]] = weft.add %[[D]], %[[B]]
// CHECK: weft.yield %[[N]], %[[A]]
func.func @two_before(%w: tensor<4x4xf32>, %g: tensor<2x4xf32>, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n0 = weft.add %d0, %g : tensor<2x4xf32>
  %d1 = weft.dot_general %n0, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n1 = weft.add %d1, %h : tensor<2x4xf32>
  %d2 = weft.dot_general %n1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n2 = weft.add %d2, %n0 : tensor<2x4xf32>
  return %n2 : tensor<2x4xf32>
}

// -----

// The last two steps read their own results instead of rows, and are too few.
// CHECK-LABEL: @own_results(
// CHECK: weft.scan 3
// CHECK-NOT: weft.scan
// CHECK: weft.dot_general
// CHECK: weft.dot_general
func.func @own_results(%xs: tensor<3x4xf32>, %w: tensor<4x4xf32>, %h: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %x0 = weft.slice %xs [0, 0] to [1, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %x1 = weft.slice %xs [1, 0] to [2, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %x2 = weft.slice %xs [2, 0] to [3, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n0 = weft.add %d0, %x0 : tensor<1x4xf32>
  %d1 = weft.dot_general %n0, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n1 = weft.add %d1, %x1 : tensor<1x4xf32>
  %d2 = weft.dot_general %n1, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n2 = weft.add %d2, %x2 : tensor<1x4xf32>
  %d3 = weft.dot_general %n2, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n3 = weft.add %d3, %n2 : tensor<1x4xf32>
  %d4 = weft.dot_general %n3, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n4 = weft.add %d4, %n3 : tensor<1x4xf32>
  return %n4 : tensor<1x4xf32>
}

// -----

// A tensor that is filled row by row is the stacked output; checks of all steps are one.
// CHECK-LABEL: @rows(
// CHECK: %[[S:.*]]:3 = weft.scan 3
// CHECK: weft.assert %[[S]]#2, "small" : tensor<3xi1>
// CHECK-NOT: weft.concat
// CHECK: %[[ALL:.*]] = weft.reshape %[[S]]#1
// CHECK: return %[[ALL]]
func.func @rows(%all: tensor<3x4xf32>, %w: tensor<4x4xf32>, %h: tensor<1x4xf32>, %limit: tensor<f32>) -> tensor<3x4xf32> {
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %m0 = weft.reduce <max> %d0 dims [0, 1] : tensor<1x4xf32> -> tensor<f32>
  %c0 = weft.cmp <lt> %m0, %limit : tensor<f32> -> tensor<i1>
  weft.assert %c0, "small" : tensor<i1>
  %s0 = weft.slice %all [1, 0] to [3, 4] by [1, 1] : tensor<3x4xf32> -> tensor<2x4xf32>
  %a0 = weft.concat %d0, %s0 dim 0 : tensor<1x4xf32>, tensor<2x4xf32> -> tensor<3x4xf32>
  %d1 = weft.dot_general %d0, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %m1 = weft.reduce <max> %d1 dims [0, 1] : tensor<1x4xf32> -> tensor<f32>
  %c1 = weft.cmp <lt> %m1, %limit : tensor<f32> -> tensor<i1>
  weft.assert %c1, "small" : tensor<i1>
  %p1 = weft.slice %a0 [0, 0] to [1, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %s1 = weft.slice %a0 [2, 0] to [3, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %a1 = weft.concat %p1, %d1, %s1 dim 0 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<3x4xf32>
  %d2 = weft.dot_general %d1, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %m2 = weft.reduce <max> %d2 dims [0, 1] : tensor<1x4xf32> -> tensor<f32>
  %c2 = weft.cmp <lt> %m2, %limit : tensor<f32> -> tensor<i1>
  weft.assert %c2, "small" : tensor<i1>
  %p2 = weft.slice %a1 [0, 0] to [2, 4] by [1, 1] : tensor<3x4xf32> -> tensor<2x4xf32>
  %a2 = weft.concat %p2, %d2 dim 0 : tensor<2x4xf32>, tensor<1x4xf32> -> tensor<3x4xf32>
  return %a2 : tensor<3x4xf32>
}

// -----

// A row that is read behind the steps, too, stays.
// CHECK-LABEL: @rows_read_elsewhere(
// CHECK: %[[ROW:.*]] = weft.slice %{{.*}} [1, 0] to [2, 4]
// CHECK: weft.scan 3
// CHECK: weft.neg %[[ROW]]
func.func @rows_read_elsewhere(%xs: tensor<3x4xf32>, %w: tensor<4x4xf32>, %h: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %x0 = weft.slice %xs [0, 0] to [1, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n0 = weft.add %d0, %x0 : tensor<1x4xf32>
  %x1 = weft.slice %xs [1, 0] to [2, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %d1 = weft.dot_general %n0, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n1 = weft.add %d1, %x1 : tensor<1x4xf32>
  %x2 = weft.slice %xs [2, 0] to [3, 4] by [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
  %d2 = weft.dot_general %n1, %w batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %n2 = weft.add %d2, %x2 : tensor<1x4xf32>
  %y = weft.neg %x1 : tensor<1x4xf32>
  return %n2, %y : tensor<1x4xf32>, tensor<1x4xf32>
}

// -----

// Each step has numbers that are drawn for it and an input of its own: they are gathered.
// CHECK-LABEL: @gathered(
// CHECK-SAME: %[[X0:[^:]*]]: tensor<2x4xf32> {{[^%]*}}, %[[X1:[^:]*]]: tensor<2x4xf32> {{[^%]*}}, %[[X2:[^:]*]]: tensor<2x4xf32>
// CHECK: %[[R0:.*]] = weft.torch_fallback "aten.rand_like.default"
// CHECK: %[[R1:.*]] = weft.torch_fallback
// CHECK: %[[R2:.*]] = weft.torch_fallback
// CHECK-DAG: %[[N0:.*]] = weft.reshape %[[R0]]
// CHECK-DAG: %[[N2:.*]] = weft.reshape %[[R2]]
// CHECK-DAG: %[[NOISE:.*]] = weft.concat %[[N0]], %{{.*}}, %[[N2]] dim 0
// CHECK-DAG: %[[I0:.*]] = weft.reshape %[[X0]]
// CHECK-DAG: %[[I1:.*]] = weft.reshape %[[X1]]
// CHECK-DAG: %[[I2:.*]] = weft.reshape %[[X2]]
// CHECK-DAG: %[[XS:.*]] = weft.concat %[[I0]], %[[I1]], %[[I2]] dim 0
// CHECK: weft.scan 3 carry(%{{.*}}) over(%{{.*}} = %[[XS]] : tensor<3x2x4xf32>, %{{.*}} = %[[NOISE]] : tensor<3x2x4xf32>)
func.func @gathered(%x0: tensor<2x4xf32> {weft.kind = "input"}, %x1: tensor<2x4xf32> {weft.kind = "input"}, %x2: tensor<2x4xf32> {weft.kind = "input"}, %w: tensor<4x4xf32>, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = weft.constant dense<0.0> : tensor<2x4xf32>
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %a0 = weft.add %d0, %x0 : tensor<2x4xf32>
  %r0 = weft.torch_fallback "aten.rand_like.default"(%c) "[{\22tensor\22: 0}]" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %h0 = weft.mul %a0, %r0 : tensor<2x4xf32>
  %d1 = weft.dot_general %h0, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %a1 = weft.add %d1, %x1 : tensor<2x4xf32>
  %r1 = weft.torch_fallback "aten.rand_like.default"(%c) "[{\22tensor\22: 0}]" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %h1 = weft.mul %a1, %r1 : tensor<2x4xf32>
  %d2 = weft.dot_general %h1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %a2 = weft.add %d2, %x2 : tensor<2x4xf32>
  %r2 = weft.torch_fallback "aten.rand_like.default"(%c) "[{\22tensor\22: 0}]" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %h2 = weft.mul %a2, %r2 : tensor<2x4xf32>
  return %h2 : tensor<2x4xf32>
}

// -----

// Layers with weights of their own are no loop.
// CHECK-LABEL: @own(
// CHECK-NOT: weft.scan
func.func @own(%w0: tensor<4x4xf32> {weft.kind = "weight"}, %w1: tensor<4x4xf32> {weft.kind = "weight"}, %w2: tensor<4x4xf32> {weft.kind = "weight"}, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %d0 = weft.dot_general %h, %w0 batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %h0 = weft.tanh %d0 : tensor<2x4xf32>
  %d1 = weft.dot_general %h0, %w1 batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %h1 = weft.tanh %d1 : tensor<2x4xf32>
  %d2 = weft.dot_general %h1, %w2 batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %h2 = weft.tanh %d2 : tensor<2x4xf32>
  return %h2 : tensor<2x4xf32>
}

// -----

// Checks move behind draws, too: a call that fails puts the generator back.
// CHECK-LABEL: @checked(
// CHECK-COUNT-3: weft.torch_fallback "aten.rand_like.default"
// CHECK: %[[S:.*]]:2 = weft.scan 3
// CHECK: weft.assert %[[S]]#1, "small" : tensor<3xi1>
// CHECK: return %[[S]]#0
func.func @checked(%w: tensor<4x4xf32>, %h: tensor<2x4xf32>, %limit: tensor<f32>) -> tensor<2x4xf32> {
  %c = weft.constant dense<0.0> : tensor<2x4xf32>
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %m0 = weft.reduce <max> %d0 dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %c0 = weft.cmp <lt> %m0, %limit : tensor<f32> -> tensor<i1>
  weft.assert %c0, "small" : tensor<i1>
  %r0 = weft.torch_fallback "aten.rand_like.default"(%c) "[{\22tensor\22: 0}]" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %h0 = weft.mul %d0, %r0 : tensor<2x4xf32>
  %d1 = weft.dot_general %h0, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %m1 = weft.reduce <max> %d1 dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %c1 = weft.cmp <lt> %m1, %limit : tensor<f32> -> tensor<i1>
  weft.assert %c1, "small" : tensor<i1>
  %r1 = weft.torch_fallback "aten.rand_like.default"(%c) "[{\22tensor\22: 0}]" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %h1 = weft.mul %d1, %r1 : tensor<2x4xf32>
  %d2 = weft.dot_general %h1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %m2 = weft.reduce <max> %d2 dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %c2 = weft.cmp <lt> %m2, %limit : tensor<f32> -> tensor<i1>
  weft.assert %c2, "small" : tensor<i1>
  %r2 = weft.torch_fallback "aten.rand_like.default"(%c) "[{\22tensor\22: 0}]" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %h2 = weft.mul %d2, %r2 : tensor<2x4xf32>
  return %h2 : tensor<2x4xf32>
}

// -----

// A check in each step of what no step computes is no output of the steps.
// CHECK-LABEL: @checked_outside(
// CHECK-NOT: weft.scan
// CHECK-COUNT-3: weft.assert %{{.*}}, "small" : tensor<i1>
func.func @checked_outside(%w: tensor<4x4xf32>, %h: tensor<2x4xf32>, %ok: tensor<i1>) -> tensor<2x4xf32> {
  %d0 = weft.dot_general %h, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  weft.assert %ok, "small" : tensor<i1>
  %h0 = weft.tanh %d0 : tensor<2x4xf32>
  %d1 = weft.dot_general %h0, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  weft.assert %ok, "small" : tensor<i1>
  %h1 = weft.tanh %d1 : tensor<2x4xf32>
  %d2 = weft.dot_general %h1, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  weft.assert %ok, "small" : tensor<i1>
  %h2 = weft.tanh %d2 : tensor<2x4xf32>
  return %h2 : tensor<2x4xf32>
}

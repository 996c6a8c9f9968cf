// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-join-products -canonicalize -cse -split-input-file | FileCheck %s

// The gradients of a weight and a bias over two steps; the third term of the sum stays.
// CHECK-LABEL: @gradients(
// CHECK-SAME: %[[A:.*]]: tensor<1x64xf32>, %[[B:.*]]: tensor<1x64xf32>, %[[X:.*]]: tensor<1x32xf32>, %[[Y:.*]]: tensor<1x32xf32>, %[[W:.*]]: tensor<64x32xf32>)
// CHECK-DAG: %[[G:.*]] = weft.concat %[[A]], %[[B]] dim 0
// CHECK-DAG: %[[H:.*]] = weft.concat %[[X]], %[[Y]] dim 0
// CHECK: %[[P:.*]] = weft.dot_general %[[G]], %[[H]] batch [] x [] contract [0] x [0]
// CHECK: %[[S:.*]] = weft.add %[[W]], %[[P]]
// CHECK: %[[R:.*]] = weft.reduce <sum> %[[G]] dims [0]
// CHECK: return %[[S]], %[[R]]
func.func @gradients(%a: tensor<1x64xf32>, %b: tensor<1x64xf32>, %x: tensor<1x32xf32>, %y: tensor<1x32xf32>, %w: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64xf32>) {
  %0 = weft.dot_general %a, %x batch [] x [] contract [0] x [0] : tensor<1x64xf32>, tensor<1x32xf32> -> tensor<64x32xf32>
  %1 = weft.dot_general %b, %y batch [] x [] contract [0] x [0] : tensor<1x64xf32>, tensor<1x32xf32> -> tensor<64x32xf32>
  %2 = weft.add %0, %w : tensor<64x32xf32>
  %3 = weft.add %2, %1 : tensor<64x32xf32>
  %4 = weft.reduce <sum> %a dims [0] : tensor<1x64xf32> -> tensor<64xf32>
  %5 = weft.reduce <sum> %b dims [0] : tensor<1x64xf32> -> tensor<64xf32>
  %6 = weft.add %4, %5 : tensor<64xf32>
  return %3, %6 : tensor<64x32xf32>, tensor<64xf32>
}

// -----

// What was cut from one sequence is that sequence, from the last step to the first as well.
// CHECK-LABEL: @sequence(
// CHECK-SAME: %[[XS:[^:]*]]: tensor<2x1x32xf32>
// CHECK-DAG: %[[H:.*]] = weft.reshape %[[XS]] : tensor<2x1x32xf32> -> tensor<2x32xf32>
// CHECK-DAG: %[[G:.*]] = weft.concat %{{.*}}, %{{.*}} dim 0
// CHECK: %[[P:.*]] = weft.dot_general %[[G]], %[[H]] batch [] x [] contract [0] x [0]
// CHECK: return %[[P]]
func.func @sequence(%xs: tensor<2x1x32xf32>, %a: tensor<1x64xf32>, %b: tensor<1x64xf32>) -> tensor<64x32xf32> {
  %0 = weft.slice %xs [1, 0, 0] to [2, 1, 32] by [1, 1, 1] : tensor<2x1x32xf32> -> tensor<1x1x32xf32>
  %1 = weft.reshape %0 : tensor<1x1x32xf32> -> tensor<1x32xf32>
  %2 = weft.dot_general %b, %1 batch [] x [] contract [0] x [0] : tensor<1x64xf32>, tensor<1x32xf32> -> tensor<64x32xf32>
  %3 = weft.slice %xs [0, 0, 0] to [1, 1, 32] by [1, 1, 1] : tensor<2x1x32xf32> -> tensor<1x1x32xf32>
  %4 = weft.reshape %3 : tensor<1x1x32xf32> -> tensor<1x32xf32>
  %5 = weft.dot_general %a, %4 batch [] x [] contract [0] x [0] : tensor<1x64xf32>, tensor<1x32xf32> -> tensor<64x32xf32>
  %6 = weft.add %2, %5 : tensor<64x32xf32>
  return %6 : tensor<64x32xf32>
}

// -----

// The product of each step's input has one weight; that of the state waits for the step before.
// CHECK-LABEL: @rows(
// CHECK-SAME: %[[XS:[^:]*]]: tensor<2x2x32xf32>, %[[W:[^:]*]]: tensor<64x32xf32>
// CHECK: %[[X:.*]] = weft.reshape %[[XS]] : tensor<2x2x32xf32> -> tensor<4x32xf32>
// CHECK: %[[P:.*]] = weft.dot_general %[[X]], %[[W]] batch [] x [] contract [1] x [1] : tensor<4x32xf32>, tensor<64x32xf32> -> tensor<4x64xf32>
// CHECK: %[[A:.*]] = weft.slice %[[P]] [0, 0] to [2, 64]
// CHECK: %[[B:.*]] = weft.slice %[[P]] [2, 0] to [4, 64]
// CHECK: weft.mul %[[A]]
// CHECK: weft.mul %[[B]]
func.func @rows(%xs: tensor<2x2x32xf32>, %w: tensor<64x32xf32>, %u: tensor<64x64xf32>, %h: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %0 = weft.slice %xs [0, 0, 0] to [1, 2, 32] by [1, 1, 1] : tensor<2x2x32xf32> -> tensor<1x2x32xf32>
  %1 = weft.reshape %0 : tensor<1x2x32xf32> -> tensor<2x32xf32>
  %2 = weft.dot_general %1, %w batch [] x [] contract [1] x [1] : tensor<2x32xf32>, tensor<64x32xf32> -> tensor<2x64xf32>
  %3 = weft.dot_general %h, %u batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %4 = weft.mul %2, %3 : tensor<2x64xf32>
  %5 = weft.slice %xs [1, 0, 0] to [2, 2, 32] by [1, 1, 1] : tensor<2x2x32xf32> -> tensor<1x2x32xf32>
  %6 = weft.reshape %5 : tensor<1x2x32xf32> -> tensor<2x32xf32>
  %7 = weft.dot_general %6, %w batch [] x [] contract [1] x [1] : tensor<2x32xf32>, tensor<64x32xf32> -> tensor<2x64xf32>
  %8 = weft.dot_general %4, %u batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %9 = weft.mul %7, %8 : tensor<2x64xf32>
  return %9 : tensor<2x64xf32>
}

// -----

// Long ones, a partial sum that is read, and sums that round to their type.
// CHECK-LABEL: @declined(
// CHECK-COUNT-6: weft.dot_general
// CHECK-NOT: weft.concat
func.func @declined(%a: tensor<4x64xf32>, %b: tensor<4x32xf32>, %c: tensor<1x64xf32>, %d: tensor<1x32xf32>, %e: tensor<1x64xbf16>, %f: tensor<1x32xbf16>) -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xbf16>) {
  %0 = weft.dot_general %a, %b batch [] x [] contract [0] x [0] : tensor<4x64xf32>, tensor<4x32xf32> -> tensor<64x32xf32>
  %1 = weft.neg %a : tensor<4x64xf32>
  %2 = weft.dot_general %1, %b batch [] x [] contract [0] x [0] : tensor<4x64xf32>, tensor<4x32xf32> -> tensor<64x32xf32>
  %3 = weft.add %0, %2 : tensor<64x32xf32>
  %4 = weft.dot_general %c, %d batch [] x [] contract [0] x [0] : tensor<1x64xf32>, tensor<1x32xf32> -> tensor<64x32xf32>
  %5 = weft.neg %c : tensor<1x64xf32>
  %6 = weft.dot_general %5, %d batch [] x [] contract [0] x [0] : tensor<1x64xf32>, tensor<1x32xf32> -> tensor<64x32xf32>
  %7 = weft.add %4, %6 : tensor<64x32xf32>
  %8 = weft.dot_general %e, %f batch [] x [] contract [0] x [0] : tensor<1x64xbf16>, tensor<1x32xbf16> -> tensor<64x32xbf16>
  %9 = weft.neg %e : tensor<1x64xbf16>
  %10 = weft.dot_general %9, %f batch [] x [] contract [0] x [0] : tensor<1x64xbf16>, tensor<1x32xbf16> -> tensor<64x32xbf16>
  %11 = weft.add %8, %10 : tensor<64x32xbf16>
  return %3, %4, %7, %11 : tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xbf16>
}

// -----

// Joining those of one weight moves the second of the other weight ahead of the first.
// CHECK-LABEL: @crossed(
// CHECK: weft.dot_general %{{.*}}, %{{.*}} : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
// CHECK: weft.dot_general %{{.*}}, %{{.*}} : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
// CHECK-NOT: weft.dot_general
func.func @crossed(%x: tensor<1x64xf32>, %y: tensor<1x64xf32>, %w: tensor<64x64xf32>, %u: tensor<64x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>) {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<1x64xf32>, tensor<64x64xf32> -> tensor<1x64xf32>
  %1 = weft.dot_general %y, %u batch [] x [] contract [1] x [1] : tensor<1x64xf32>, tensor<64x64xf32> -> tensor<1x64xf32>
  %2 = weft.dot_general %x, %u batch [] x [] contract [1] x [1] : tensor<1x64xf32>, tensor<64x64xf32> -> tensor<1x64xf32>
  %3 = weft.tanh %2 : tensor<1x64xf32>
  %4 = weft.dot_general %3, %w batch [] x [] contract [1] x [1] : tensor<1x64xf32>, tensor<64x64xf32> -> tensor<1x64xf32>
  return %0, %1, %4 : tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>
}

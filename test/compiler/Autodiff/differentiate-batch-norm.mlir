// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-differentiate="wrt=0 results=0" | FileCheck %s

// Where mean and variance are those of x, its cotangent has their part: nothing of the backward is
// computed in the type of the statistics.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32>, %[[G:.*]]: tensor<6x4xf32>
func.func @main(%x: tensor<6x4xf32>) -> tensor<6x4xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: weft.batch_norm
  // CHECK-NOT: xf64
  // CHECK: %[[SUM:.*]] = weft.reduce <sum> %{{.*}} dims [0] : tensor<6x4xf32>
  // CHECK-NOT: xf64
  // CHECK: %[[OTHER:.*]] = weft.reduce <sum> %[[G]] dims [0] : tensor<6x4xf32>
  // CHECK-NOT: weft.reduce
  // CHECK-NOT: xf64
  // CHECK: return
  %n = weft.constant dense<6.0> : tensor<4xf64>
  %0 = weft.convert %x : tensor<6x4xf32> -> tensor<6x4xf64>
  %1 = weft.reduce <sum> %0 dims [0] : tensor<6x4xf64> -> tensor<4xf64>
  %2 = weft.div %1, %n : tensor<4xf64>
  %3 = weft.broadcast_in_dim %2 dims [1] : tensor<4xf64> -> tensor<6x4xf64>
  %4 = weft.sub %0, %3 : tensor<6x4xf64>
  %5 = weft.mul %4, %4 : tensor<6x4xf64>
  %6 = weft.reduce <sum> %5 dims [0] : tensor<6x4xf64> -> tensor<4xf64>
  %7 = weft.div %6, %n : tensor<4xf64>
  %8 = weft.convert %2 : tensor<4xf64> -> tensor<4xf32>
  %9 = weft.convert %7 : tensor<4xf64> -> tensor<4xf32>
  %10 = weft.batch_norm %x mean %8 variance %9 : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<6x4xf32>
  return %10 : tensor<6x4xf32>
}

// -----

// An unbiased variance is another function of x: the rules of its ops give its part.
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<6x4xf32>) -> tensor<6x4xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: weft.batch_norm
  // CHECK: weft.mul %{{.*}} : tensor<6x4xf64>
  // CHECK: return
  %n = weft.constant dense<6.0> : tensor<4xf64>
  %m = weft.constant dense<5.0> : tensor<4xf64>
  %0 = weft.convert %x : tensor<6x4xf32> -> tensor<6x4xf64>
  %1 = weft.reduce <sum> %0 dims [0] : tensor<6x4xf64> -> tensor<4xf64>
  %2 = weft.div %1, %n : tensor<4xf64>
  %3 = weft.broadcast_in_dim %2 dims [1] : tensor<4xf64> -> tensor<6x4xf64>
  %4 = weft.sub %0, %3 : tensor<6x4xf64>
  %5 = weft.mul %4, %4 : tensor<6x4xf64>
  %6 = weft.reduce <sum> %5 dims [0] : tensor<6x4xf64> -> tensor<4xf64>
  %7 = weft.div %6, %m : tensor<4xf64>
  %8 = weft.convert %2 : tensor<4xf64> -> tensor<4xf32>
  %9 = weft.convert %7 : tensor<4xf64> -> tensor<4xf32>
  %10 = weft.batch_norm %x mean %8 variance %9 : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<6x4xf32>
  return %10 : tensor<6x4xf32>
}

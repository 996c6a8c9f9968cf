// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-set=reduce_0.unroll=2 --weft-set=reduce_0.groups=2 --weft-set=reduce_window_0.lanes=4 --weft-set=reduce_window_0.groups=1 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-level=1 | FileCheck %s
// RUN: weft-check-kernels %s | FileCheck %s

// Reductions along rows, columns and windows, running ones, and norms, all with tails.
// CHECK-DAG: loop_nest
// CHECK-DAG: rows: result 0: 13 elements of f32
// CHECK-DAG: columns: result 0: 45 elements of f64
// CHECK-DAG: largest: result 0: 13 elements of i64
// CHECK-DAG: pooling: result 0: 378 elements of f32
// CHECK-DAG: running: result 0: 259 elements of f32
// CHECK-DAG: running_columns: result 0: 259 elements of i32
// CHECK-DAG: softmax: result 0: 481 elements of f32
// CHECK-DAG: norm: result 0: 481 elements of bf16
// CHECK: on 2 threads
func.func @rows(%x: tensor<13x333xf32>) -> tensor<13xf32> {
  %0 = weft.reduce <sum> %x dims [1] : tensor<13x333xf32> -> tensor<13xf32>
  return %0 : tensor<13xf32>
}
func.func @columns(%x: tensor<19x45xf64>) -> tensor<45xf64> {
  %0 = weft.reduce <prod> %x dims [0] : tensor<19x45xf64> -> tensor<45xf64>
  return %0 : tensor<45xf64>
}
func.func @largest(%x: tensor<13x37xi16>) -> tensor<13xi64> {
  %0 = weft.arg_reduce <max> %x dim 1 : tensor<13x37xi16> -> tensor<13xi64>
  return %0 : tensor<13xi64>
}
func.func @pooling(%x: tensor<2x3x19x15xf32>) -> tensor<2x3x9x7xf32> {
  %0 = weft.reduce_window <max> %x window [1, 1, 3, 3] strides [1, 1, 2, 2] dilations [1, 1, 1, 1]
    : tensor<2x3x19x15xf32> -> tensor<2x3x9x7xf32>
  return %0 : tensor<2x3x9x7xf32>
}
func.func @running(%x: tensor<7x37xf32>) -> tensor<7x37xf32> {
  %0 = weft.cumulative <sum> %x dim 1 : tensor<7x37xf32>
  return %0 : tensor<7x37xf32>
}
func.func @running_columns(%x: tensor<7x37xi32>) -> tensor<7x37xi32> {
  %0 = weft.cumulative <max> %x dim 0 : tensor<7x37xi32>
  return %0 : tensor<7x37xi32>
}
func.func @softmax(%x: tensor<13x37xf32>) -> tensor<13x37xf32> {
  %0 = weft.softmax %x dim 1 : tensor<13x37xf32>
  return %0 : tensor<13x37xf32>
}
func.func @norm(%x: tensor<13x37xbf16>, %w: tensor<37xbf16>) -> tensor<13x37xbf16> {
  %0 = weft.layer_norm %x weight %w : tensor<37xbf16> bias %w : tensor<37xbf16> over 1 eps 1.0e-05 : tensor<13x37xbf16>
  return %0 : tensor<13x37xbf16>
}

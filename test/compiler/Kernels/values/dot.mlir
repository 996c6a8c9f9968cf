// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-set=dot_general_0.chains=1 --weft-set=dot_general_0.columns=3 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-precision=bf16
// RUN: weft-check-kernels %s

// Products of few rows.
// CHECK-DAG: row_dot
// CHECK-DAG: vector: result 0: 37 elements of f32
// CHECK-DAG: few: result 0: 111 elements of f32
// CHECK-DAG: doubles: result 0: 37 elements of f64
// CHECK-DAG: halves: result 0: 37 elements of bf16
// CHECK: on 2 threads
func.func @vector(%x: tensor<1x203xf32>, %w: tensor<37x203xf32>) -> tensor<1x37xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
    : tensor<1x203xf32>, tensor<37x203xf32> -> tensor<1x37xf32>
  return %0 : tensor<1x37xf32>
}
func.func @few(%x: tensor<3x72xf32>, %w: tensor<37x72xf32>) -> tensor<3x37xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
    : tensor<3x72xf32>, tensor<37x72xf32> -> tensor<3x37xf32>
  return %0 : tensor<3x37xf32>
}
func.func @doubles(%x: tensor<1x203xf64>, %w: tensor<37x203xf64>) -> tensor<1x37xf64> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
    : tensor<1x203xf64>, tensor<37x203xf64> -> tensor<1x37xf64>
  return %0 : tensor<1x37xf64>
}
func.func @halves(%x: tensor<1x203xbf16>, %w: tensor<37x203xbf16>) -> tensor<1x37xbf16> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
    : tensor<1x203xbf16>, tensor<37x203xbf16> -> tensor<1x37xbf16>
  return %0 : tensor<1x37xbf16>
}

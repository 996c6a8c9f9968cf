// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 | FileCheck %s

// The reference is the convolution; the weight is transformed by `bind`.
// CHECK: winograd
// CHECK: main: result 0: 17408 elements of f32
// CHECK: on 2 threads
func.func @main(%x: tensor<1x32x16x17xf32>, %w: tensor<64x32x3x3xf32> {weft.kind = "parameter"})
    -> tensor<1x64x16x17xf32> {
  %0 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1
    : tensor<1x32x16x17xf32>, tensor<64x32x3x3xf32> -> tensor<1x64x16x17xf32>
  return %0 : tensor<1x64x16x17xf32>
}

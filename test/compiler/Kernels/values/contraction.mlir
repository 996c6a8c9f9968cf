// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-schedule=rows=3,groups=2,panels=1 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-precision=bf16 | FileCheck %s --check-prefix=RUNS
// RUN: weft-check-kernels %s | FileCheck %s --check-prefix=RUNS

// Register tiles, panels and chunks with what is left over of each.
// CHECK-DAG: contraction
// CHECK-DAG: skinny_matmul
// CHECK-DAG: matmul: result 0: 481 elements of f32
// CHECK-DAG: batched: result 0: 390 elements of f32
// CHECK-DAG: epilogue: result 0: 629 elements of f32
// CHECK-DAG: image: result 0: 630 elements of f32
// CHECK: on 2 threads
// RUNS: on 2 threads
func.func @matmul(%x: tensor<13x40xf32>, %w: tensor<37x40xf32>) -> tensor<13x37xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
    : tensor<13x40xf32>, tensor<37x40xf32> -> tensor<13x37xf32>
  return %0 : tensor<13x37xf32>
}
func.func @batched(%x: tensor<3x10x16xf32>, %w: tensor<3x16x13xf32>) -> tensor<3x10x13xf32> {
  %0 = weft.dot_general %x, %w batch [0] x [0] contract [2] x [1]
    : tensor<3x10x16xf32>, tensor<3x16x13xf32> -> tensor<3x10x13xf32>
  return %0 : tensor<3x10x13xf32>
}
func.func @epilogue(%x: tensor<17x24xf32>, %w: tensor<24x37xf32>, %y: tensor<17x37xf32>) -> tensor<17x37xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [0]
    : tensor<17x24xf32>, tensor<24x37xf32> -> tensor<17x37xf32>
  %1 = weft.add %0, %y : tensor<17x37xf32>
  %2 = weft.tanh %1 : tensor<17x37xf32>
  return %2 : tensor<17x37xf32>
}
func.func @image(%x: tensor<1x8x13x9xf32>, %w: tensor<18x8x3x3xf32>) -> tensor<1x18x7x5xf32> {
  %0 = weft.conv %x, %w strides [2, 2] pad [1, 1] x [1, 1] dilations [1, 1] groups 1
    : tensor<1x8x13x9xf32>, tensor<18x8x3x3xf32> -> tensor<1x18x7x5xf32>
  return %0 : tensor<1x18x7x5xf32>
}

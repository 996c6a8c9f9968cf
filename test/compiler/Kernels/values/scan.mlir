// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-level=0 | FileCheck %s

// A loop over steps, whose state goes by its own error from step to step.
// CHECK: main: result 0: 26 elements of f32
// CHECK: main: result 1: 234 elements of f32
// CHECK: on 2 threads
func.func @main(%h0: tensor<2x13xf32>, %xs: tensor<9x2x13xf32>, %w: tensor<13x13xf32>)
    -> (tensor<2x13xf32>, tensor<9x2x13xf32>) {
  %last, %all = weft.scan 9 carry(%h = %h0 : tensor<2x13xf32>)
      over(%x = %xs : tensor<9x2x13xf32>) with(%m = %w : tensor<13x13xf32>)
      -> (tensor<2x13xf32>, tensor<9x2x13xf32>) {
    %0 = weft.dot_general %h, %m batch [] x [] contract [1] x [0]
      : tensor<2x13xf32>, tensor<13x13xf32> -> tensor<2x13xf32>
    %1 = weft.add %0, %x : tensor<2x13xf32>
    %2 = weft.tanh %1 : tensor<2x13xf32>
    weft.yield %2, %2 : tensor<2x13xf32>, tensor<2x13xf32>
  }
  return %last, %all : tensor<2x13xf32>, tensor<9x2x13xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @sort_c1(%x: tensor<9x4xf32>) {
  // expected-error @+1 {{expected dim to be at least 0 and below rank 2, found 2}}
  %0, %1 = weft.sort %x dim 2 descending false count 4 : tensor<9x4xf32> -> tensor<9x4xf32>, tensor<9x4xi64>
  return
}

// -----

func.func @sort_c2(%x: tensor<9x4xf32>) {
  // expected-error @+1 {{expected count to be at least 0 and at most the size of dim 1 (4), found 5}}
  %0, %1 = weft.sort %x dim 1 descending false count 5 : tensor<9x4xf32> -> tensor<9x5xf32>, tensor<9x5xi64>
  return
}

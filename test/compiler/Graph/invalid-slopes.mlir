// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @with_slopes_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 2 slopes, found 1}}
  %0 = weft.with_slopes %x along %x, %x by %x dims [] : tensor<4xf32> (tensor<4xf32>, tensor<4xf32>) by (tensor<4xf32>)
  return
}

// -----

func.func @with_slopes_c3(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected dims to be distinct dims below rank 1, found [1]}}
  %0 = weft.with_slopes %x along %x by %x dims [1] : tensor<4xf32> (tensor<4xf32>) by (tensor<4xf32>)
  return
}

// -----

func.func @with_slopes_c4(%x: tensor<4xf32>, %s: tensor<3xf32>) {
  // expected-error @+1 {{expected a slope of type 'tensor<4xf32>', found 'tensor<3xf32>'}}
  %0 = weft.with_slopes %x along %x by %s dims [] : tensor<4xf32> (tensor<4xf32>) by (tensor<3xf32>)
  return
}

// -----

func.func @with_slopes_c4_value(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a value of type 'tensor<f32>', found 'tensor<4xf32>'}}
  %0 = weft.with_slopes %x along %x by %x dims [0] : tensor<4xf32> (tensor<4xf32>) by (tensor<4xf32>)
  return
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @reduce_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected dims to be distinct dims below rank 1, found [1]}}
  %0 = weft.reduce <sum> %x dims [1] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected elements of i1 to reduce by any, found 'f32'}}
  %0 = weft.reduce <any> %x dims [0] : tensor<4xf32> -> tensor<f32>
  return
}

// -----

func.func @arg_reduce_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected dim to be at least 0 and below rank 1, found 1}}
  %0 = weft.arg_reduce <max> %x dim 1 : tensor<4xf32> -> tensor<4xi64>
  return
}

// -----

func.func @arg_reduce_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected kind max or min, found sum}}
  %0 = weft.arg_reduce <sum> %x dim 0 : tensor<4xf32> -> tensor<i64>
  return
}

// -----

func.func @arg_reduce_c3(%x: tensor<0xf32>) {
  // expected-error @+1 {{expected dim 0 to hold an element, found size 0}}
  %0 = weft.arg_reduce <max> %x dim 0 : tensor<0xf32> -> tensor<i64>
  return
}

// -----

func.func @cumulative_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected dim to be at least 0 and below rank 1, found -1}}
  %0 = weft.cumulative <sum> %x dim -1 : tensor<4xf32>
  return
}

// -----

func.func @cumulative_c2(%x: tensor<4xi1>) {
  // expected-error @+1 {{expected elements other than i1 to reduce by sum, found 'i1'}}
  %0 = weft.cumulative <sum> %x dim 0 : tensor<4xi1>
  return
}

// -----

func.func @reduce_window_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected elements of i1 to reduce by all, found 'f32'}}
  %0 = weft.reduce_window <all> %x window [2] strides [1] dilations [1] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @reduce_window_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected strides to have 1 entries of at least 1, found []}}
  %0 = weft.reduce_window <max> %x window [2] strides [] dilations [1] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @reduce_window_c3(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a window of extent 5 to fit dim 0, found size 4}}
  %0 = weft.reduce_window <max> %x window [3] strides [1] dilations [2] : tensor<4xf32> -> tensor<0xf32>
  return
}

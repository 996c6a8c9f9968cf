// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @iota_c1() {
  // expected-error @+1 {{expected dim to be at least 0 and below rank 1, found 1}}
  %0 = weft.iota 1 : tensor<4xi64>
  return
}

// -----

func.func @iota_c2() {
  // expected-error @+1 {{expected elements that count, found 'i1'}}
  %0 = weft.iota 0 : tensor<4xi1>
  return
}

// -----

func.func @broadcast_in_dim_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected one entry of dims per operand dim (1), found 0}}
  %0 = weft.broadcast_in_dim %x dims [] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @broadcast_in_dim_c2(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{expected dims to be distinct dims below rank 2, found [1, 1]}}
  %0 = weft.broadcast_in_dim %x dims [1, 1] : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @broadcast_in_dim_c3(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected operand dim 0 (2) to be 1 or equal result dim 1 (4)}}
  %0 = weft.broadcast_in_dim %x dims [1] : tensor<2xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @broadcast_in_dim_c4(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected result to have the element type of operand ('f32'), found 'f64'}}
  %0 = weft.broadcast_in_dim %x dims [0] : tensor<4xf32> -> tensor<4xf64>
  return
}

// -----

func.func @reshape_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a result of 4 elements, found 5}}
  %0 = weft.reshape %x : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @reshape_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected result to have the element type of operand ('f32'), found 'f64'}}
  %0 = weft.reshape %x : tensor<4xf32> -> tensor<2x2xf64>
  return
}

// -----

func.func @transpose_c1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expected perm to have 2 entries, found 1}}
  %0 = weft.transpose %x perm [0] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @transpose_c2(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expected perm to be distinct dims below rank 2, found [0, 2]}}
  %0 = weft.transpose %x perm [0, 2] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @transpose_result(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{inferred type(s)}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = weft.transpose %x perm [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @advance_c1(%x: tensor<4xf32, #weft.layout<[0], tile 0 by 8>>) {
  // expected-error @+1 {{expected an offset from 0 to 8, found 9}}
  %0 = weft.advance %x by 9 : tensor<4xf32, #weft.layout<[0], tile 0 by 8>>
  return
}

// -----

func.func @slice_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected stride to have 1 entries of at least 1, found [0]}}
  %0 = weft.slice %x [0] to [4] by [0] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected start (0) to be at most limit (5), and limit at most the size (4) of dim 0}}
  %0 = weft.slice %x [0] to [5] by [1] : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @pad_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected value of shape [], found [4]}}
  %0 = weft.pad %x, %x low [1] high [1] : tensor<4xf32>, tensor<4xf32> -> tensor<6xf32>
  return
}

// -----

func.func @pad_c2(%x: tensor<4xf32>, %v: tensor<f64>) {
  // expected-error @+1 {{expected value to have the element type of operand ('f32'), found 'f64'}}
  %0 = weft.pad %x, %v low [1] high [1] : tensor<4xf32>, tensor<f64> -> tensor<6xf32>
  return
}

// -----

func.func @pad_c3(%x: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{expected low to have 1 entries of at least 0, found [-1]}}
  %0 = weft.pad %x, %v low [-1] high [1] : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  return
}

// -----

func.func @concat_c1() {
  // expected-error @+1 {{expected at least one operand, found none}}
  %0 = "weft.concat"() {dim = 0 : i64} : () -> tensor<4xf32>
  return
}

// -----

func.func @concat_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected dim to be at least 0 and below rank 1, found 1}}
  %0 = weft.concat %x dim 1 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @concat_c3(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{expected operand 1 to have the element type of operand 0 ('f32'), found 'f64'}}
  %0 = weft.concat %x, %y dim 0 : tensor<4xf32>, tensor<4xf64> -> tensor<8xf32>
  return
}

// -----

func.func @concat_c4(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) {
  // expected-error @+1 {{expected operand 1 of shape [4, 2], found [4, 3]}}
  %0 = weft.concat %x, %y dim 0 : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @reverse_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected dims to be distinct dims below rank 1, found [0, 0]}}
  %0 = weft.reverse %x dims [0, 0] : tensor<4xf32>
  return
}

// -----

func.func @relayout_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected operand and result to differ in nothing but layout, found 'tensor<4xf32>' and 'tensor<5xf32>'}}
  %0 = weft.relayout %x : tensor<4xf32> -> tensor<5xf32>
  return
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @dot_general_c1(%a: tensor<4x8xf32>, %b: tensor<16x8xf64>) {
  // expected-error @+1 {{expected rhs to have the element type of lhs ('f32'), found 'f64'}}
  %0 = weft.dot_general %a, %b batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<16x8xf64> -> tensor<4x16xf32>
  return
}

// -----

func.func @dot_general_c2(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @+1 {{expected batch and contracted dims of lhs to be distinct dims below rank 2, found [1, 1]}}
  %0 = weft.dot_general %a, %b batch [1] x [0] contract [1] x [1] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @dot_general_c3(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>) {
  // expected-error @+1 {{expected batch and contracted dims of rhs to be distinct dims below rank 2, found [2]}}
  %0 = weft.dot_general %a, %b batch [] x [] contract [1] x [2] : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
  return
}

// -----

func.func @dot_general_c4(%a: tensor<2x4x8xf32>, %b: tensor<3x16x8xf32>) {
  // expected-error @+1 {{expected lhs dim 0 (2) to equal rhs dim 0 (3)}}
  %0 = weft.dot_general %a, %b batch [0] x [0] contract [2] x [2] : tensor<2x4x8xf32>, tensor<3x16x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @dot_general_c5(%a: tensor<4x8xf32>, %b: tensor<16x7xf32>) {
  // expected-error @+1 {{expected lhs dim 1 (8) to equal rhs dim 1 (7)}}
  %0 = weft.dot_general %a, %b batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<16x7xf32> -> tensor<4x16xf32>
  return
}

// -----

func.func @dot_general_c6(%a: tensor<4x8xi1>, %b: tensor<16x8xi1>) {
  // expected-error @+1 {{expected lhs to have elements that are numbers, found 'i1'}}
  %0 = weft.dot_general %a, %b batch [] x [] contract [1] x [1] : tensor<4x8xi1>, tensor<16x8xi1> -> tensor<4x16xi1>
  return
}

// -----

func.func @conv_c7(%x: tensor<1x3x8x8xi1>, %w: tensor<4x3x3x3xi1>) {
  // expected-error @+1 {{expected input to have elements that are numbers, found 'i1'}}
  %0 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1 : tensor<1x3x8x8xi1>, tensor<4x3x3x3xi1> -> tensor<1x4x8x8xi1>
  return
}

// -----

func.func @dot_general_result(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>) {
  // expected-error @+2 {{inferred type(s)}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = weft.dot_general %a, %b batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<16x4xf32>
  return
}

// -----

func.func @multi_dot_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected at least one rhs, found none}}
  "weft.multi_dot"(%a) {lhsContract = array<i64: 1>, rhsContract = array<i64: 1>} : (tensor<4x8xf32>) -> ()
  return
}

// -----

func.func @multi_dot_c2(%a: tensor<4x8xf32>, %b: tensor<16x7xf32>) {
  // expected-error @+1 {{expected lhs dim 1 (8) to equal rhs dim 1 (7)}}
  %0 = weft.multi_dot %a with %b contract [1] x [1] : tensor<4x8xf32>, tensor<16x7xf32> -> tensor<4x16xf32>
  return
}

// -----

func.func @conv_c1(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf64>) {
  // expected-error @+1 {{expected weight to have the element type of input ('f32'), found 'f64'}}
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf64> -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c2(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{expected input and weight of one rank above 2, found 4 and 3}}
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x3x8x8xf32>, tensor<4x3x3xf32> -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{expected strides to have 2 entries of at least 1, found [1]}}
  %0 = weft.conv %x, %w strides [1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c4(%x: tensor<1x6x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error @+1 {{expected groups to divide the output channels (4), found 3}}
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 3 : tensor<1x6x8x8xf32>, tensor<4x2x3x3xf32> -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c5(%x: tensor<1x3x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error @+1 {{expected input dim 1 (3) to equal weight dim 1 times groups (2)}}
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x3x8x8xf32>, tensor<4x2x3x3xf32> -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c6(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{expected the weight to fit the padded input along dim 2, found it too large by 3}}
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [5, 1] groups 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  return
}

// -----

// Half precision may be summed into f32, and into nothing else.
func.func @dot_general_result(%a: tensor<4x8xbf16>) {
  // expected-error @+2 {{'weft.dot_general' op failed to infer returned types}}
  // expected-error @+1 {{'weft.dot_general' op inferred type(s) 'tensor<4x4xbf16>' are incompatible with return type(s) of operation 'tensor<4x4xf64>'}}
  %0 = weft.dot_general %a, %a batch [] x [] contract [1] x [1] : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x4xf64>
  return
}

// -----

func.func @dot_general_kept(%a: tensor<4x8xf32>) {
  // expected-error @+2 {{'weft.dot_general' op failed to infer returned types}}
  // expected-error @+1 {{'weft.dot_general' op inferred type(s) 'tensor<4x4xf32>' are incompatible with return type(s) of operation 'tensor<4x4xbf16>'}}
  %0 = weft.dot_general %a, %a batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xbf16>
  return
}

// -----

func.func @winograd_conv_c1(%x: tensor<1x4x8x8xf64>, %u: tensor<16x4x6xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'weft.winograd_conv' op expected input and weight of f32 and rank 4, found 'tensor<1x4x8x8xf64>' and 'tensor<6x4x3x3xf32>'}}
  %0 = weft.winograd_conv %x, %u, %w : tensor<1x4x8x8xf64>, tensor<16x4x6xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @winograd_conv_c2(%x: tensor<1x4x8x8xf32>, %u: tensor<16x4x6xf32>, %w: tensor<6x5x3x3xf32>) {
  // expected-error @+1 {{'weft.winograd_conv' op expected a weight of f32 and (o, 4, 3, 3), found 'tensor<6x5x3x3xf32>'}}
  %0 = weft.winograd_conv %x, %u, %w : tensor<1x4x8x8xf32>, tensor<16x4x6xf32>, tensor<6x5x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @winograd_conv_c3(%x: tensor<1x4x8x8xf32>, %u: tensor<16x6x4xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'weft.winograd_conv' op expected a transformed weight of f32 and (16, 4, 6), found 'tensor<16x6x4xf32>'}}
  %0 = weft.winograd_conv %x, %u, %w : tensor<1x4x8x8xf32>, tensor<16x6x4xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @winograd_conv_c4(%x: tensor<1x4x8x3xf32>, %u: tensor<16x4x6xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'weft.winograd_conv' op expected input dim 3 to be at least 4, found 3}}
  %0 = weft.winograd_conv %x, %u, %w : tensor<1x4x8x3xf32>, tensor<16x4x6xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x6x1xf32>
  return
}

// -----

func.func @grouped_dot_c1(%x: tensor<24x8xf32>, %w: tensor<4x64x8xf32>, %e: tensor<4xi8>) {
  // expected-error @+1 {{expected ends of i32 or i64, found 'tensor<4xi8>'}}
  %0 = weft.grouped_dot %x, %w, %e : tensor<24x8xf32>, tensor<4x64x8xf32>, tensor<4xi8> -> tensor<24x64xf32>
  return
}

// -----

func.func @grouped_dot_c2(%x: tensor<24x8xf32>, %w: tensor<4x64x9xf32>, %e: tensor<4xi32>) {
  // expected-error @+1 {{expected rows and weights to end with one size}}
  %0 = weft.grouped_dot %x, %w, %e : tensor<24x8xf32>, tensor<4x64x9xf32>, tensor<4xi32> -> tensor<24x64xf32>
  return
}

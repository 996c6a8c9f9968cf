// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @gather_c1(%t: tensor<9x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected one tensor of indices per indexed dim (2, at least 1), found 1}}
  %0 = weft.gather %t[%i] dims [0, 1] : tensor<9x4xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @gather_c2(%t: tensor<9x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected indexedDims to be distinct dims below rank 2, found [2]}}
  %0 = weft.gather %t[%i] dims [2] : tensor<9x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_c3(%t: tensor<9x4xf32>, %i: tensor<2xi64>, %j: tensor<3xi64>) {
  // expected-error @+1 {{expected indices 1 of shape [2], found [3]}}
  %0 = weft.gather %t[%i, %j] dims [0, 1] : tensor<9x4xf32>, tensor<2xi64>, tensor<3xi64> -> tensor<2xf32>
  return
}

// -----

func.func @gather_c4(%t: tensor<0x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected indexed dim 0 to hold an element, found size 0}}
  %0 = weft.gather %t[%i] dims [0] : tensor<0x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  return
}

// -----

func.func @scatter_c1(%t: tensor<9x4xf32>, %u: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected one tensor of indices per indexed dim (2, at least 1), found 1}}
  %0 = weft.scatter <set> %u into %t[%i] dims [0, 1] : tensor<2xf32> into tensor<9x4xf32>, tensor<2xi64> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c2(%t: tensor<9x4xf32>, %u: tensor<2x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected indexedDims to be distinct dims below rank 2, found [2]}}
  %0 = weft.scatter <set> %u into %t[%i] dims [2] : tensor<2x4xf32> into tensor<9x4xf32>, tensor<2xi64> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c3(%t: tensor<9x4xf32>, %u: tensor<2xf32>, %i: tensor<2xi64>, %j: tensor<3xi64>) {
  // expected-error @+1 {{expected indices 1 of shape [2], found [3]}}
  %0 = weft.scatter <set> %u into %t[%i, %j] dims [0, 1] : tensor<2xf32> into tensor<9x4xf32>, tensor<2xi64>, tensor<3xi64> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c4(%t: tensor<9x4xf32>, %u: tensor<2x9xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected updates of shape [2, 4], found [2, 9]}}
  %0 = weft.scatter <set> %u into %t[%i] dims [0] : tensor<2x9xf32> into tensor<9x4xf32>, tensor<2xi64> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c5(%t: tensor<9x4xf32>, %u: tensor<2x4xf64>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected updates to have the element type of operand ('f32'), found 'f64'}}
  %0 = weft.scatter <set> %u into %t[%i] dims [0] : tensor<2x4xf64> into tensor<9x4xf32>, tensor<2xi64> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c6(%t: tensor<9xi1>, %u: tensor<2xi1>, %i: tensor<2xi64>) {
  // expected-error @+1 {{expected elements other than i1 to combine by sum, found 'i1'}}
  %0 = weft.scatter <sum> %u into %t[%i] dims [0] : tensor<2xi1> into tensor<9xi1>, tensor<2xi64> -> tensor<9xi1>
  return
}

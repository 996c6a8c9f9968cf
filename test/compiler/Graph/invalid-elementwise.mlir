// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @unary_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "weft.exp"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @binary_c1(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "weft.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @fma_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "weft.fma"(%x, %x, %y) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

func.func @philox_c1(%x: tensor<4xi32>, %y: tensor<5xi32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "weft.philox"(%x, %x, %y) : (tensor<4xi32>, tensor<4xi32>, tensor<5xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @cmp_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{requires all operands to have the same type}}
  %0 = "weft.cmp"(%x, %y) {predicate = #weft.predicate<lt>} : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

// -----

func.func @cmp_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = weft.cmp <lt> %x, %x : tensor<4xf32> -> tensor<5xi1>
  return
}

// -----

func.func @select_c1(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{failed to verify that all of {onTrue, onFalse, result} have same type}}
  %0 = "weft.select"(%c, %x, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

func.func @select_c2(%c: tensor<5xi1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = weft.select %c, %x, %x : tensor<5xi1>, tensor<4xf32>
  return
}

// -----

func.func @select_c3(%c: tensor<4x2xi1, #weft.layout<[1, 0]>>, %x: tensor<4x2xf32>) {
  // expected-error @+1 {{expected condition of the result's layout, found #weft.layout<[1, 0]>}}
  %0 = weft.select %c, %x, %x : tensor<4x2xi1, #weft.layout<[1, 0]>>, tensor<4x2xf32>
  return
}

// -----

func.func @convert_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = weft.convert %x : tensor<4xf32> -> tensor<5xf64>
  return
}

// -----

func.func @convert_c2(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{expected operand of the result's layout, found row-major}}
  %0 = weft.convert %x : tensor<4x2xf32> -> tensor<4x2xf64, #weft.layout<[1, 0]>>
  return
}

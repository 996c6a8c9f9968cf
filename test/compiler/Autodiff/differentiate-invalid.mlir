// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics -weft-differentiate="wrt=0 results=0"

func.func @main(%x: tensor<4x4xf32>) -> tensor<2x2xf32> attributes {weft.entry = #weft.entry<main>} {
  // expected-error @below {{weft.reduce_window has no derivative}}
  %0 = weft.reduce_window <prod> %x window [2, 2] strides [2, 2] dilations [1, 1] : tensor<4x4xf32> -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// expected-error @below {{expected wrt of floats, found 'tensor<4xi64>'}}
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> attributes {weft.entry = #weft.entry<main>} {
  return %x : tensor<4xi64>
}

// -----

// Without a gradient on the way, an op needs no derivative.
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.torch_fallback "aten.tanhshrink.default"(%y) "[{\"tensor\": 0}]" : (tensor<4xf32>) -> tensor<4xf32>
  %1 = weft.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}

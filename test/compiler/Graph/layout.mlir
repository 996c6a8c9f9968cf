// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @layouts
// CHECK-SAME: tensor<2x128x768xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
// CHECK-SAME: tensor<1x3x8x8xf32, #weft.layout<[0, 2, 3, 1]>>
func.func @layouts(%a: tensor<2x128x768xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>,
                   %b: tensor<1x3x8x8xf32, #weft.layout<[0, 2, 3, 1]>>) {
  return
}

// -----

// expected-error @+1 {{expected order to be a permutation of 0 to 1}}
func.func private @order(tensor<2x2xf32, #weft.layout<[0, 0]>>)

// -----

// expected-error @+1 {{expected tile dim below rank (2), found 2}}
func.func private @tile_dim(tensor<2x2xf32, #weft.layout<[0, 1], tile 2 by 4>>)

// -----

// expected-error @+1 {{expected a positive tile size with a tile dim, found 0}}
func.func private @tile_size(tensor<2x2xf32, #weft.layout<[0, 1], tile 0 by 0>>)

// -----

// expected-error @+1 {{expected a layout of rank 1, found rank 2}}
func.func private @rank(tensor<2xf32, #weft.layout<[0, 1]>>)

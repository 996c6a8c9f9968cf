// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0" -weft-partition | FileCheck %s

// A trained weight is an input of the forward: nothing is prepared from it. Another stays one.
// CHECK: func.func @forward(
// CHECK-SAME: {weft.kind = "input", weft.name = "w"}
// CHECK-SAME: {weft.kind = "weight", weft.name = "frozen"}
// CHECK: func.func @backward(
// CHECK-SAME: weft.name = "input 1"
// CHECK-SAME: weft.name = "gradient 0"
func.func @main(%w: tensor<4xf32> {weft.kind = "weight", weft.name = "w"},
                %f: tensor<4xf32> {weft.kind = "weight", weft.name = "frozen"}) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.mul %w, %f : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The whole stage: layouts survive canonicalisation and the decomposition of composites.
// RUN: weft-opt %s -weft-optimize | FileCheck %s
// RUN: weft-opt %s -weft-optimize=lanes=8 | FileCheck %s --check-prefix=NARROW

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[PACKED:[a-z0-9]*]]: tensor<640x3x4x4xf32, #weft.layout<[0, 2, 3, 1], tile 0 by 32>> {weft.kind = "bound"
// CHECK: weft.conv %{{.*}}, %[[PACKED]]
// CHECK: weft.transpose
// CHECK: weft.relayout {{.*}} -> tensor<2x64x640xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
// CHECK: weft.dot_general
// CHECK: weft.reduce <sum> {{.*}} -> tensor<2x64xf32, #weft.layout<[0, 1], tile 1 by 64>>
// CHECK: weft.multi_dot
// CHECK-NOT: weft.transpose
// CHECK-NOT: weft.relayout
// CHECK: weft.mul {{.*}} : tensor<2x64x640xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
// CHECK: weft.relayout {{.*}} -> tensor<2x64x640xf32>
// CHECK-NEXT: return
// CHECK-LABEL: func.func @bind(
// CHECK: weft.relayout

// NARROW: weft.multi_dot {{.*}} tile 1 by 32>>
func.func @main(%x: tensor<2x3x32x32xf32> {weft.kind = "input", weft.name = "x"},
                %patch: tensor<640x3x4x4xf32> {weft.kind = "weight", weft.name = "patch"},
                %scale: tensor<640xf32> {weft.kind = "weight", weft.name = "scale"},
                %v: tensor<640x640xf32> {weft.kind = "weight", weft.name = "v"},
                %w: tensor<640x640xf32> {weft.kind = "weight", weft.name = "w"})
    -> tensor<2x64x640xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.conv %x, %patch strides [4, 4] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<2x3x32x32xf32>, tensor<640x3x4x4xf32> -> tensor<2x640x8x8xf32>
  %1 = weft.reshape %0 : tensor<2x640x8x8xf32> -> tensor<2x640x64xf32>
  %2 = weft.transpose %1 perm [0, 2, 1] : tensor<2x640x64xf32> -> tensor<2x64x640xf32>
  %3 = weft.dot_general %2, %v batch [] x [] contract [2] x [1] : tensor<2x64x640xf32>, tensor<640x640xf32> -> tensor<2x64x640xf32>
  %4 = weft.layer_norm %3 weight %scale : tensor<640xf32> over 1 eps 1.0e-5 : tensor<2x64x640xf32>
  %5 = weft.dot_general %4, %v batch [] x [] contract [2] x [1] : tensor<2x64x640xf32>, tensor<640x640xf32> -> tensor<2x64x640xf32>
  %wt = weft.transpose %w perm [1, 0] : tensor<640x640xf32> -> tensor<640x640xf32>
  %6 = weft.dot_general %4, %wt batch [] x [] contract [2] x [0] : tensor<2x64x640xf32>, tensor<640x640xf32> -> tensor<2x64x640xf32>
  %7 = weft.silu %5 : tensor<2x64x640xf32>
  %8 = weft.mul %7, %6 : tensor<2x64x640xf32>
  return %8 : tensor<2x64x640xf32>
}

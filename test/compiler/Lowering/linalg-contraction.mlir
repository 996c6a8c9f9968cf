// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-lower-to-linalg --split-input-file | FileCheck %s

#tile = #weft.layout<[0, 1, 2], tile 1 by 4>

// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d2, d4)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func private @tiled_dot(
// CHECK: linalg.fill
// CHECK: linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], #[[OUT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME: attrs = {weft.padded = array<i64: 1, 3, 6>}
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func private @tiled_dot(%x: tensor<2x6x8xf32, #tile>, %w: tensor<16x8xf32>)
    -> tensor<2x6x16xf32, #tile> attributes {weft.kernel = "contraction"} {
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1]
    : tensor<2x6x8xf32, #tile>, tensor<16x8xf32> -> tensor<2x6x16xf32, #tile>
  return %0 : tensor<2x6x16xf32, #tile>
}

// -----

// Half precision accumulates in f32.
// CHECK-LABEL: func.func private @half_dot(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x16xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x16xbf16>)
// CHECK: arith.truncf
func.func private @half_dot(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<4x16xbf16>
    attributes {weft.kernel = "contraction"} {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [0]
    : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xbf16>
  return %0 : tensor<4x16xbf16>
}

// -----

#last = #weft.layout<[0, 2, 3, 1]>
#packed = #weft.layout<[0, 2, 3, 1], tile 0 by 16>

// Packed output channels are two dims of the iteration, joined and cut behind it.
// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 * 2 + d5, d2 * 2 + d6, d7)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d3, d5, d6, d7, d4)>
// CHECK-LABEL: func.func private @packed_conv(
// CHECK: linalg.generic {indexing_maps = [#[[IN]], #[[W]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
// CHECK: tensor.collapse_shape {{.*}} into tensor<1x4x4x32xf32>
// CHECK: tensor.extract_slice {{.*}} to tensor<1x4x4x20xf32>
func.func private @packed_conv(%x: tensor<1x3x10x10xf32, #last>,
                               %w: tensor<20x3x3x3xf32, #packed>) -> tensor<1x20x4x4xf32, #last>
    attributes {weft.kernel = "contraction"} {
  %0 = weft.conv %x, %w strides [2, 2] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<1x3x10x10xf32, #last>, tensor<20x3x3x3xf32, #packed> -> tensor<1x20x4x4xf32, #last>
  return %0 : tensor<1x20x4x4xf32, #last>
}

// -----

// A product of vectors has no parallel dims.
// CHECK-DAG: #[[VECTOR:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[SCALAR:.*]] = affine_map<(d0) -> ()>
// CHECK-LABEL: func.func private @inner_product(
// CHECK: linalg.generic {indexing_maps = [#[[VECTOR]], #[[VECTOR]], #[[SCALAR]]], iterator_types = ["reduction"]}
func.func private @inner_product(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<f32>
    attributes {weft.kernel = "contraction"} {
  %0 = weft.dot_general %x, %y batch [] x [] contract [0] x [0]
    : tensor<8xf32>, tensor<8xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

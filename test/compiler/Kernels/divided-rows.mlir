// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

#of_token = affine_map<(b, c, i, t) -> (b, t)>
#blocked = affine_map<(b, c, i, t) -> (b, c, i, t)>
#divided = affine_map<(b, c, i, t) -> (c, b, t, i)>

// Of tokens in blocks of 16, features are stored in four blocks of 16. The sums of eight tokens are
// the same for all of these: four vectors of tokens are a cell each, and go through the blocks of
// features behind their sums.
// CHECK-LABEL: func.func private @divides_features
// CHECK-SAME:    weft.schedule = #weft.schedule<token_blocks_to_rows{{.*}} lanes = 8 : i64, reduced_lanes
// CHECK:         %[[CELLS:.*]] = arith.select %{{.*}}, %c4, %c0
// CHECK:         scf.for %{{.*}} = %c0 to %[[CELLS]]
// CHECK:           %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK:           %[[BLOCKS:.*]] = arith.constant 4 : index
// CHECK-NOT:       iter_args
// CHECK:           scf.for %{{.*}} to %[[BLOCKS]] step
// CHECK:             arith.subf %{{.*}}, %[[SUM]]
// CHECK:             vector.shuffle
// CHECK-COUNT-8:     vector.store
// CHECK:         return
func.func private @divides_features(%x: tensor<2x64x16xf32>) -> tensor<4x32x16xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %parts = tensor.expand_shape %x [[0], [1, 2], [3]] output_shape [2, 4, 16, 16]
      : tensor<2x64x16xf32> into tensor<2x4x16x16xf32>
  %sums = tensor.empty() : tensor<2x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sums : tensor<2x16xf32>) -> tensor<2x16xf32>
  %sum = linalg.generic {indexing_maps = [#blocked, #of_token],
      iterator_types = ["parallel", "reduction", "reduction", "parallel"]}
      ins(%parts : tensor<2x4x16x16xf32>) outs(%init : tensor<2x16xf32>) {
  ^bb0(%a: f32, %s: f32):
    %next = arith.addf %s, %a : f32
    linalg.yield %next : f32
  } -> tensor<2x16xf32>
  %empty = tensor.empty() : tensor<4x2x16x16xf32>
  %rows = linalg.generic {indexing_maps = [#blocked, #of_token, #divided],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%parts, %sum : tensor<2x4x16x16xf32>, tensor<2x16xf32>)
      outs(%empty : tensor<4x2x16x16xf32>) {
  ^bb0(%a: f32, %s: f32, %unused: f32):
    %y = arith.subf %a, %s : f32
    linalg.yield %y : f32
  } -> tensor<4x2x16x16xf32>
  %out = tensor.collapse_shape %rows [[0], [1, 2], [3]]
      : tensor<4x2x16x16xf32> into tensor<4x32x16xf32>
  return %out : tensor<4x32x16xf32>
}

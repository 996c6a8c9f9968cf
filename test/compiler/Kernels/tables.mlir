// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

// Constants of many elements are read from memory, whole vectors at a time.
// CHECK:         memref.global "private" constant @divide_table_0 : memref<16xf32> = dense<[1.000000e+00, {{.*}}, 1.600000e+01]> {alignment = 64 : i64}
// CHECK-LABEL: func.func private @divide
// CHECK:         %[[TABLE:.*]] = memref.get_global @divide_table_0 : memref<16xf32>
// CHECK:         scf.for
// CHECK-NOT:     arith.select
// CHECK:         vector.load %[[TABLE]]{{.*}} : memref<16xf32>, vector<16xf32>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func private @divide(%x: tensor<5x16xf32>) -> tensor<5x16xf32>
    attributes {weft.kernel = "nest"} {
  %by = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]> : tensor<16xf32>
  %empty = tensor.empty() : tensor<5x16xf32>
  %out = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %by : tensor<5x16xf32>, tensor<16xf32>) outs(%empty : tensor<5x16xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x16xf32>
  return %out : tensor<5x16xf32>
}

// -----

// Those of a few elements are chosen.
// CHECK-NOT:     memref.global
// CHECK-LABEL: func.func private @scale
// CHECK-COUNT-2: arith.select
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (i)>
func.func private @scale(%x: tensor<3x160xf32>) -> tensor<3x160xf32>
    attributes {weft.kernel = "nest"} {
  %by = arith.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
  %empty = tensor.empty() : tensor<3x160xf32>
  %out = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %by : tensor<3x160xf32>, tensor<3xf32>) outs(%empty : tensor<3x160xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<3x160xf32>
  return %out : tensor<3x160xf32>
}

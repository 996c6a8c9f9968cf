// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s --weft-fill=enters_blocks.1=0:9 %}

#blocked = affine_map<(b, f, t) -> (b, f, t)>
#of_token = affine_map<(b, f, t) -> (b, t)>
#by_token = affine_map<(b, f, t) -> (b, t, f)>

// Tokens lie in blocks of 64, and leave them row by row: they are the lanes of the sums and of
// what is computed from these. Of 100 tokens the last vector has four, whose rows alone are
// stored.
// CHECK-LABEL: func.func private @leaves_blocks
// CHECK-SAME:    weft.schedule = #weft.schedule<{{(token_blocks_to_rows|rows_to_token_blocks)( serial)?}} {{.*}}lanes = 16 : i64, reduced_lanes
// CHECK-NOT:     memref.load
// CHECK-NOT:     vector.insert
// CHECK:         %[[LAST:.*]] = arith.cmpi eq, %{{.*}}, %c6
// CHECK:         scf.if %[[LAST]]
// CHECK:           vector.maskedload
// CHECK:           vector.shuffle
// CHECK-COUNT-8:   vector.maskedstore
// CHECK-NOT:       vector.maskedstore
// CHECK:         } else {
// CHECK:           vector.load
// CHECK:           vector.shuffle
// CHECK-COUNT-32:  vector.maskedstore
// CHECK-NOT:       vector.maskedstore
// CHECK:         return
func.func private @leaves_blocks(%x: tensor<2x40x64xf32>) -> tensor<100x40xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %sums = tensor.empty() : tensor<2x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sums : tensor<2x64xf32>) -> tensor<2x64xf32>
  %sum = linalg.generic {indexing_maps = [#blocked, #of_token],
      iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<2x40x64xf32>) outs(%init : tensor<2x64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %next = arith.addf %s, %a : f32
    linalg.yield %next : f32
  } -> tensor<2x64xf32>
  %empty = tensor.empty() : tensor<2x64x40xf32>
  %rows = linalg.generic {indexing_maps = [#blocked, #of_token, #by_token],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : tensor<2x40x64xf32>, tensor<2x64xf32>) outs(%empty : tensor<2x64x40xf32>) {
  ^bb0(%a: f32, %s: f32, %unused: f32):
    %y = arith.subf %a, %s : f32
    linalg.yield %y : f32
  } -> tensor<2x64x40xf32>
  %all = tensor.collapse_shape %rows [[0, 1], [2]] : tensor<2x64x40xf32> into tensor<128x40xf32>
  %out = tensor.extract_slice %all[0, 0] [100, 40] [1, 1] : tensor<128x40xf32> to tensor<100x40xf32>
  return %out : tensor<100x40xf32>
}

// -----

#rows = affine_map<(b, t, f) -> (b, t, f)>
#of_row = affine_map<(b, t, f) -> (b, t)>
#into = affine_map<(b, t, f) -> (b, f, t)>

// The other way round, vectors run along the features: sixteen rows are computed into scratch,
// and stored from there by sixteen tokens at a time. What a gather reads is a row as well.
// CHECK-LABEL: func.func private @enters_blocks
// CHECK-SAME:    weft.schedule = #weft.schedule<{{(token_blocks_to_rows|rows_to_token_blocks)( serial)?}} {{.*}}lanes = 16 : i64, reduced_lanes
// CHECK:         scf.for
// CHECK:           memref.load {{.*}} : memref<128xi64>
// CHECK:           vector.load {{.*}} : memref<400xf32>, vector<16xf32>
// CHECK:           vector.store {{.*}} : memref<768xf32>, vector<16xf32>
// CHECK:         scf.for
// CHECK-COUNT-16:  vector.load {{.*}} : memref<768xf32>, vector<16xf32>
// CHECK:           vector.shuffle
// CHECK-COUNT-16:  vector.store {{.*}} : memref<5120xf32>, vector<16xf32>
// CHECK:         return
func.func private @enters_blocks(%table: tensor<10x40xf32>, %ids: tensor<2x64xi64>)
    -> tensor<2x40x64xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %gathered = tensor.empty() : tensor<2x64x40xf32>
  %x = linalg.generic {indexing_maps = [#of_row, #rows],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids : tensor<2x64xi64>) outs(%gathered : tensor<2x64x40xf32>) {
  ^bb0(%id: i64, %unused: f32):
    %row = arith.index_cast %id : i64 to index
    %feature = linalg.index 2 : index
    %a = tensor.extract %table[%row, %feature] : tensor<10x40xf32>
    linalg.yield %a : f32
  } -> tensor<2x64x40xf32>
  %sums = tensor.empty() : tensor<2x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sums : tensor<2x64xf32>) -> tensor<2x64xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #of_row],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x64x40xf32>) outs(%init : tensor<2x64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %next = arith.addf %s, %a : f32
    linalg.yield %next : f32
  } -> tensor<2x64xf32>
  %empty = tensor.empty() : tensor<2x40x64xf32>
  %out = linalg.generic {indexing_maps = [#rows, #of_row, #into],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : tensor<2x64x40xf32>, tensor<2x64xf32>) outs(%empty : tensor<2x40x64xf32>) {
  ^bb0(%a: f32, %s: f32, %unused: f32):
    %y = arith.subf %a, %s : f32
    linalg.yield %y : f32
  } -> tensor<2x40x64xf32>
  return %out : tensor<2x40x64xf32>
}

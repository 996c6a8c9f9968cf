// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s

// Threads divide the outermost dim of results, so that each goes on with what it has computed: here
// 16 blocks of tokens, eight at a time by 128 tiles of rows, though the weight is read by both. Its
// strips are copied for as many as the second-level cache holds.
// CHECK-LABEL: func.func private @blocks_of_tokens
// CHECK-SAME:    panels = 8 : i64
// CHECK:         %[[PIECES:.*]] = arith.constant 256 : index
// CHECK:         arith.muli %[[PIECES]], %{{.*}}
// CHECK:         scf.while
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (k, n)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @blocks_of_tokens(%x: tensor<16x768x64xf32>, %w: tensor<768x768xf32>)
    -> tensor<16x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x768x64xf32>) -> tensor<16x768x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x768x64xf32>, tensor<768x768xf32>) outs(%init : tensor<16x768x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x768x64xf32>
  return %dot : tensor<16x768x64xf32>
}

// -----

// Rows of tokens, and a packed weight that is larger: 14 tiles of 14 rows.
// CHECK-LABEL: func.func private @rows_of_tokens
// CHECK:         %[[PIECES:.*]] = arith.constant 14 : index
// CHECK:         arith.muli %[[PIECES]], %{{.*}}
// CHECK:         scf.for
#x = affine_map<(m, j, i, k) -> (m, k)>
#w = affine_map<(m, j, i, k) -> (j, k, i)>
#y = affine_map<(m, j, i, k) -> (m, j, i)>
func.func private @rows_of_tokens(%x: tensor<196x384xf32>, %w: tensor<48x384x32xf32>)
    -> tensor<196x48x32xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<196x48x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<196x48x32xf32>) -> tensor<196x48x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<196x384xf32>, tensor<48x384x32xf32>) outs(%init : tensor<196x48x32xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<196x48x32xf32>
  return %dot : tensor<196x48x32xf32>
}

// -----

// Few rows wait for the weight, which each thread reads a half of: 48 panels.
// CHECK-LABEL: func.func private @halves_of_weight
// CHECK:         %[[PIECES:.*]] = arith.constant 48 : index
// CHECK:         arith.muli %[[PIECES]], %{{.*}}
// CHECK:         scf.while
#x = affine_map<(m, j, i, k) -> (m, k)>
#w = affine_map<(m, j, i, k) -> (j, k, i)>
#y = affine_map<(m, j, i, k) -> (m, j, i)>
func.func private @halves_of_weight(%x: tensor<56x384xf32>, %w: tensor<48x384x32xf32>)
    -> tensor<56x48x32xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<56x48x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<56x48x32xf32>) -> tensor<56x48x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<56x384xf32>, tensor<48x384x32xf32>) outs(%init : tensor<56x48x32xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<56x48x32xf32>
  return %dot : tensor<56x48x32xf32>
}

// -----

// A weight that the second-level cache holds is read by both, from 16 rows on: 11 tiles of at most
// six rows are made 12, so that each thread has as many.
// CHECK-LABEL: func.func private @rows_of_near_weight
// CHECK:         %[[PIECES:.*]] = arith.constant 12 : index
// CHECK:         arith.muli %[[PIECES]], %{{.*}}
#x = affine_map<(m, j, i, k) -> (m, k)>
#w = affine_map<(m, j, i, k) -> (j, k, i)>
#y = affine_map<(m, j, i, k) -> (m, j, i)>
func.func private @rows_of_near_weight(%x: tensor<64x784xf32>, %w: tensor<2x784x64xf32>)
    -> tensor<64x2x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x2x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x2x64xf32>) -> tensor<64x2x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x784xf32>, tensor<2x784x64xf32>) outs(%init : tensor<64x2x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<64x2x64xf32>
  return %dot : tensor<64x2x64xf32>
}

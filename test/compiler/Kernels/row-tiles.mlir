// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

// 50 rows in six tiles: two of nine, four of eight.
// CHECK-LABEL: func.func private @about_alike
// CHECK-SAME:    groups = 3 : i64
// CHECK-SAME:    rows = 9 : i64
// CHECK-SAME:    unroll = 4 : i64
// CHECK:         %[[PASSED:.*]] = arith.muli %{{.*}}, %c50
// CHECK:         arith.divui %[[PASSED]], %c6
// CHECK:         %[[IS_WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c9
// CHECK:         scf.if %[[IS_WHOLE]]
// CHECK-COUNT-108: vector.fma
// CHECK-NOT:     vector.fma
// CHECK:         } else {
// CHECK-COUNT-96: vector.fma
// CHECK-NOT:     vector.fma
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @about_alike(%x: tensor<50x64xf32>, %w: tensor<64x48xf32>)
    -> tensor<50x48xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<50x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<50x48xf32>) -> tensor<50x48xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<50x64xf32>, tensor<64x48xf32>) outs(%init : tensor<50x48xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<50x48xf32>
  return %dot : tensor<50x48xf32>
}

// -----

// Neither three tiles of rows nor one panel divide among two threads: four tiles.
// CHECK-LABEL: func.func private @one_more
// CHECK-SAME:    groups = 2 : i64
// CHECK-SAME:    rows = 10 : i64
// CHECK-NOT:     weft.serial
// CHECK:         %[[TILES:.*]] = arith.constant 4 : index
// CHECK:         arith.muli %[[TILES]], %arg4
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @one_more(%x: tensor<40x1000xf32>, %w: tensor<1000x32xf32>)
    -> tensor<40x32xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x32xf32>) -> tensor<40x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<40x1000xf32>, tensor<1000x32xf32>) outs(%init : tensor<40x32xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<40x32xf32>
  return %dot : tensor<40x32xf32>
}

// -----

// Six panels, the last of two vectors instead of three: threads with as many of them each would
// not have as much to do, with eight tiles of rows they have.
// CHECK-LABEL: func.func private @padded_panel
// CHECK-SAME:    groups = 3 : i64
// CHECK-SAME:    rows = 9 : i64
// CHECK-NOT:     weft.serial
// CHECK:         %[[TILES:.*]] = arith.constant 8 : index
// CHECK:         arith.muli %[[TILES]], %{{.*}}
#x = affine_map<(p, m, l, k) -> (m, k)>
#w = affine_map<(p, m, l, k) -> (p, k, l)>
#y = affine_map<(p, m, l, k) -> (m, p, l)>
func.func private @padded_panel(%x: tensor<65x300xf32>, %w: tensor<6x300x48xf32>)
    -> tensor<65x6x48xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<65x6x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<65x6x48xf32>) -> tensor<65x6x48xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<65x300xf32>, tensor<6x300x48xf32>) outs(%init : tensor<65x6x48xf32>)
      attrs = {weft.padded = array<i64: 0, 2, 257>} {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<65x6x48xf32>
  return %dot : tensor<65x6x48xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s

// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s --check-prefix=AVX2

// 72 tokens in two blocks of 64: of the last block one register of four holds tokens, eight of
// them: a vector of 512 bits is halved, one of 256 is whole.
// CHECK-LABEL: func.func private @last_block
// CHECK-SAME:    weft.flops = 14155776 : i64
// CHECK-SAME:    groups = 4 : i64
// CHECK-SAME:    rows = 6 : i64
// CHECK:         scf.if
// CHECK-COUNT-24: vector.fma {{.*}} : vector<8xf32>
// CHECK-NOT:     vector.fma
// CHECK:         } else {
// CHECK-COUNT-96: vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT:     vector.fma
// AVX2-NOT:      vector<4xf32>
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @last_block(%x: tensor<2x256x64xf32>, %w: tensor<384x256xf32>)
    -> tensor<2x384x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x384x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x384x64xf32>) -> tensor<2x384x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x256x64xf32>, tensor<384x256xf32>) outs(%init : tensor<2x384x64xf32>)
      attrs = {weft.padded = array<i64: 0, 2, 72>} {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x384x64xf32>
  return %dot : tensor<2x384x64xf32>
}

// -----

// Images of 73 tokens, nine in the last register, which is whole: blocks of all of them are one
// dim, in which every other one is a last.
// CHECK-LABEL: func.func private @last_block_of_each_image
// CHECK:         scf.if
// CHECK-COUNT-24: vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT:     vector.fma
// CHECK:         } else {
// CHECK-COUNT-96: vector.fma
// CHECK-NOT:     vector.fma
#x = affine_map<(b, t, n, i, k) -> (b, t, k, i)>
#w = affine_map<(b, t, n, i, k) -> (n, k)>
#y = affine_map<(b, t, n, i, k) -> (b, t, n, i)>
func.func private @last_block_of_each_image(%x: tensor<3x2x256x64xf32>, %w: tensor<384x256xf32>)
    -> tensor<3x2x384x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x2x384x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x2x384x64xf32>)
      -> tensor<3x2x384x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x2x256x64xf32>, tensor<384x256xf32>)
      outs(%init : tensor<3x2x384x64xf32>) attrs = {weft.padded = array<i64: 1, 3, 73>} {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<3x2x384x64xf32>
  return %dot : tensor<3x2x384x64xf32>
}

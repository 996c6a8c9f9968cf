// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

#whole = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>

// A reduction over one element that reads another one: nothing depends on a loop over the
// one element, which there is not.
// CHECK-LABEL: func.func private @twice(
// CHECK: arith.addf
// CHECK: vector.store
// CHECK: return
func.func private @twice(%x: tensor<8x1xf32>) -> tensor<8xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x1xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  } -> tensor<8xf32>
  %column = tensor.expand_shape %0 [[0, 1]] output_shape [8, 1]
    : tensor<8xf32> into tensor<8x1xf32>
  %1 = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%column : tensor<8x1xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  } -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 | FileCheck %s
// RUN: weft-check-kernels %s | FileCheck %s

// A reduction over a concat, one row of which is computed of another reduction: that has one value
// for all rows of the concat.
// CHECK: nested: loop_nest
// CHECK: nested: result 0: 18 elements of f64
#all = affine_map<(i, j, k) -> (i, j, k)>
#rest = affine_map<(i, j, k) -> (i, k)>
#id = affine_map<(i, k) -> (i, k)>
func.func private @nested(%x: tensor<3x2x6xf64>, %y: tensor<3x1x6xf64>) -> tensor<3x6xf64>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.000000e+00 : f64
  %empty = tensor.empty() : tensor<3x6xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%empty : tensor<3x6xf64>) -> tensor<3x6xf64>
  %inner = linalg.generic {indexing_maps = [#all, #rest],
                           iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<3x2x6xf64>) outs(%zeros : tensor<3x6xf64>) {
  ^bb0(%in: f64, %out: f64):
    %sum = arith.addf %out, %in : f64
    linalg.yield %sum : f64
  } -> tensor<3x6xf64>
  %twice = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%inner : tensor<3x6xf64>) outs(%empty : tensor<3x6xf64>) {
  ^bb0(%in: f64, %out: f64):
    %sum = arith.addf %in, %in : f64
    linalg.yield %sum : f64
  } -> tensor<3x6xf64>
  %row = tensor.expand_shape %twice [[0], [1, 2]] output_shape [3, 1, 6]
      : tensor<3x6xf64> into tensor<3x1x6xf64>
  %rows = tensor.empty() : tensor<3x2x6xf64>
  %first = tensor.insert_slice %row into %rows[0, 0, 0] [3, 1, 6] [1, 1, 1]
      : tensor<3x1x6xf64> into tensor<3x2x6xf64>
  %both = tensor.insert_slice %y into %first[0, 1, 0] [3, 1, 6] [1, 1, 1]
      : tensor<3x1x6xf64> into tensor<3x2x6xf64>
  %outer = linalg.generic {indexing_maps = [#all, #rest],
                           iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%both : tensor<3x2x6xf64>) outs(%zeros : tensor<3x6xf64>) {
  ^bb0(%in: f64, %out: f64):
    %sum = arith.addf %out, %in : f64
    linalg.yield %sum : f64
  } -> tensor<3x6xf64>
  return %outer : tensor<3x6xf64>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: env WEFT_CPU_CACHES=48K,2M weft-opt %s --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: env WEFT_CPU_CACHES=32K,1M weft-opt %s --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s

// Rows 4 KiB apart share a set of the first-level cache. Tiles of eight rows and two vectors would
// divide them evenly, but load more for each multiply-add than six rows and four vectors.
// CHECK-LABEL: func.func private @rows
// CHECK-SAME:    groups = 4 : i64, {{.*}}rows = 6 : i64
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @rows(%x: tensor<512x1024xf32>, %w: tensor<1024x1024xf32>)
    -> tensor<512x1024xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x1024xf32>, tensor<1024x1024xf32>)
      outs(%init : tensor<512x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<512x1024xf32>
  return %dot : tensor<512x1024xf32>
}

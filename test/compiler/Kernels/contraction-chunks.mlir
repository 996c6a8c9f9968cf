// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s --check-prefixes=CHECK,LARGE
// RUN: env WEFT_CPU_CACHES=32K,512K weft-opt %s --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s --check-prefixes=CHECK,SMALL

// A chunk of a long sum, and the next that is fetched meanwhile, stay in the second-level cache.
// CHECK-LABEL: func.func private @long_rows
// LARGE-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 768 : i64
// SMALL-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 384 : i64

// Sums that are no longer than this are whole: partial ones cost more.
// CHECK-LABEL: func.func private @short_rows
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 1536 : i64
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @long_rows(%x: tensor<8x3072x16xf32>, %w: tensor<768x3072xf32>)
    -> tensor<8x768x16xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x768x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x768x16xf32>) -> tensor<8x768x16xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x3072x16xf32>, tensor<768x3072xf32>) outs(%init : tensor<8x768x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x768x16xf32>
  return %sum : tensor<8x768x16xf32>
}

func.func private @short_rows(%x: tensor<8x1536x16xf32>, %w: tensor<384x1536xf32>)
    -> tensor<8x384x16xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x384x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x384x16xf32>) -> tensor<8x384x16xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x1536x16xf32>, tensor<384x1536xf32>) outs(%init : tensor<8x384x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x384x16xf32>
  return %sum : tensor<8x384x16xf32>
}

// Of numbers twice as wide half as many steps: a tile's rows stay in the first-level cache.
// CHECK-LABEL: func.func private @double_rows
// LARGE-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 512 : i64
// SMALL-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 256 : i64
func.func private @double_rows(%x: tensor<8x1024x16xf64>, %w: tensor<384x1024xf64>)
    -> tensor<8x384x16xf64> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<8x384x16xf64>
  %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<8x384x16xf64>) -> tensor<8x384x16xf64>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x1024x16xf64>, tensor<384x1024xf64>) outs(%init : tensor<8x384x16xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<8x384x16xf64>
  return %sum : tensor<8x384x16xf64>
}

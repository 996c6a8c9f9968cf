// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: env WEFT_CPU_CACHES=32K,1M weft-opt %s --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: env WEFT_CPU_CACHES=32K,1M weft-opt %s --weft-schedule-kernels=isa=amx --weft-emit-kernels=isa=amx | FileCheck %s --check-prefix=UNIT

// The second-level cache holds two panels, by which all rows go once.
// CHECK-LABEL: func.func private @few_panels
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 768 : i64
// CHECK-SAME:    panels = 2 : i64

// Of many panels it holds one that is twice as long, so that partial sums are half as many.
// CHECK-LABEL: func.func private @many_panels
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 1536 : i64
// CHECK-SAME:    panels = 1 : i64

// The matrix unit, whose parts of panels are sized for it, has the usual chunks.
// UNIT-LABEL:  func.func private @many_panels
// UNIT-SAME:     weft.schedule = #weft.schedule<contraction{{.*}} chunk = 768 : i64
// UNIT-SAME:     matrix_unit = 1 : i64
// UNIT-SAME:     panels = 2 : i64
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @few_panels(%x: tensor<4x3072x64xf32>, %w: tensor<768x3072xf32>)
    -> tensor<4x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x768x64xf32>) -> tensor<4x768x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x3072x64xf32>, tensor<768x3072xf32>) outs(%init : tensor<4x768x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x768x64xf32>
  return %sum : tensor<4x768x64xf32>
}

func.func private @many_panels(%x: tensor<8x3072x64xf32>, %w: tensor<768x3072xf32>)
    -> tensor<8x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x768x64xf32>) -> tensor<8x768x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x3072x64xf32>, tensor<768x3072xf32>) outs(%init : tensor<8x768x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x768x64xf32>
  return %sum : tensor<8x768x64xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels=isa=avx512 -weft-emit-kernels=isa=avx512 | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// One row by a weight of 2.25 MiB whose sum goes down its columns: as many vectors of a step as
// give two threads two panels each, and those of the eighth step after this are fetched.
// CHECK-LABEL: func.func private @one_row
// CHECK-SAME:    groups = 12 : i64
// CHECK-SAME:    rows = 1 : i64
// CHECK-SAME:    steps_ahead = 8 : i64
// CHECK:         arith.addi %{{.*}}, %c8
// CHECK:         arith.minui %{{.*}}, %c767
// CHECK-COUNT-12: memref.prefetch %{{.*}}, read, locality<2>
// CHECK-COUNT-12: vector.fma
func.func private @one_row(%x: tensor<1x768xf32>, %w: tensor<768x768xf32>) -> tensor<1x768xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x768xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x768xf32>) -> tensor<1x768xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x768xf32>, tensor<768x768xf32>) outs(%fill : tensor<1x768xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x768xf32>
  return %dot : tensor<1x768xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// All of five rows go by at once, beside as many vectors as registers are left for.
// CHECK-LABEL: func.func private @five_rows
// CHECK-SAME:    groups = 5 : i64
// CHECK-SAME:    rows = 5 : i64
// CHECK-SAME:    steps_ahead = 8 : i64
func.func private @five_rows(%x: tensor<5x2048xf32>, %w: tensor<2048x640xf32>) -> tensor<5x640xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x640xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x640xf32>) -> tensor<5x640xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x2048xf32>, tensor<2048x640xf32>) outs(%fill : tensor<5x640xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x640xf32>
  return %dot : tensor<5x640xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Steps that lie side by side come from memory without being asked for.
// CHECK-LABEL: func.func private @narrow
// CHECK-SAME:    steps_ahead = 0 : i64
// CHECK-NOT:     memref.prefetch
func.func private @narrow(%x: tensor<1x16384xf32>, %w: tensor<16384x128xf32>) -> tensor<1x128xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x128xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x128xf32>) -> tensor<1x128xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x16384xf32>, tensor<16384x128xf32>) outs(%fill : tensor<1x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x128xf32>
  return %dot : tensor<1x128xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels=isa=avx512 -weft-emit-kernels=isa=avx512 | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// A weight with a stride between its steps: each of the twelve passes over rows fetches two steps
// of the next panel for every sixteen that it sums.
// CHECK-LABEL: func.func private @fetched
// CHECK-SAME:    copied_steps = 0 : i64
// CHECK-SAME:    strided_prefetch = 2 : i64
// CHECK-COUNT-8: memref.prefetch %{{.*}}, read, locality<2>
// CHECK-NOT:     locality<2>
// CHECK:         vector.fma
func.func private @fetched(%x: tensor<72x768xf32>, %w: tensor<768x768xf32>) -> tensor<72x768xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<72x768xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<72x768xf32>) -> tensor<72x768xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<72x768xf32>, tensor<768x768xf32>) outs(%fill : tensor<72x768xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<72x768xf32>
  return %dot : tensor<72x768xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// The same rows by weights that no cache keeps: each turn copies two steps of the next panel,
// and fetches what it copies two fetches later. First comes what turns have not copied, which is
// all of the first panel.
// CHECK-LABEL: func.func private @copied
// CHECK-SAME:    copied_steps = 2 : i64
// CHECK-SAME:    strided_prefetch = 0 : i64
// CHECK:         %[[LEFT:.*]] = arith.select
// CHECK:         scf.for %{{.*}} = %[[LEFT]] to %c768
// CHECK-COUNT-4:   vector.store
// CHECK:         arith.cmpi ule, %{{.*}}, %c767
// CHECK:         scf.if
// CHECK-COUNT-4:   vector.store
// CHECK-COUNT-4:   memref.prefetch %{{.*}}, read, locality<3>
// CHECK-COUNT-4:   vector.store
// CHECK-COUNT-4:   memref.prefetch
// CHECK-NOT:       vector.store
// CHECK:         vector.fma
func.func private @copied(%x: tensor<72x768xf32>, %w: tensor<768x768xf32>) -> tensor<72x768xf32>
    attributes {weft.kernel = "contraction", weft.cold_weights} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<72x768xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<72x768xf32>) -> tensor<72x768xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<72x768xf32>, tensor<768x768xf32>) outs(%fill : tensor<72x768xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<72x768xf32>
  return %dot : tensor<72x768xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Many rows are worth a copy of a weight that the caches keep; not of one with a narrower last
// panel.
// CHECK-LABEL: func.func private @many_rows
// CHECK-SAME:    copied_steps = 1 : i64
// CHECK-LABEL: func.func private @narrow_last
// CHECK-SAME:    copied_steps = 0 : i64
func.func private @many_rows(%x: tensor<512x768xf32>, %w: tensor<768x768xf32>)
    -> tensor<512x768xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x768xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x768xf32>) -> tensor<512x768xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x768xf32>, tensor<768x768xf32>) outs(%fill : tensor<512x768xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<512x768xf32>
  return %dot : tensor<512x768xf32>
}
func.func private @narrow_last(%x: tensor<512x768xf32>, %w: tensor<768x1000xf32>)
    -> tensor<512x1000xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x1000xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x1000xf32>) -> tensor<512x1000xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x768xf32>, tensor<768x1000xf32>) outs(%fill : tensor<512x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<512x1000xf32>
  return %dot : tensor<512x1000xf32>
}

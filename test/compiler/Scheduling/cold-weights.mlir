// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: env WEFT_CPU_CACHES=32K,1M,6M weft-opt %s -split-input-file -weft-schedule-kernels="threads=2 isa=avx512" -weft-lower-to-loops="threads=2 isa=avx512" | FileCheck %s --check-prefixes=CHECK,COLD
// RUN: env WEFT_CPU_CACHES=32K,1M,9M weft-opt %s -split-input-file -weft-schedule-kernels="threads=2 isa=avx512" -weft-lower-to-loops="threads=2 isa=avx512" | FileCheck %s --check-prefixes=CHECK,WARM

// Two weights of 4 MiB, of which the caches hold one: 24 lines ahead in each of eight columns, and
// in the next eight columns behind their end.
// CHECK-LABEL: func.func private @dot
// COLD-SAME:     steps_ahead = 384 : i64
// WARM-SAME:     steps_ahead = 0 : i64
// COLD:          arith.cmpi uge, %{{.*}}, %c1024
// COLD:          arith.select
// COLD:          arith.select
// COLD-COUNT-8:  memref.prefetch %{{.*}}, read, locality<2>
// COLD:          vector.fma
// WARM-NOT:      memref.prefetch
#x = affine_map<(n, k) -> (k)>
#w = affine_map<(n, k) -> (n, k)>
#y = affine_map<(n, k) -> (n)>
func.func private @dot(%x: tensor<1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024xf32>) -> tensor<1024xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<1024xf32>, tensor<1024x1024xf32>) outs(%fill : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  return %dot : tensor<1024xf32>
}
func.func @main(%x: tensor<1024xf32>, %w: tensor<1024x1024xf32>, %v: tensor<1024x1024xf32>)
    -> tensor<1024xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @dot(%x, %w) : (tensor<1024xf32>, tensor<1024x1024xf32>) -> tensor<1024xf32>
  %1 = call @dot(%0, %v) : (tensor<1024xf32>, tensor<1024x1024xf32>) -> tensor<1024xf32>
  return %1 : tensor<1024xf32>
}

// -----

// A weight that is read twice counts once, and a table that is looked up does not.
// CHECK-LABEL: func.func private @dot
// CHECK-SAME:    ahead = 0 : i64
#x = affine_map<(n, k) -> (k)>
#w = affine_map<(n, k) -> (n, k)>
#y = affine_map<(n, k) -> (n)>
func.func private @row(tensor<1024x1024xf32>) -> tensor<1024xf32>
    attributes {weft.kernel = "nest", weft.serial}
func.func private @dot(%x: tensor<1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024xf32>) -> tensor<1024xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<1024xf32>, tensor<1024x1024xf32>) outs(%fill : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  return %dot : tensor<1024xf32>
}
func.func @main(%table: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>)
    -> tensor<1024xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @row(%table) : (tensor<1024x1024xf32>) -> tensor<1024xf32>
  %1 = call @dot(%0, %w) : (tensor<1024xf32>, tensor<1024x1024xf32>) -> tensor<1024xf32>
  %2 = call @dot(%1, %w) : (tensor<1024xf32>, tensor<1024x1024xf32>) -> tensor<1024xf32>
  return %2 : tensor<1024xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels="threads=2 isa=avx512" -weft-lower-to-loops="threads=2 isa=avx512" | FileCheck %s

// 32 KiB that two threads have written are not fetched by one, however little there is to do.
// CHECK-LABEL: func.func private @double
// CHECK-NOT:     weft.serial
// CHECK:         arith.muli %{{.*}}, %arg3
#id = affine_map<(i, j) -> (i, j)>
func.func private @divided(tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.kernel = "nest"}
func.func private @double(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<64x128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x128xf32>) outs(%empty : tensor<64x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %twice : f32
  } -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}
func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @divided(%x) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = call @double(%0) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  return %1 : tensor<64x128xf32>
}

// -----

// What one thread has written, it reads alone.
// CHECK-LABEL: func.func private @double
// CHECK-SAME:    weft.serial
#id = affine_map<(i, j) -> (i, j)>
func.func private @serial(tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.kernel = "nest", weft.serial}
func.func private @double(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<64x128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x128xf32>) outs(%empty : tensor<64x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %twice : f32
  } -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}
func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @serial(%x) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = call @double(%0) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  return %1 : tensor<64x128xf32>
}

// -----

// A little result that another kernel reads stays with one thread, which need not wait for it.
// CHECK-LABEL: func.func private @sums
// CHECK-SAME:    weft.serial
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func private @divided(tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.kernel = "nest"}
func.func private @next(tensor<64xf32>) -> tensor<64xf32> attributes {weft.kernel = "nest", weft.serial}
func.func private @sums(%x: tensor<64x128xf32>) -> tensor<64xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %next = arith.addf %sum, %in : f32
    linalg.yield %next : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @main(%x: tensor<64x128xf32>) -> tensor<64xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @divided(%x) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = call @sums(%0) : (tensor<64x128xf32>) -> tensor<64xf32>
  %2 = call @next(%1) : (tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

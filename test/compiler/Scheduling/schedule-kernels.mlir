// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics -weft-schedule-kernels="isa=avx2 threads=2" | FileCheck %s

// Little work stays with one thread.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction serial {
// CHECK-SAME:      split = "{{[a-z]+}}"
#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @linear(%x: tensor<96x37xf32>, %w: tensor<10x96xf32>) -> tensor<10x37xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<10x37xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x37xf32>) -> tensor<10x37xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<96x37xf32>, tensor<10x96xf32>) outs(%init : tensor<10x37xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<10x37xf32>
  return %dot : tensor<10x37xf32>
}

// -----

// What a schedule on the kernel gives is taken, the rest chosen.
// CHECK-LABEL: func.func private @given
// CHECK-SAME:    chunk = 48 : i64
// CHECK-SAME:    rows = 2 : i64
#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @given(%x: tensor<96x37xf32>, %w: tensor<10x96xf32>) -> tensor<10x37xf32>
    attributes {weft.kernel = "contraction",
                weft.schedule = #weft.schedule<contraction {rows = 2 : i64, chunk = 48 : i64}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<10x37xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x37xf32>) -> tensor<10x37xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<96x37xf32>, tensor<10x96xf32>) outs(%init : tensor<10x37xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<10x37xf32>
  return %dot : tensor<10x37xf32>
}

// -----

// A complete schedule is kept.
// CHECK-LABEL: func.func private @kept
// CHECK-SAME:    weft.schedule = #weft.schedule<loop_nest {lanes = 4 : i64}>
#id = affine_map<(i) -> (i)>
func.func private @kept(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {lanes = 4 : i64}>} {
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %twice : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>
// expected-error @+1 {{schedule: emitter 'sort' does not suit this kernel}}
func.func private @unsuitable(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<sort>} {
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
// expected-error @+1 {{schedule: expected all fields, or some of rows, groups, chunk and panels, found "unroll"}}
func.func private @partly(%x: tensor<96x37xf32>, %w: tensor<10x96xf32>) -> tensor<10x37xf32>
    attributes {weft.kernel = "contraction",
                weft.schedule = #weft.schedule<contraction {unroll = 2 : i64}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<10x37xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x37xf32>) -> tensor<10x37xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<96x37xf32>, tensor<10x96xf32>) outs(%init : tensor<10x37xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<10x37xf32>
  return %dot : tensor<10x37xf32>
}

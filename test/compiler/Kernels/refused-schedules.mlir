// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics -weft-emit-kernels=isa=avx2

#id = affine_map<(i) -> (i)>
// expected-error @+1 {{expected 'weft.schedule', which weft-schedule-kernels writes}}
func.func private @none(%x: tensor<64xf32>) -> tensor<64xf32> attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>
// expected-error @+1 {{expected a schedule with the field 'transposed', found}}
func.func private @incomplete(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest",
                weft.schedule = #weft.schedule<rows_to_token_blocks {lanes = 8 : i64}>} {
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>
// expected-error @+1 {{emitter 'sort' cannot follow this kernel}}
func.func private @other(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<sort {lanes = 8 : i64}>} {
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// Ten rows in five tiles are two each.
#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
// expected-error @+1 {{schedule: expected 10 rows in row_tiles of rows, found 5 of 3}}
func.func private @rows(%x: tensor<96x37xf32>, %w: tensor<10x96xf32>) -> tensor<10x37xf32>
    attributes {weft.kernel = "contraction", weft.schedule = #weft.schedule<contraction {
      block_dims = 0 : i64, chunk = 96 : i64, claim = 1 : i64, copied_steps = 0 : i64,
      groups = 2 : i64, lanes = 8 : i64, matrix_unit = 0 : i64, outer_chunks = 0 : i64,
      paired = 0 : i64, panel_prefetch = 0 : i64, panels = 1 : i64, prefetch = 0 : i64,
      row_tiles = 5 : i64, rows = 3 : i64, segment = 96 : i64, split = "rows",
      steps_ahead = 0 : i64, strided_prefetch = 0 : i64, strip = 0 : i64, strip_line = 0 : i64,
      strip_steps = 0 : i64, tile_epilogue = 0 : i64, turns = 1 : i64, unroll = 4 : i64}>} {
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

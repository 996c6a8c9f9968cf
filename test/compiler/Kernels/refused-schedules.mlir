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
// expected-error @+1 {{expected a schedule with the field 'groups', found}}
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
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<sort {
      capacity = 0 : i64, groups = 4 : i64, lanes = 8 : i64, method = "radix"}>} {
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
      groups = 2 : i64, lanes = 8 : i64, matrix_unit = 0 : i64, narrow_lanes = 8 : i64,
      outer_chunks = 0 : i64, paired = 0 : i64, panel_prefetch = 0 : i64, panels = 1 : i64,
      prefetch = 0 : i64, row_tiles = 5 : i64, rows = 3 : i64, segment = 96 : i64, split = "rows",
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

// -----

#id = affine_map<(i) -> (i)>
// expected-error @+1 {{schedule: expected loops that divide the dims of target 0}}
func.func private @split(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 60>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected loop 0 once among grid, cell, rows, lane and load, found it 2 times}}
func.func private @twice(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64: 0>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected loops below 1, found 3}}
func.func private @beyond(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64: 3>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected block of at most 64, found 65}}
func.func private @wide(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 65 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected lanes to be a power of two, found 6}}
func.func private @odd(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 6 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected scans as the kernel has 0}}
func.func private @unscanned(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "rows", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected reduced_lanes and cached_operands of 0 reductions, found 1 and 0}}
func.func private @unreduced(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64: 0>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected load -1 if nothing is transposed, and only then}}
func.func private @loaded(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 8 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "reads",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected target 0 once, found it 0 times}}
func.func private @unstored(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected targets below 1, found 7}}
func.func private @stranger(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, lane = 0 : i64, lanes = 8 : i64, load = -1 : i64,
      interiors = array<i64>, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64: 0, 7>, transpose = "none",
      unroll = 16 : i64}>} {
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
// expected-error @+1 {{schedule: expected the interior of padded targets alone, found target 0}}
func.func private @no_interior(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 64 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, interiors = array<i64: 0>, lane = 0 : i64,
      lanes = 8 : i64, load = -1 : i64, loops = array<i64: 64>, reduced_lanes = array<i64>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#in = affine_map<(i, j) -> (i, j)>
#of_row = affine_map<(i, j) -> (i)>
// expected-error @+1 {{schedule: expected the interior of target 0 alone, as reductions and scans are not evaluated at padding}}
func.func private @padded_sums(%x: tensor<64x8xf32>) -> tensor<66xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 32 : i64, cached_operands = array<i64: -1>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 4 : i64, interiors = array<i64>, lane = 0 : i64,
      lanes = 8 : i64, load = -1 : i64, loops = array<i64: 66>, reduced_lanes = array<i64: -1>,
      rows = array<i64>, scans = "none", targets = array<i64: 0>, transpose = "none",
      unroll = 16 : i64}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#in, #of_row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x8xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %next = arith.addf %s, %a : f32
    linalg.yield %next : f32
  } -> tensor<64xf32>
  %padded = tensor.pad %sum low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<64xf32> to tensor<66xf32>
  return %padded : tensor<66xf32>
}

// -----

// expected-error @+1 {{schedule: expected piece of at most 96 columns, a multiple of lanes, rows and narrow_rows, found 40}}
func.func private @piece(%x: tensor<100x512xf32>, %w: tensor<8x96x512xf32>, %e: tensor<8xi32>)
    -> tensor<100x96xf32>
    attributes {weft.kernel = "grouped_dot", weft.schedule = #weft.schedule<grouped_matmul {
      chunk = 256 : i64, claim = 1 : i64, groups = 2 : i64, lanes = 8 : i64,
      narrow_rows = 6 : i64, piece = 40 : i64, rows = 6 : i64, slab = 8 : i64,
      unroll = 4 : i64}>} {
  %0 = weft.grouped_dot %x, %w, %e
    : tensor<100x512xf32>, tensor<8x96x512xf32>, tensor<8xi32> -> tensor<100x96xf32>
  return %0 : tensor<100x96xf32>
}

// -----

// A third of the lanes is no width of vectors.
#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
// expected-error @+1 {{schedule: expected narrow_lanes of 8 or half of it, found 3}}
func.func private @narrow(%x: tensor<96x37xf32>, %w: tensor<10x96xf32>) -> tensor<10x37xf32>
    attributes {weft.kernel = "contraction", weft.schedule = #weft.schedule<contraction {
      block_dims = 0 : i64, chunk = 96 : i64, claim = 1 : i64, copied_steps = 0 : i64,
      groups = 2 : i64, lanes = 8 : i64, matrix_unit = 0 : i64, narrow_lanes = 3 : i64,
      outer_chunks = 0 : i64, paired = 0 : i64, panel_prefetch = 0 : i64, panels = 1 : i64,
      prefetch = 0 : i64, row_tiles = 5 : i64, rows = 2 : i64, segment = 96 : i64, split = "rows",
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

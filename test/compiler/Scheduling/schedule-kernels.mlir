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
// CHECK-SAME:    weft.schedule = #weft.schedule<loop_nest {block = 32 : i64, {{.*}}groups = 2 : i64, interiors = array<i64>, lane = 0 : i64, lanes = 4 : i64
#id = affine_map<(i) -> (i)>
func.func private @kept(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 32 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 2 : i64, interiors = array<i64>, lane = 0 : i64,
      lanes = 4 : i64, load = -1 : i64,
      loops = array<i64: 64>, reduced_lanes = array<i64>, rows = array<i64>, scans = "none",
      targets = array<i64: 0>, transpose = "none", unroll = 16 : i64}>} {
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

// -----

// The columns' sums are in lanes; with the rows' sums, vectors run along the rows.
// CHECK-LABEL: func.func private @columns
// CHECK-SAME:    #weft.schedule<loop_nest {{.*}}lane = 0 : i64, {{.*}}reduced_lanes = array<i64: -1>
// CHECK-LABEL: func.func private @rows
// CHECK-SAME:    #weft.schedule<loop_nest {{.*}}lane = -1 : i64, {{.*}}reduced_lanes = array<i64: 0>
#in = affine_map<(i, j) -> (i, j)>
#of_column = affine_map<(i, j) -> (j)>
#of_row = affine_map<(i, j) -> (i)>
func.func private @columns(%x: tensor<96x64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#in, #of_column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<96x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %next = arith.addf %sum, %a : f32
    linalg.yield %next : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func private @rows(%x: tensor<96x64xf32>) -> tensor<96xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<96xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<96xf32>) -> tensor<96xf32>
  %y = linalg.generic {indexing_maps = [#in, #of_row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<96x64xf32>) outs(%init : tensor<96xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %next = arith.addf %sum, %a : f32
    linalg.yield %next : f32
  } -> tensor<96xf32>
  return %y : tensor<96xf32>
}

// -----

// Memory is contiguous along the rows of the operand, and the result is its transpose.
// CHECK-LABEL: func.func private @transposed
// CHECK-SAME:    #weft.schedule<loop_nest serial {block = 8 : i64, {{.*}}load = 0 : i64, {{.*}}transpose = "results"
#swap = affine_map<(i, j) -> (j, i)>
#in = affine_map<(i, j) -> (i, j)>
func.func private @transposed(%x: tensor<96x64xf32>) -> tensor<64x96xf32>
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#swap, #in], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<96x64xf32>) outs(%empty : tensor<64x96xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}

// -----

// A few of the best are a list that is kept by insertion.
// CHECK-LABEL: func.func private @best
// CHECK-SAME:    #weft.schedule<sort {capacity = 0 : i64, groups = 4 : i64, lanes = 8 : i64, method = "list"}>
func.func private @best(%x: tensor<64x4096xf32>) -> (tensor<64x5xf32>, tensor<64x5xi64>)
    attributes {weft.kernel = "sort"} {
  %values, %indices = weft.sort %x dim 1 descending true count 5
      : tensor<64x4096xf32> -> tensor<64x5xf32>, tensor<64x5xi64>
  return %values, %indices : tensor<64x5xf32>, tensor<64x5xi64>
}

// -----

// Norms of a stack, for blocks of rows that divide its layers otherwise: each lane looks for its
// layer among all of them, which is no code to unroll.
// CHECK-LABEL: func.func private @stacked
// CHECK-SAME:    unroll = 1 : i64
#all = affine_map<(b, l, e, n) -> (b, l, e, n)>
#row = affine_map<(b, l, e, n) -> (b, l, n)>
#to_rows = affine_map<(b, n, l, e) -> (b, l, e, n)>
#of_rows = affine_map<(b, n, l, e) -> (b, n, l, e)>
#from_block = affine_map<(t, e, r) -> (t, r, e)>
#to_block = affine_map<(t, e, r) -> (t, e, r)>
func.func private @stacked(%a: tensor<2x1x16x16xf32>, %b: tensor<2x1x16x16xf32>,
    %c: tensor<2x1x16x16xf32>, %d: tensor<2x1x16x16xf32>, %e: tensor<2x1x16x16xf32>)
    -> tensor<5x16x32xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %stack = tensor.empty() : tensor<2x5x16x16xf32>
  %s0 = tensor.insert_slice %a into %stack[0, 0, 0, 0] [2, 1, 16, 16] [1, 1, 1, 1]
      : tensor<2x1x16x16xf32> into tensor<2x5x16x16xf32>
  %s1 = tensor.insert_slice %b into %s0[0, 1, 0, 0] [2, 1, 16, 16] [1, 1, 1, 1]
      : tensor<2x1x16x16xf32> into tensor<2x5x16x16xf32>
  %s2 = tensor.insert_slice %c into %s1[0, 2, 0, 0] [2, 1, 16, 16] [1, 1, 1, 1]
      : tensor<2x1x16x16xf32> into tensor<2x5x16x16xf32>
  %s3 = tensor.insert_slice %d into %s2[0, 3, 0, 0] [2, 1, 16, 16] [1, 1, 1, 1]
      : tensor<2x1x16x16xf32> into tensor<2x5x16x16xf32>
  %s4 = tensor.insert_slice %e into %s3[0, 4, 0, 0] [2, 1, 16, 16] [1, 1, 1, 1]
      : tensor<2x1x16x16xf32> into tensor<2x5x16x16xf32>
  %sums = tensor.empty() : tensor<2x5x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sums : tensor<2x5x16xf32>) -> tensor<2x5x16xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row],
      iterator_types = ["parallel", "parallel", "reduction", "parallel"]}
      ins(%s4 : tensor<2x5x16x16xf32>) outs(%init : tensor<2x5x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %next = arith.addf %y, %x : f32
    linalg.yield %next : f32
  } -> tensor<2x5x16xf32>
  %other = tensor.empty() : tensor<2x5x16x16xf32>
  %less = linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s4, %sum : tensor<2x5x16x16xf32>, tensor<2x5x16xf32>)
      outs(%other : tensor<2x5x16x16xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %difference = arith.subf %x, %y : f32
    linalg.yield %difference : f32
  } -> tensor<2x5x16x16xf32>
  %plain = tensor.empty() : tensor<2x16x5x16xf32>
  %rows = linalg.generic {indexing_maps = [#to_rows, #of_rows],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%less : tensor<2x5x16x16xf32>) outs(%plain : tensor<2x16x5x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<2x16x5x16xf32>
  %flat = tensor.collapse_shape %rows [[0, 1, 2], [3]]
      : tensor<2x16x5x16xf32> into tensor<160x16xf32>
  %split = tensor.expand_shape %flat [[0, 1], [2]] output_shape [5, 32, 16]
      : tensor<160x16xf32> into tensor<5x32x16xf32>
  %blocks = tensor.empty() : tensor<5x16x32xf32>
  %result = linalg.generic {indexing_maps = [#from_block, #to_block],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%split : tensor<5x32x16xf32>) outs(%blocks : tensor<5x16x32xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<5x16x32xf32>
  return %result : tensor<5x16x32xf32>
}

// -----

// Long rows are stored without their padding, short ones with it, unless they are computed from
// sums, which no padding has.
// CHECK-LABEL: func.func private @long_rows
// CHECK-SAME:    #weft.schedule<loop_nest {{.*}}interiors = array<i64: 0>
// CHECK-LABEL: func.func private @short_rows
// CHECK-SAME:    #weft.schedule<loop_nest {{.*}}interiors = array<i64>
// CHECK-LABEL: func.func private @sums
// CHECK-SAME:    #weft.schedule<loop_nest {{.*}}interiors = array<i64: 0>
#of = affine_map<(i, j) -> (i, j)>
#row_of = affine_map<(i, j) -> (i)>
func.func private @long_rows(%x: tensor<7x130xf32>) -> tensor<7x132xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<7x130xf32> to tensor<7x132xf32>
  return %padded : tensor<7x132xf32>
}
func.func private @short_rows(%x: tensor<7x30xf32>) -> tensor<7x32xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<7x30xf32> to tensor<7x32xf32>
  return %padded : tensor<7x32xf32>
}
func.func private @sums(%x: tensor<64x8xf32>) -> tensor<66xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#of, #row_of], iterator_types = ["parallel", "reduction"]}
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

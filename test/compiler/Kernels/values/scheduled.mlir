// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 | FileCheck %s

// A schedule that is complete runs as it is: vectors of four lanes, the last of which has one.
// CHECK: kept: loop_nest
// CHECK: kept: result 0: 37 elements of f32
#id = affine_map<(i) -> (i)>
func.func private @kept(%x: tensor<37xf32>) -> tensor<37xf32>
    attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {
      block = 37 : i64, cached_operands = array<i64>, cell = array<i64>, claim = 1 : i64,
      grid = array<i64>, groups = 2 : i64, interiors = array<i64>, lane = 0 : i64,
      lanes = 4 : i64, load = -1 : i64,
      loops = array<i64: 37>, reduced_lanes = array<i64>, rows = array<i64>, scans = "none",
      targets = array<i64: 0>, transpose = "none", unroll = 16 : i64}>} {
  %empty = tensor.empty() : tensor<37xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<37xf32>) outs(%empty : tensor<37xf32>) {
  ^bb0(%in: f32, %out: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %twice : f32
  } -> tensor<37xf32>
  return %y : tensor<37xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s

// Feature-major tokens: the weight is broadcast where it lies, tokens are the lanes. Long
// sums go in blocks: before each segment an eighth of them goes to totals in scratch, which have
// nothing yet in the first round.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    memref<2x768x64xf32>, %{{.*}}: memref<768x768xf32>, %{{.*}}: memref<768xf32>, %{{.*}}: memref<2x768x64xf32>, %{{.*}}: memref<0xi8>, %{{.*}}: index, %{{.*}}: index
// CHECK-SAME:    weft.flops = 150994944 : i64
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 768 : i64, {{.*}}copied_steps = 0 : i64, groups = 4 : i64, lanes = 16 : i64,
// CHECK-SAME:      rows = 6 : i64, segment = 16 : i64, {{.*}}steps_ahead = 0 : i64, strided_prefetch = 0 : i64, strip = 0 : i64, {{.*}}strip_steps = 0 : i64, tile_epilogue = 0 : i64, turns = 8 : i64
// CHECK-NOT:     weft.serial
// CHECK:         scf.for {{.*}} iter_args(%[[NUMBER:[a-z0-9]+]] = %c0{{[_0-9]*}}, %[[FIRST:[a-z0-9]+]] = %cst, %[[SECOND:[a-z0-9]+]] = %cst, %[[THIRD:[a-z0-9]+]] = %cst, %[[FOURTH:[a-z0-9]+]] = %cst, {{.*}} -> (index, vector<16xf32>
// CHECK:           %[[TURN:.*]] = arith.remui %[[NUMBER]], %c8
// CHECK:           arith.cmpi ult, %[[TURN]], %c4
// CHECK:           arith.cmpi ult, %[[TURN]], %c2
// CHECK:           arith.cmpi ult, %[[TURN]], %c1
// CHECK:           arith.cmpi ult, %[[NUMBER]], %c8
// CHECK-NOT:       vector.load
// CHECK-COUNT-3:   vector.store
// CHECK:           } else {
// CHECK-COUNT-3:   vector.load
// CHECK:           %[[ZERO:.*]] = arith.constant dense<0.0
// CHECK-NEXT:      scf.yield %[[ZERO]], %[[ZERO]], %[[ZERO]], %[[FOURTH]],
// CHECK-COUNT-42:  vector.store
// CHECK-NOT:       vector.store
// CHECK:           memref.prefetch
// CHECK-COUNT-96:  vector.fma
// CHECK-NOT:       vector.fma
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
#id = affine_map<(t, n, i) -> (t, n, i)>
#bias = affine_map<(t, n, i) -> (n)>
func.func private @linear(%x: tensor<2x768x64xf32>, %w: tensor<768x768xf32>, %b: tensor<768xf32>)
    -> tensor<2x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x768x64xf32>) -> tensor<2x768x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x768x64xf32>, tensor<768x768xf32>) outs(%init : tensor<2x768x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x768x64xf32>
  %out = linalg.generic {indexing_maps = [#id, #bias, #id],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%dot, %b : tensor<2x768x64xf32>, tensor<768xf32>) outs(%empty : tensor<2x768x64xf32>) {
  ^bb0(%a: f32, %c: f32, %unused: f32):
    %sum = arith.addf %a, %c : f32
    linalg.yield %sum : f32
  } -> tensor<2x768x64xf32>
  return %out : tensor<2x768x64xf32>
}

// -----

// One token: both operands are contiguous along the reduction, so vectors run there and
// every column keeps its own sum. Eight vectors of sums are folded in pairs to one.
// CHECK-LABEL: func.func private @gemv
// CHECK-SAME:    weft.schedule = #weft.schedule<row_dot{{.*}} {chains = 3 : i64, chunk = 1024 : i64, {{.*}}columns = 8 : i64, lanes = 16 : i64, paired = 0 : i64, {{.*}}rows = 1 : i64, steps_ahead = 0 : i64}
// CHECK-COUNT-8: vector.fma
// CHECK-NOT:     vector.reduction
// CHECK:         vector.shuffle %[[SUMS:.*]], %[[SUMS]] [0, 4, 8, 12, 1, 5, 9, 13]
// CHECK:         vector.store {{.*}} vector<8xf32>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @gemv(%x: tensor<1x1024xf32>, %w: tensor<64x1024xf32>) -> tensor<1x64xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64xf32>) -> tensor<1x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x1024xf32>, tensor<64x1024xf32>) outs(%init : tensor<1x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<1x64xf32>
  return %dot : tensor<1x64xf32>
}

// -----

// Depthwise: channels are the lanes of both operands, tile rows are pixels, and the loop
// over a row of the window is unrolled.
// CHECK-LABEL: func.func private @depthwise
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 3 : i64, {{.*}}copied_steps = 0 : i64, groups = 2 : i64, lanes = 16 : i64,
// CHECK-SAME:      rows = 7 : i64, {{.*}} unroll = 3 : i64
// CHECK-NOT:     vector.broadcast
// CHECK-COUNT-42: vector.fma
// CHECK-NOT:     vector.fma
#x = affine_map<(h, w, c, i, j) -> (h + i, w + j, c)>
#w = affine_map<(h, w, c, i, j) -> (i, j, c)>
#y = affine_map<(h, w, c, i, j) -> (h, w, c)>
func.func private @depthwise(%x: tensor<16x16x64xf32>, %w: tensor<3x3x64xf32>)
    -> tensor<14x14x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<14x14x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<14x14x64xf32>) -> tensor<14x14x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<16x16x64xf32>, tensor<3x3x64xf32>) outs(%init : tensor<14x14x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<14x14x64xf32>
  return %sum : tensor<14x14x64xf32>
}

// -----

// Pixels of an image with a border: tiles of 14 divide rows of 28, and what is divided is the number
// of the tile, not each pixel's.
// CHECK:         affine_map<(d0, d1) -> ((d1 floordiv 2) * 960 + (d1 mod 2) * 448 + d0 + 992)>
// CHECK-NOT:     {{floordiv|mod}} 28
// CHECK-LABEL: func.func private @bordered
// CHECK-SAME:    rows = 14 : i64
// CHECK:         arith.divui %{{.*}}, %c14
#x = affine_map<(h, w, c, k) -> (h, w, k)>
#w = affine_map<(h, w, c, k) -> (k, c)>
#y = affine_map<(h, w, c, k) -> (h, w, c)>
func.func private @bordered(%x: tensor<28x28x32xf32>, %w: tensor<32x32xf32>)
    -> tensor<30x30x32xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<28x28x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<28x28x32xf32>) -> tensor<28x28x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<28x28x32xf32>, tensor<32x32xf32>) outs(%init : tensor<28x28x32xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<28x28x32xf32>
  %padded = tensor.pad %dot low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<28x28x32xf32> to tensor<30x30x32xf32>
  return %padded : tensor<30x30x32xf32>
}

// -----

// Groups of four channels: one load holds the inputs of four groups, each spread over its
// own lanes. Nothing behind the last group is read.
// CHECK-LABEL: func.func private @narrow_groups
// CHECK:         arith.constant dense<[true, true, true, true, true, true, true, true, true, true, true, true, true, false, false, false]>
// CHECK:         %[[X:.*]] = vector.maskedload
// CHECK-NEXT:    %[[S:.*]] = vector.shuffle %[[X]], %[[X]] [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12]
// CHECK-NEXT:    vector.fma %[[S]],
#x = affine_map<(p, g, o, k) -> (p, g, k)>
#w = affine_map<(p, g, o, k) -> (k, g, o)>
#y = affine_map<(p, g, o, k) -> (p, g, o)>
func.func private @narrow_groups(%x: tensor<12x8x4xf32>, %w: tensor<4x8x4xf32>) -> tensor<12x8x4xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12x8x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x8x4xf32>) -> tensor<12x8x4xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<12x8x4xf32>, tensor<4x8x4xf32>) outs(%init : tensor<12x8x4xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<12x8x4xf32>
  return %dot : tensor<12x8x4xf32>
}

// -----

// Half precision is widened on the way into registers and rounded once, at the store: the
// bias sees the sums.
// CHECK-LABEL: func.func private @half
// CHECK:         vector.load {{.*}} : memref<2048xf16>, vector<16xf16>
// CHECK:         arith.extf {{.*}} : vector<16xf16> to vector<16xf32>
// CHECK:         vector.broadcast {{.*}} : f16 to vector<16xf16>
// CHECK:         vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT:     arith.truncf
// CHECK:         %[[SUM:.*]] = arith.addf {{.*}} : vector<16xf32>
// CHECK:         arith.truncf %[[SUM]] : vector<16xf32> to vector<16xf16>
#x = affine_map<(m, n, k) -> (k, n)>
#w = affine_map<(m, n, k) -> (m, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (m)>
func.func private @half(%x: tensor<64x32xf16>, %w: tensor<6x64xf16>, %b: tensor<6xf16>)
    -> tensor<6x32xf16> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<6x32xf32>
  %empty = tensor.empty() : tensor<6x32xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<6x32xf32>) -> tensor<6x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x32xf16>, tensor<6x64xf16>) outs(%init : tensor<6x32xf32>) {
  ^bb0(%a: f16, %c: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %c : f16 to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<6x32xf32>
  %rounded = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dot : tensor<6x32xf32>) outs(%empty : tensor<6x32xf16>) {
  ^bb0(%a: f32, %unused: f16):
    %narrow = arith.truncf %a : f32 to f16
    linalg.yield %narrow : f16
  } -> tensor<6x32xf16>
  %out = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rounded, %b : tensor<6x32xf16>, tensor<6xf16>) outs(%empty : tensor<6x32xf16>) {
  ^bb0(%a: f16, %c: f16, %unused: f16):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %c : f16 to f32
    %sum = arith.addf %left, %right : f32
    %narrow = arith.truncf %sum : f32 to f16
    linalg.yield %narrow : f16
  } -> tensor<6x32xf16>
  return %out : tensor<6x32xf16>
}

// -----

// Integers have no register tile: the nest takes them.
// CHECK-LABEL: func.func private @integers
// CHECK-SAME:    weft.schedule = #weft.schedule<loop_nest{{.*}} lanes = 8 : i64
// CHECK-NOT:     vector.fma
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @integers(%x: tensor<4x32xi64>, %w: tensor<8x32xi64>) -> tensor<4x8xi64>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0 : i64
  %empty = tensor.empty() : tensor<4x8xi64>
  %init = linalg.fill ins(%zero : i64) outs(%empty : tensor<4x8xi64>) -> tensor<4x8xi64>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x32xi64>, tensor<8x32xi64>) outs(%init : tensor<4x8xi64>) {
  ^bb0(%a: i64, %c: i64, %sum: i64):
    %product = arith.muli %a, %c : i64
    %next = arith.addi %sum, %product : i64
    linalg.yield %next : i64
  } -> tensor<4x8xi64>
  return %dot : tensor<4x8xi64>
}

// -----

// Nine tokens of long rows: a block of five columns stays in the first-level cache for a chunk
// of the sum while the tokens go by, and the sums of the chunks so far wait in scratch. The next
// five are on their way.
// CHECK-LABEL: func.func private @chunks
// CHECK-SAME:    columns = 5 : i64, lanes = 16 : i64, paired = 0 : i64, {{.*}}rows = 5 : i64
// CHECK:         memref.prefetch %{{.*}} read, locality<3>
// CHECK:         vector.store %{{.*}} : memref<45xf32>, vector<5xf32>
// CHECK:         %[[BEFORE:.*]] = vector.load %{{.*}} : memref<45xf32>, vector<5xf32>
// CHECK:         arith.addf %[[BEFORE]]
// CHECK:         vector.store %{{.*}} : memref<540xf32>, vector<5xf32>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @chunks(%x: tensor<9x65536xf32>, %w: tensor<60x65536xf32>) -> tensor<9x60xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<9x60xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<9x60xf32>) -> tensor<9x60xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<9x65536xf32>, tensor<60x65536xf32>) outs(%init : tensor<9x60xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<9x60xf32>
  return %dot : tensor<9x60xf32>
}

// -----

// One column, of 16 that are computed, reshaped so that no lane moves in the result: the first is
// what is stored.
// CHECK-LABEL: func.func private @one_column
// CHECK-NOT:     vector.store
// CHECK:         %[[FIRST:.*]] = vector.extract %{{.*}}[0] : f32 from vector<16xf32>
// CHECK:         memref.store %[[FIRST]], %{{.*}} : memref<1156xf32>
// CHECK-NOT:     vector.store
#rows = affine_map<(m, t, i, k) -> (m, k)>
#weight = affine_map<(m, t, i, k) -> (t, k, i)>
#result = affine_map<(m, t, i, k) -> (m, t, i)>
func.func private @one_column(%x: tensor<1156x3xf32>, %w: tensor<1x3x16xf32>)
    -> tensor<17x4x17x1xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1156x1x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1156x1x16xf32>) -> tensor<1156x1x16xf32>
  %y = linalg.generic {indexing_maps = [#rows, #weight, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1156x3xf32>, tensor<1x3x16xf32>)
      outs(%init : tensor<1156x1x16xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<1156x1x16xf32>
  %flat = tensor.collapse_shape %y [[0], [1, 2]] : tensor<1156x1x16xf32> into tensor<1156x16xf32>
  %one = tensor.extract_slice %flat[0, 0] [1156, 1] [1, 1]
      : tensor<1156x16xf32> to tensor<1156x1xf32>
  %r = tensor.expand_shape %one [[0, 1, 2], [3]] output_shape [17, 4, 17, 1]
      : tensor<1156x1xf32> into tensor<17x4x17x1xf32>
  return %r : tensor<17x4x17x1xf32>
}

// -----

// Of two tiles of columns all are computed, a hundred are kept: in the flattened result the others
// would lie in the next row.
// CHECK-LABEL: func.func private @flattened
// CHECK:         %[[HUNDRED:.*]] = arith.constant 100 : index
// CHECK:         %[[LIMIT:.*]] = vector.broadcast %[[HUNDRED]] : index to vector<16xindex>
// CHECK:         %[[KEPT:.*]] = arith.cmpi slt, %{{.*}}, %[[LIMIT]] : vector<16xindex>
// CHECK:         %[[MASK:.*]] = arith.andi %{{.*}}, %[[KEPT]] : vector<16xi1>
// CHECK:         vector.maskedstore %{{.*}}, %[[MASK]], %{{.*}} : memref<33600xf32>
// CHECK-NOT:     vector.store %{{.*}} : memref<33600xf32>
#rows = affine_map<(m, t, i, k) -> (m, k)>
#weight = affine_map<(m, t, i, k) -> (t, k, i)>
#result = affine_map<(m, t, i, k) -> (m, t, i)>
func.func private @flattened(%x: tensor<336x17xf32>, %w: tensor<2x17x64xf32>)
    -> tensor<33600xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<336x2x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<336x2x64xf32>) -> tensor<336x2x64xf32>
  %y = linalg.generic {indexing_maps = [#rows, #weight, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<336x17xf32>, tensor<2x17x64xf32>)
      outs(%init : tensor<336x2x64xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<336x2x64xf32>
  %tiles = tensor.collapse_shape %y [[0], [1, 2]] : tensor<336x2x64xf32> into tensor<336x128xf32>
  %columns = tensor.extract_slice %tiles[0, 0] [336, 100] [1, 1]
      : tensor<336x128xf32> to tensor<336x100xf32>
  %flat = tensor.collapse_shape %columns [[0, 1]] : tensor<336x100xf32> into tensor<33600xf32>
  return %flat : tensor<33600xf32>
}

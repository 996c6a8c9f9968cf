// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels=isa=avx2 -weft-emit-kernels=isa=avx2 | FileCheck %s

// A result may take the place of what is read element by element for it, not of a row that all
// of its rows read.
// CHECK-LABEL: func.func private @elementwise
// CHECK-SAME:    %{{.*}}: memref<5x130xf32>, %{{.*}}: memref<5x130xf32>, %{{.*}}: memref<130xf32>,
// CHECK-SAME:    %{{.*}}: memref<5x130xf32> {weft.in_place = array<i64: 0, 1>}
#row = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>
func.func private @elementwise(%x: tensor<5x130xf32>, %y: tensor<5x130xf32>, %b: tensor<130xf32>)
    -> tensor<5x130xf32> attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<5x130xf32>
  %out = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y, %b : tensor<5x130xf32>, tensor<5x130xf32>, tensor<130xf32>) outs(%empty : tensor<5x130xf32>) {
  ^bb0(%a: f32, %b0: f32, %c: f32, %unused: f32):
    %0 = arith.addf %a, %b0 : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<5x130xf32>
  return %out : tensor<5x130xf32>
}

// -----

// What is read at other places as well keeps its memory.
// CHECK-LABEL: func.func private @transposed
// CHECK-NOT:     weft.in_place
// CHECK:         return
#id = affine_map<(i, j) -> (i, j)>
#other = affine_map<(i, j) -> (j, i)>
func.func private @transposed(%x: tensor<9x9xf32>) -> tensor<9x9xf32> attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<9x9xf32>
  %out = linalg.generic {indexing_maps = [#id, #other, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %x : tensor<9x9xf32>, tensor<9x9xf32>) outs(%empty : tensor<9x9xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<9x9xf32>
  return %out : tensor<9x9xf32>
}

// -----

// A row is summed before any of it is stored.
// CHECK-LABEL: func.func private @centred
// CHECK-SAME:    %{{.*}}: memref<5x130xf32>, %{{.*}}: memref<5x130xf32> {weft.in_place = array<i64: 0>}
#first = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func private @centred(%x: tensor<5x130xf32>) -> tensor<5x130xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%line : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x130xf32>) outs(%init : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5xf32>
  %empty = tensor.empty() : tensor<5x130xf32>
  %out = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<5x130xf32>, tensor<5xf32>) outs(%empty : tensor<5x130xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x130xf32>
  return %out : tensor<5x130xf32>
}

// -----

// The sum of another row is needed when this one has been stored.
// CHECK-LABEL: func.func private @by_other_rows
// CHECK-NOT:     weft.in_place
// CHECK:         return
#first = affine_map<(i, j) -> (i)>
#second = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>
func.func private @by_other_rows(%x: tensor<9x9xf32>) -> tensor<9x9xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<9xf32>
  %init = linalg.fill ins(%zero : f32) outs(%line : tensor<9xf32>) -> tensor<9xf32>
  %sum = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<9x9xf32>) outs(%init : tensor<9xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<9xf32>
  %empty = tensor.empty() : tensor<9x9xf32>
  %out = linalg.generic {indexing_maps = [#id, #second, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<9x9xf32>, tensor<9xf32>) outs(%empty : tensor<9x9xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<9x9xf32>
  return %out : tensor<9x9xf32>
}

// -----

// Zeros around a part of the result are stored beside the loops that reduce.
// CHECK-LABEL: func.func private @padded
// CHECK-NOT:     weft.in_place
// CHECK:         return
#id = affine_map<(i, j) -> (i, j)>
#second = affine_map<(i, j) -> (j)>
func.func private @padded(%x: tensor<9x40xf32>) -> tensor<9x40xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<40xf32>
  %init = linalg.fill ins(%zero : f32) outs(%line : tensor<40xf32>) -> tensor<40xf32>
  %sum = linalg.generic {indexing_maps = [#id, #second], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<9x40xf32>) outs(%init : tensor<40xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<40xf32>
  %part = tensor.extract_slice %x[0, 0] [7, 40] [1, 1] : tensor<9x40xf32> to tensor<7x40xf32>
  %empty = tensor.empty() : tensor<7x40xf32>
  %out = linalg.generic {indexing_maps = [#id, #second, #id], iterator_types = ["parallel", "parallel"]}
      ins(%part, %sum : tensor<7x40xf32>, tensor<40xf32>) outs(%empty : tensor<7x40xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<7x40xf32>
  %padded = tensor.pad %out low[0, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<7x40xf32> to tensor<9x40xf32>
  return %padded : tensor<9x40xf32>
}

// -----

// So is that of all rows, beside a row's own.
// CHECK-LABEL: func.func private @by_row_and_all
// CHECK-NOT:     weft.in_place
// CHECK:         return
#id = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>
func.func private @by_row_and_all(%x: tensor<5x130xf32>) -> tensor<5x130xf32> attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%line : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x130xf32>) outs(%init : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5xf32>
  %scalar = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  %all = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<5x130xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  %empty = tensor.empty() : tensor<5x130xf32>
  %out = linalg.generic {indexing_maps = [#id, #first, #none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %all : tensor<5x130xf32>, tensor<5xf32>, tensor<f32>) outs(%empty : tensor<5x130xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32, %unused: f32):
    %c = arith.subf %a, %b : f32
    %e = arith.subf %c, %d : f32
    linalg.yield %e : f32
  } -> tensor<5x130xf32>
  return %out : tensor<5x130xf32>
}

// -----

// What two results stand on keeps its memory, though each reads it at its own place alone.
// CHECK-LABEL: func.func private @two_results
// CHECK-SAME:    %{{.*}}: memref<64xf32>, %{{.*}}: memref<64xf32>, %{{.*}}: memref<64xf32>,
// CHECK-SAME:    %{{.*}}: memref<64xf32> {weft.in_place = array<i64: 1>}, %{{.*}}: memref<0xi8>
#id = affine_map<(i) -> (i)>
func.func private @two_results(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%a: f32, %unused: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%0, %y : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Where an index that is read from memory leads is unknown.
// CHECK-LABEL: func.func private @lookup
// CHECK-NOT:     weft.in_place
// CHECK:         return
#id = affine_map<(i) -> (i)>
func.func private @lookup(%x: tensor<64xi64>) -> tensor<64xi64> attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<64xi64>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi64>) outs(%empty : tensor<64xi64>) {
  ^bb0(%a: i64, %unused: i64):
    %i = arith.index_cast %a : i64 to index
    %c = tensor.extract %x[%i] : tensor<64xi64>
    linalg.yield %c : i64
  } -> tensor<64xi64>
  return %0 : tensor<64xi64>
}

// -----

// A residual: the sum of a tile is added to it where it lies.
// CHECK-LABEL: func.func private @residual
// CHECK-SAME:    %{{.*}}: memref<96x64xf32>, %{{.*}}: memref<64x64xf32>, %{{.*}}: memref<96x64xf32>,
// CHECK-SAME:    %{{.*}}: memref<96x64xf32> {weft.in_place = array<i64: 2>}
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
func.func private @residual(%x: tensor<96x64xf32>, %w: tensor<64x64xf32>, %r: tensor<96x64xf32>)
    -> tensor<96x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<96x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<96x64xf32>) -> tensor<96x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<96x64xf32>, tensor<64x64xf32>) outs(%init : tensor<96x64xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<96x64xf32>
  %out = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dot, %r : tensor<96x64xf32>, tensor<96x64xf32>) outs(%empty : tensor<96x64xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> tensor<96x64xf32>
  return %out : tensor<96x64xf32>
}

// -----

// Partial sums of its chunks would wait where the residual lies.
// CHECK-LABEL: func.func private @chunks
// CHECK-SAME:    chunk = 800 : i64
// CHECK-NOT:     weft.in_place
// CHECK:         return
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
func.func private @chunks(%x: tensor<96x4000xf32>, %w: tensor<4000x64xf32>, %r: tensor<96x64xf32>)
    -> tensor<96x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<96x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<96x64xf32>) -> tensor<96x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<96x4000xf32>, tensor<4000x64xf32>) outs(%init : tensor<96x64xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<96x64xf32>
  %out = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dot, %r : tensor<96x64xf32>, tensor<96x64xf32>) outs(%empty : tensor<96x64xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> tensor<96x64xf32>
  return %out : tensor<96x64xf32>
}

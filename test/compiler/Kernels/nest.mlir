// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

// Rows in memory order: the maximum in vectors along the row, folded to a scalar, then the
// row is stored; the last two elements are masked.
// CHECK-LABEL: func.func private @subtract_max
// CHECK-SAME:    weft.serial
// CHECK:         scf.for
// CHECK:           vector.maskedload
// CHECK:           arith.maximumf
// CHECK:           vector.reduction <maximumf>
// CHECK:           scf.for
// CHECK:             vector.load
// CHECK:             arith.subf
// CHECK:             vector.store
// CHECK:           vector.maskedstore
#row = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func private @subtract_max(%x: tensor<5x130xf32>) -> tensor<5x130xf32>
    attributes {weft.kernel = "nest"} {
  %lowest = arith.constant 0xFF800000 : f32
  %line = tensor.empty() : tensor<5xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%line : tensor<5xf32>) -> tensor<5xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x130xf32>) outs(%init : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5xf32>
  %empty = tensor.empty() : tensor<5x130xf32>
  %out = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<5x130xf32>, tensor<5xf32>) outs(%empty : tensor<5x130xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x130xf32>
  return %out : tensor<5x130xf32>
}

// -----

// The lanes follow the memory: columns are summed by vertical vectors, without a fold.
// CHECK-LABEL: func.func private @column_sums
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-NOT:     vector.reduction
func.func private @column_sums(%x: tensor<100x64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%line : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<100x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

// -----

// A transposed copy goes through squares of vectors: no element is loaded or stored alone.
// CHECK-LABEL: func.func private @transpose
// CHECK-COUNT-16: vector.load
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store
// CHECK-NOT:     memref.load
func.func private @transpose(%x: tensor<64x96xf32>) -> tensor<96x64xf32>
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<96x64xf32>
  %out = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x96xf32>) outs(%empty : tensor<96x64xf32>) {
  ^bb0(%a: f32, %unused: f32):
    linalg.yield %a : f32
  } -> tensor<96x64xf32>
  return %out : tensor<96x64xf32>
}

// -----

// A running sum fills a line of scratch in order; the epilogue reads it back as vectors.
#id = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: func.func private @running_sum
// CHECK-SAME:    weft.scratch_bytes = 512 : i64
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (i64)
// CHECK:           arith.addi
// CHECK:           memref.store
// CHECK:         vector.load
func.func private @running_sum(%x: tensor<3x64xi64>) -> tensor<3x64xi64>
    attributes {weft.kernel = "nest"} {
  %sum = weft.cumulative <sum> %x dim 1 : tensor<3x64xi64>
  %empty = tensor.empty() : tensor<3x64xi64>
  %out = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<3x64xi64>) outs(%empty : tensor<3x64xi64>) {
  ^bb0(%a: i64, %unused: i64):
    %one = arith.constant 1 : i64
    %c = arith.subi %a, %one : i64
    linalg.yield %c : i64
  } -> tensor<3x64xi64>
  return %out : tensor<3x64xi64>
}

// -----

// What is padded goes between borders that are stored apart, where rows are long.
// CHECK-LABEL: func.func private @padded
// CHECK:         vector.maskedstore %{{.*}} : memref<138xf32>
// CHECK-DAG:     %[[ONE:.*]] = vector.broadcast %{{.*}} : f32 to vector<1xf32>
// CHECK-DAG:     vector.store %[[ONE]], %{{.*}} : memref<138xf32>, vector<1xf32>
// CHECK-DAG:     vector.store %{{.*}} : memref<138xf32>, vector<3xf32>
func.func private @padded(%x: tensor<134xf32>) -> tensor<138xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %out = tensor.pad %x low[1] high[3] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<134xf32> to tensor<138xf32>
  return %out : tensor<138xf32>
}

// -----

// Short rows are loaded with their ends, under masks, and stored at once.
// CHECK-LABEL: func.func private @padded_short_rows
// CHECK:         vector.maskedload %{{.*}} : memref<210xf32>, vector<16xi1>, vector<16xf32>
// CHECK:         vector.store %{{.*}} : memref<224xf32>, vector<16xf32>
// CHECK-NOT:     vector<1xf32>
// CHECK:         return
func.func private @padded_short_rows(%x: tensor<7x30xf32>) -> tensor<7x32xf32>
    attributes {weft.kernel = "nest"} {
  %one = arith.constant 1.0 : f32
  %out = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<7x30xf32> to tensor<7x32xf32>
  return %out : tensor<7x32xf32>
}

// -----

// Vectors of bytes are whole registers where nothing is widened.
// CHECK-LABEL: func.func private @bytes
// CHECK:         arith.addi %{{.*}} : vector<64xi8>
func.func private @bytes(%x: tensor<512xi8>, %y: tensor<512xi8>) -> tensor<512xi8>
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<512xi8>
  %out = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<512xi8>, tensor<512xi8>) outs(%empty : tensor<512xi8>) {
  ^bb0(%a: i8, %b: i8, %unused: i8):
    %c = arith.addi %a, %b : i8
    linalg.yield %c : i8
  } -> tensor<512xi8>
  return %out : tensor<512xi8>
}

// -----

// A concatenation is stored part by part; nothing is asked of an element, and nothing chosen.
// CHECK-LABEL: func.func private @concat
// CHECK:         scf.for
// CHECK:         vector.maskedload %{{.*}} : memref<6xf32>
// CHECK:         vector.maskedstore %{{.*}} : memref<210xf32>
// CHECK:         scf.for
// CHECK-NOT:     arith.select
// CHECK:         vector.load %{{.*}} : memref<204xf32>
// CHECK-NOT:     arith.select
// CHECK:         vector.store %{{.*}} : memref<210xf32>
func.func private @concat(%x: tensor<3x2xf32>, %y: tensor<3x68xf32>) -> tensor<3x70xf32>
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<3x70xf32>
  %first = tensor.insert_slice %x into %empty[0, 0] [3, 2] [1, 1]
      : tensor<3x2xf32> into tensor<3x70xf32>
  %both = tensor.insert_slice %y into %first[0, 2] [3, 68] [1, 1]
      : tensor<3x68xf32> into tensor<3x70xf32>
  return %both : tensor<3x70xf32>
}

// -----

// What lies around the slice is not empty, or what was concatenated is computed with: a line has
// a loop for each part, and none chooses.
// CHECK-LABEL: func.func private @update
// CHECK-NOT:     arith.select {{.*}} vector
// CHECK:         vector.load %{{.*}} : memref<210xf32>
// CHECK-NOT:     arith.select {{.*}} vector
// CHECK:         vector.maskedload %{{.*}} : memref<6xf32>
// CHECK-NOT:     arith.select {{.*}} vector
// CHECK:         return
func.func private @update(%x: tensor<3x2xf32>, %all: tensor<3x70xf32>) -> tensor<3x70xf32>
    attributes {weft.kernel = "nest"} {
  %both = tensor.insert_slice %x into %all[0, 68] [3, 2] [1, 1]
      : tensor<3x2xf32> into tensor<3x70xf32>
  return %both : tensor<3x70xf32>
}

// -----

// A result whose dim goes through rows one after the other has loops over rows: each is reduced
// once, 4 x 32 sums and 4 x 32 quotients, not again for each of its elements.
// CHECK-LABEL: func.func private @flattened_rows
// CHECK-SAME:    weft.flops = 256
func.func private @flattened_rows(%x: tensor<4x32xf32>) -> tensor<128xf32>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%line : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x32xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4x32xf32>
  %div = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x32xf32>, tensor<4xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<4x32xf32>
  %out = tensor.collapse_shape %div [[0, 1]] : tensor<4x32xf32> into tensor<128xf32>
  return %out : tensor<128xf32>
}

// -----

// Truth is stored in bytes, and combined in vectors of them.
// CHECK-LABEL: func.func private @all_positive
// CHECK:         arith.andi %{{.*}} : vector<16xi1>
// CHECK:         vector.reduction <and>, %{{.*}} : vector<16xi8> into i8
func.func private @all_positive(%x: tensor<1000xf32>) -> tensor<i8>
    attributes {weft.kernel = "nest"} {
  %true = arith.constant 1 : i8
  %line = tensor.empty() : tensor<i8>
  %init = linalg.fill ins(%true : i8) outs(%line : tensor<i8>) -> tensor<i8>
  %all = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
      iterator_types = ["reduction"]}
      ins(%x : tensor<1000xf32>) outs(%init : tensor<i8>) {
  ^bb0(%a: f32, %b: i8):
    %zero = arith.constant 0.0 : f32
    %no = arith.constant 0 : i8
    %c = arith.cmpf ogt, %a, %zero : f32
    %so_far = arith.cmpi ne, %b, %no : i8
    %d = arith.andi %so_far, %c : i1
    %e = arith.extui %d : i1 to i8
    linalg.yield %e : i8
  } -> tensor<i8>
  return %all : tensor<i8>
}

// -----

#all = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>

// Where a step of an unrolled reduction falls is known: each reads one of the parts, 64 lanes four
// times in all, and nothing is chosen.
// CHECK-LABEL: func.func private @sum_of_parts
// CHECK-COUNT-16: vector.shuffle
// CHECK-NOT:       memref.load
// CHECK-NOT:       arith.select %{{.*}} : vector
func.func private @sum_of_parts(%a: tensor<64x2xf32>, %b: tensor<64x2xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64x4xf32>
  %first = tensor.insert_slice %a into %e[0, 0] [64, 2] [1, 1] : tensor<64x2xf32> into tensor<64x4xf32>
  %both = tensor.insert_slice %b into %first[0, 2] [64, 2] [1, 1] : tensor<64x2xf32> into tensor<64x4xf32>
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%o : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%both : tensor<64x4xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %acc, %x : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

// -----

// Lanes that read backwards, by strides or in runs read pieces of memory that are shuffled: as much
// as lies between the first element and the last, and nothing beyond.
// CHECK-LABEL: func.func private @backwards
// CHECK:       %[[PIECE:.*]] = vector.load %{{.*}} : memref<64xf32>, vector<16xf32>
// CHECK:       vector.shuffle %[[PIECE]], %[[PIECE]] [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
// CHECK-NOT:   memref.load
func.func private @backwards(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (63 - i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// CHECK-LABEL: func.func private @runs
// CHECK:       %[[PIECE:.*]] = vector.load %{{.*}} : memref<96xf32>, vector<8xf32>
// CHECK:       vector.shuffle %[[PIECE]], %[[PIECE]] [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
// CHECK-NOT:   memref.load
func.func private @runs(%x: tensor<3x32xf32>) -> tensor<3x64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<3x32x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<3x32xf32>) outs(%e : tensor<3x32x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<3x32x2xf32>
  %z = tensor.collapse_shape %y [[0], [1, 2]] : tensor<3x32x2xf32> into tensor<3x64xf32>
  return %z : tensor<3x64xf32>
}

// -----

#all = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>

// Exponentials are kept in scratch while they are summed up, and read from there.
// CHECK-LABEL: func.func private @softmax
// CHECK-SAME:    weft.scratch_bytes = 320 : i64
// CHECK-COUNT-5: dense<1.4426950408889634> : vector<8xf64>
// CHECK-NOT:     dense<1.4426950408889634>
// CHECK:         vector.reduction <add>
// CHECK:         vector.load %{{.*}} : memref<40xf64>
// CHECK-NOT:     dense<1.4426950408889634>
func.func private @softmax(%x: tensor<64x40xf64>) -> tensor<64x40xf64>
    attributes {weft.kernel = "nest"} {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<64x40xf64>
  %powers = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x40xf64>) outs(%e : tensor<64x40xf64>) {
  ^bb0(%a: f64, %out: f64):
    %p = math.exp %a : f64
    linalg.yield %p : f64
  } -> tensor<64x40xf64>
  %line = tensor.empty() : tensor<64xf64>
  %init = linalg.fill ins(%zero : f64) outs(%line : tensor<64xf64>) -> tensor<64xf64>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%powers : tensor<64x40xf64>) outs(%init : tensor<64xf64>) {
  ^bb0(%a: f64, %acc: f64):
    %s = arith.addf %acc, %a : f64
    linalg.yield %s : f64
  } -> tensor<64xf64>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%powers, %sum : tensor<64x40xf64>, tensor<64xf64>) outs(%e : tensor<64x40xf64>) {
  ^bb0(%a: f64, %s: f64, %out: f64):
    %q = arith.divf %a, %s : f64
    linalg.yield %q : f64
  } -> tensor<64x40xf64>
  return %y : tensor<64x40xf64>
}

// -----

// The columns are scanned side by side, though the result's only dim runs through all of them.
// CHECK-LABEL: func.func private @scan_flattened
// CHECK-SAME:    memref<16x12xf32>, %{{.*}}: memref<192xf32>
// CHECK:         scf.for %{{.*}} iter_args({{.*}}) -> (vector<16xf64>)
// CHECK:           arith.addf %{{.*}} : vector<16xf64>
// CHECK:           vector.maskedstore %{{.*}} : memref<192xf32>
func.func private @scan_flattened(%x: tensor<16x12xf32>) -> tensor<192xf32>
    attributes {weft.kernel = "nest"} {
  %s = weft.cumulative <sum> %x dim 0 : tensor<16x12xf32>
  %r = tensor.collapse_shape %s [[0, 1]] : tensor<16x12xf32> into tensor<192xf32>
  return %r : tensor<192xf32>
}

// -----

// Each lane has a column; the sums of sixteen are carried from row to row in float64.
// CHECK-LABEL: func.func private @scan_across
// CHECK-SAME:    weft.scratch_bytes = 0 : i64
// CHECK:         scf.for %{{.*}} iter_args({{.*}}) -> (vector<16xf64>, vector<16xf64>, vector<16xf64>, vector<16xf64>)
// CHECK:           %[[ROW:.*]] = vector.load
// CHECK:           %[[WIDE:.*]] = arith.extf %[[ROW]]
// CHECK:           arith.addf %{{.*}}, %[[WIDE]] : vector<16xf64>
// CHECK:           vector.store
func.func private @scan_across(%x: tensor<24x64xf32>) -> tensor<24x64xf32>
    attributes {weft.kernel = "nest"} {
  %s = weft.cumulative <sum> %x dim 0 : tensor<24x64xf32>
  return %s : tensor<24x64xf32>
}

// -----

// Along the rows, which lie in memory: squares of eight are turned, so that each lane has a row.
// CHECK-LABEL: func.func private @scan_in_squares
// CHECK-SAME:    weft.scratch_bytes = 0 : i64
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args({{.*}}) -> (vector<8xi64>)
// CHECK-COUNT-8:   vector.load
// CHECK:           vector.shuffle
// CHECK-COUNT-8:   arith.maxsi
// CHECK:           vector.shuffle
// CHECK-COUNT-8:   vector.store
func.func private @scan_in_squares(%x: tensor<8x64xi64>) -> tensor<8x64xi64>
    attributes {weft.kernel = "nest"} {
  %s = weft.cumulative <max> %x dim 1 : tensor<8x64xi64>
  return %s : tensor<8x64xi64>
}

// -----

// One line alone: of four elements only their whole waits for the four before.
// CHECK-LABEL: func.func private @scan_alone
// CHECK:         scf.for %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (i64)
// CHECK:           %[[TWO:.*]] = arith.addi %[[ONE:.*]], %{{.*}} : i64
// CHECK:           arith.addi %[[SUM]], %[[ONE]] : i64
// CHECK:           arith.addi %[[SUM]], %[[TWO]] : i64
func.func private @scan_alone(%x: tensor<65xi64>) -> tensor<65xi64>
    attributes {weft.kernel = "nest"} {
  %s = weft.cumulative <sum> %x dim 0 : tensor<65xi64>
  return %s : tensor<65xi64>
}

// -----

// Of a tensor and another's transpose only squares of the latter are turned; what is added lies as
// the result does.
// CHECK-LABEL: func.func private @add_of_transpose
// CHECK-COUNT-16: vector.load %[[TURNED:.*]][%{{.*}}] : memref<1536xf32>
// CHECK-COUNT-64: vector.shuffle
// CHECK:          vector.load %{{.*}} : memref<1536xf32>
// CHECK-NOT:      vector.shuffle
// CHECK:          vector.store
#id = affine_map<(i, j) -> (i, j)>
func.func private @add_of_transpose(%x: tensor<48x32xf32>, %y: tensor<32x48xf32>) -> tensor<48x32xf32>
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<48x32xf32>
  %out = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<48x32xf32>, tensor<32x48xf32>) outs(%empty : tensor<48x32xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<48x32xf32>
  return %out : tensor<48x32xf32>
}

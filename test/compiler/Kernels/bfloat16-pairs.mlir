// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s --check-prefix=WIDENED
// REQUIRES: avx512bf16

// Two steps of the tokens are interleaved in scratch; two neighbours of a row of the weight are
// broadcast as 32 bits where they lie.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    (%[[X:[^:]*]]: memref<70x64xbf16>, %[[W:[^:]*]]: memref<12x70xbf16>
// CHECK-SAME:    paired = 1 : i64
// CHECK-SAME:    weft.scratch_bytes = 8960 : i64
// CHECK-DAG:     %[[PAIRS:.*]] = memref.view {{.*}} to memref<4480xbf16>
// CHECK-DAG:     %[[TOKENS:.*]] = memref.reinterpret_cast %[[X]]
// CHECK-DAG:     %[[WEIGHT:.*]] = memref.reinterpret_cast %[[W]]
// CHECK:         %[[FIRST:.*]] = vector.load %[[TOKENS]]{{.*}} : memref<4480xbf16>, vector<16xbf16>
// CHECK:         %[[SECOND:.*]] = vector.load %[[TOKENS]]{{.*}} : memref<4480xbf16>, vector<16xbf16>
// CHECK:         %[[BOTH:.*]] = vector.interleave %[[FIRST]], %[[SECOND]] : vector<16xbf16> -> vector<32xbf16>
// CHECK:         vector.store %[[BOTH]], %[[PAIRS]]
// CHECK:         %[[VECTOR:.*]] = vector.load %[[PAIRS]]{{.*}} : memref<4480xbf16>, vector<32xbf16>
// CHECK:         %[[PAIR:.*]] = vector.load %[[WEIGHT]]{{.*}} : memref<840xbf16>, vector<2xbf16>
// CHECK:         %[[WORD:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK:         %[[SCALAR:.*]] = vector.extract %[[WORD]][0]
// CHECK:         %[[WORDS:.*]] = vector.broadcast %[[SCALAR]] : i32 to vector<16xi32>
// CHECK:         %[[ALL:.*]] = vector.bitcast %[[WORDS]] : vector<16xi32> to vector<32xbf16>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%{{.*}}, %[[ALL]], %[[VECTOR]])
// CHECK-SAME:      (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// CHECK-NOT:     arith.extf
// CHECK-NOT:     vector.fma
// WIDENED-LABEL: func.func private @linear
// WIDENED-SAME:    paired = 0 : i64
// WIDENED:         arith.extf
// WIDENED-NOT:     llvm.x86
#x = affine_map<(m, n, k) -> (k, n)>
#w = affine_map<(m, n, k) -> (m, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @linear(%x: tensor<70x64xbf16>, %w: tensor<12x70xbf16>) -> tensor<12x64xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x64xf32>) -> tensor<12x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<70x64xbf16>, tensor<12x70xbf16>) outs(%init : tensor<12x64xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %left = arith.extf %a : bf16 to f32
    %right = arith.extf %c : bf16 to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<12x64xf32>
  return %dot : tensor<12x64xf32>
}

// -----

// The last of an odd number of steps is paired with zeros on both sides, as what lies behind a
// scalar may be no number; lanes behind the last are zeros too.
// CHECK-LABEL: func.func private @odd
// CHECK:         %[[PAIRS:.*]] = memref.view {{.*}} to memref<3648xbf16>
// CHECK-COUNT-2: vector.maskedload {{.*}} : memref<3525xbf16>
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xbf16>
// CHECK:         %[[LAST:.*]] = vector.load {{.*}} : memref<3525xbf16>, vector<16xbf16>
// CHECK:         %[[BOTH:.*]] = vector.interleave %[[LAST]], %[[ZERO]]
// CHECK:         vector.store %[[BOTH]], %[[PAIRS]]
// CHECK:         dpbf16ps
// CHECK:         %[[SCALAR:.*]] = memref.load {{.*}} : memref<375xbf16>
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[SCALAR]] : bf16 to i16
// CHECK:         %[[WORD:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK:         vector.broadcast %[[WORD]] : i32 to vector<16xi32>
// CHECK:         dpbf16ps
#x = affine_map<(m, n, k) -> (k, n)>
#w = affine_map<(m, n, k) -> (m, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @odd(%x: tensor<75x47xbf16>, %w: tensor<5x75xbf16>) -> tensor<5x47xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x47xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x47xf32>) -> tensor<5x47xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<75x47xbf16>, tensor<5x75xbf16>) outs(%init : tensor<5x47xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %left = arith.extf %a : bf16 to f32
    %right = arith.extf %c : bf16 to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<5x47xf32>
  return %dot : tensor<5x47xf32>
}

// -----

// Beside bf16's own errors those of longer blocks vanish.
// CHECK-LABEL: func.func private @long
// CHECK-SAME:    paired = 1 : i64
// CHECK-SAME:    segment = 32 : i64{{.*}} turns = 8 : i64
#x = affine_map<(t, m, n, k) -> (t, k, n)>
#w = affine_map<(t, m, n, k) -> (m, k)>
#y = affine_map<(t, m, n, k) -> (m, t, n)>
func.func private @long(%x: tensor<8x1024x64xbf16>, %w: tensor<96x1024xbf16>)
    -> tensor<96x8x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<96x8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<96x8x64xf32>) -> tensor<96x8x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x1024x64xbf16>, tensor<96x1024xbf16>)
      outs(%init : tensor<96x8x64xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %left = arith.extf %a : bf16 to f32
    %right = arith.extf %c : bf16 to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<96x8x64xf32>
  return %dot : tensor<96x8x64xf32>
}

// -----

// Too few rows to be worth a copy.
// CHECK-LABEL: func.func private @two_rows
// CHECK-SAME:    paired = 0 : i64
// CHECK-NOT:     llvm.x86
#x = affine_map<(m, n, k) -> (k, n)>
#w = affine_map<(m, n, k) -> (m, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @two_rows(%x: tensor<70x64xbf16>, %w: tensor<2x70xbf16>) -> tensor<2x64xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x64xf32>) -> tensor<2x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<70x64xbf16>, tensor<2x70xbf16>) outs(%init : tensor<2x64xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %left = arith.extf %a : bf16 to f32
    %right = arith.extf %c : bf16 to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x64xf32>
  return %dot : tensor<2x64xf32>
}

// -----

// Where the steps of a row lie apart and rows side by side, a strip interleaves two steps of 32
// rows; the scalars of a tile are words of it.
// CHECK-LABEL: func.func private @strided
// CHECK-SAME:    memref<70x64xbf16>, %[[W:[^:]*]]: memref<70x12xbf16>
// CHECK-SAME:    paired = 1 : i64
// CHECK-SAME:    rows = 8 : i64, segment = 70 : i64, {{.*}}steps_ahead = 0 : i64, strided_prefetch = 0 : i64, strip = 32 : i64
// CHECK-DAG:     %[[STRIP:.*]] = memref.view {{.*}} to memref<2240xbf16>
// CHECK-DAG:     %[[WEIGHT:.*]] = memref.reinterpret_cast %[[W]]
// CHECK:         %[[FIRST:.*]] = vector.maskedload %[[WEIGHT]]
// CHECK:         %[[SECOND:.*]] = vector.maskedload %[[WEIGHT]]
// CHECK:         %[[ROWS:.*]] = vector.interleave %[[FIRST]], %[[SECOND]]
// CHECK:         vector.store %[[ROWS]], %[[STRIP]]
// CHECK:         vector.load %[[STRIP]]{{.*}} : memref<2240xbf16>, vector<2xbf16>
// CHECK:         dpbf16ps
#x = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#v = affine_map<(m, n, k) -> (k, m)>
func.func private @strided(%x: tensor<70x64xbf16>, %w: tensor<70x12xbf16>) -> tensor<12x64xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x64xf32>) -> tensor<12x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #v, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<70x64xbf16>, tensor<70x12xbf16>) outs(%init : tensor<12x64xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %left = arith.extf %a : bf16 to f32
    %right = arith.extf %c : bf16 to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<12x64xf32>
  return %dot : tensor<12x64xf32>
}

// -----

// Few rows of two operands that are contiguous along the sum: vectors of 32 steps as they lie, and
// what is left of 75 masked.
// CHECK-LABEL: func.func private @dots
// CHECK-SAME:    columns = 8 : i64, lanes = 16 : i64, paired = 1 : i64, {{.*}}rows = 3 : i64
// CHECK:         %[[ROW:.*]] = vector.load {{.*}} : memref<225xbf16>, vector<32xbf16>
// CHECK:         %[[COLUMN:.*]] = vector.load {{.*}} : memref<3600xbf16>, vector<32xbf16>
// CHECK:         dpbf16ps.512"(%{{.*}}, %[[COLUMN]], %[[ROW]])
// CHECK:         vector.maskedload {{.*}} : memref<3600xbf16>, vector<32xi1>, vector<32xbf16>
// CHECK:         dpbf16ps
// CHECK-NOT:     vector.fma
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func private @dots(%x: tensor<3x75xbf16>, %w: tensor<48x75xbf16>) -> tensor<3x48xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x48xf32>) -> tensor<3x48xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x75xbf16>, tensor<48x75xbf16>) outs(%init : tensor<3x48xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %left = arith.extf %a : bf16 to f32
    %right = arith.extf %c : bf16 to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<3x48xf32>
  return %dot : tensor<3x48xf32>
}

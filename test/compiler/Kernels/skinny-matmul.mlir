// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels=isa=avx2 -weft-emit-kernels=isa=avx2 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>

// Four rows of two steps each in a vector: every thread copies the rows so, through registers. A
// tile's three vectors are multiplied by segments of four columns, read where they lie.
// CHECK-LABEL: func.func private @few_rows
// CHECK-SAME:  weft.schedule = #weft.schedule<skinny_matmul{{.*}} {block = 64 : i64, chunk = 64 : i64, {{.*}}columns = 4 : i64, lanes = 8 : i64, {{.*}}rows = 12 : i64, segment = 2 : i64}
// CHECK-NOT:   scf.if
// CHECK:       scf.for
// CHECK-COUNT-4: vector.load %{{.*}} : memref<768xf32>, vector<8xf32>
// CHECK-COUNT-8: vector.shuffle
// CHECK-COUNT-4: vector.store
// CHECK:       vector.load %{{.*}} : memref<32768xf32>, vector<2xf32>
// CHECK-COUNT-48: vector.fma
// CHECK-NOT:   vector.fma
// What a tile has summed is folded to the sums of rows.
// CHECK:       vector.store %{{.*}} : memref<{{.*}}xf32>, vector<4xf32>
func.func private @few_rows(%x: tensor<12x64xf32>, %w: tensor<512x64xf32>) -> tensor<12x512xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12x512xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x512xf32>) -> tensor<12x512xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<12x64xf32>, tensor<512x64xf32>) outs(%fill : tensor<12x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<12x512xf32>
  return %dot : tensor<12x512xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>

// Twenty rows in five vectors, three and two in a tile. The last row goes with the latter, by whole
// vectors of itself and of the columns, read where they lie.
// CHECK-LABEL: func.func private @last_row_alone
// CHECK-SAME:  columns = 4 : i64, lanes = 8 : i64, {{.*}}rows = 12 : i64, segment = 2 : i64
// CHECK-COUNT-48: vector.fma
// CHECK-NOT:   vector.fma
// CHECK:       vector.load %{{.*}} : memref<1344xf32>, vector<8xf32>
// CHECK-COUNT-4: vector.load %{{.*}} : memref<32768xf32>, vector<8xf32>
// CHECK-COUNT-33: vector.fma
// CHECK-NOT:   vector.fma
func.func private @last_row_alone(%x: tensor<21x64xf32>, %w: tensor<512x64xf32>) -> tensor<21x512xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<21x512xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<21x512xf32>) -> tensor<21x512xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<21x64xf32>, tensor<512x64xf32>) outs(%fill : tensor<21x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<21x512xf32>
  return %dot : tensor<21x512xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>

// Three rows by eight columns are not chosen, but a schedule may say so.
// CHECK-LABEL: func.func private @given
// CHECK-COUNT-16: vector.fma
// CHECK-NOT:   vector.fma
func.func private @given(%x: tensor<3x64xf32>, %w: tensor<8x64xf32>) -> tensor<3x8xf32>
    attributes {weft.kernel = "contraction",
                weft.schedule = #weft.schedule<skinny_matmul {rows = 4, columns = 4, segment = 2, lanes = 8,
                                                              chunk = 64, block = 8, claim = 1, prefetch = 0}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x8xf32>) -> tensor<3x8xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x64xf32>, tensor<8x64xf32>) outs(%fill : tensor<3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x8xf32>
  return %dot : tensor<3x8xf32>
}

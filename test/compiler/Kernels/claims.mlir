// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s

// Threads claim rows of tiles: those of their own share first, in parts that grow shorter. Whoever
// is the last to hear that there are none leaves zero behind.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    %[[CLAIMS:[^ ]*]]: memref<1x64x8xi64>, %[[THREAD:[^ ]*]]: index, %[[THREADS:[^ ]*]]: index)
// CHECK-SAME:    weft.claims = 1 : i64
// CHECK:         scf.for %[[TURN:.*]] = %{{.*}} to %[[THREADS]]
// CHECK:           %[[SUM:.*]] = arith.addi %[[THREAD]], %[[TURN]]
// CHECK:           %[[OWNER:.*]] = arith.remui %[[SUM]], %[[THREADS]]
// CHECK:           %[[UNITS:.*]] = arith.ceildivui
// CHECK:           %[[TWICE:.*]] = arith.muli %[[UNITS]], %c2
// CHECK:           math.sqrt
// CHECK:           %[[PARTS:.*]] = arith.select %{{.*}}, %c1{{.*}}, %{{.*}} : index
// CHECK:           %[[TOLD:.*]] = scf.while
// CHECK:             %[[OLD:.*]] = memref.atomic_rmw addi %{{.*}}, %[[CLAIMS]][%{{.*}}, %[[OWNER]],
// CHECK:             %[[NUMBER:.*]] = arith.index_cast %[[OLD]]
// CHECK:             arith.cmpi ult, %[[NUMBER]], %[[PARTS]]
// CHECK:             scf.condition
// CHECK:           ^bb0(%[[PART:.*]]: index):
// CHECK:             %[[LEFT:.*]] = arith.subi %[[PARTS]], %[[PART]]
// CHECK:             %[[SUM:.*]] = arith.addi %[[PARTS]], %[[LEFT]]
// CHECK:             %[[SCALED:.*]] = arith.muli %[[PART]], %[[SUM]]
// CHECK:             %[[OF_UNITS:.*]] = arith.muli %[[SCALED]], %[[UNITS]]
// CHECK:             %[[SQUARE:.*]] = arith.muli %[[PARTS]], %[[PARTS]]
// CHECK:             arith.divui %[[OF_UNITS]], %[[SQUARE]]
// CHECK:             vector.fma
// CHECK:           arith.subi %[[TOLD]], %[[PARTS]]
// CHECK:           scf.if
// CHECK-NEXT:        %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT:        memref.store %[[ZERO]], %[[CLAIMS]][%{{.*}}, %[[OWNER]],
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @linear(%x: tensor<2x768x64xf32>, %w: tensor<768x768xf32>)
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
  return %dot : tensor<2x768x64xf32>
}

// -----

// Too little to be divided again.
// CHECK-LABEL: func.func private @small
// CHECK-SAME:    memref<0xi8>, %{{[^ ]*}}: index, %{{[^ ]*}}: index)
// CHECK-NOT:     memref.atomic_rmw
#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @small(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<64x64xf32>
  return %dot : tensor<64x64xf32>
}

// -----

// Parts are whole strips, of eight tiles of rows.
// CHECK-LABEL: func.func private @strips
// CHECK-SAME:    rows = 6 : i64, segment = 128 : i64, {{.*}}steps_ahead = 0 : i64, strided_prefetch = 0 : i64, strip = 48 : i64
// CHECK:         %[[STRIP:.*]] = arith.constant 8 : index
// CHECK:         arith.ceildivui %{{.*}}, %[[STRIP]]
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (k, n)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @strips(%x: tensor<2x3072x64xf32>, %w: tensor<3072x768xf32>)
    -> tensor<2x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x768x64xf32>) -> tensor<2x768x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x3072x64xf32>, tensor<3072x768xf32>) outs(%init : tensor<2x768x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x768x64xf32>
  return %dot : tensor<2x768x64xf32>
}

// -----

// Four blocks of eight panels: each thread begins with all rows of the first half of them, which
// lies in its caches. A part may begin amid one block and end amid the next.
// CHECK-LABEL: func.func private @blocks
// CHECK-SAME:    panels = 8 : i64
// CHECK:         %[[PIECES:.*]] = arith.constant 512 : index
// CHECK:         arith.muli %[[PIECES]], %{{.*}}
// CHECK:         scf.while
// CHECK:         %[[FIRST:.*]] = arith.divui %[[LOW:.*]], %c128
// CHECK:         scf.for %[[BLOCK:.*]] = %[[FIRST]] to
// CHECK:           %[[BEFORE:.*]] = arith.muli %[[BLOCK]], %c128
// CHECK:           arith.muli %[[BLOCK]], %c8
// CHECK:           arith.maxui %[[LOW]], %[[BEFORE]]
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @blocks(%x: tensor<32x768x16xf32>, %w: tensor<768x768xf32>)
    -> tensor<32x768x16xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x768x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x768x16xf32>) -> tensor<32x768x16xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x768x16xf32>, tensor<768x768xf32>) outs(%init : tensor<32x768x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x768x16xf32>
  return %dot : tensor<32x768x16xf32>
}

// RUN: weft-opt %s --split-input-file --weft-emit-kernels=isa=avx2 | FileCheck %s

// Threads claim rows of tiles: those of their own share first. Whoever is the last to hear that
// there are none leaves zero behind.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    %[[CLAIMS:[^ ]*]]: memref<1x64x8xi64>, %[[THREAD:[^ ]*]]: index, %[[THREADS:[^ ]*]]: index)
// CHECK-SAME:    weft.claims = 1 : i64
// CHECK:         scf.for %[[TURN:.*]] = %{{.*}} to %[[THREADS]]
// CHECK:           %[[SUM:.*]] = arith.addi %[[THREAD]], %[[TURN]]
// CHECK:           %[[OWNER:.*]] = arith.remui %[[SUM]], %[[THREADS]]
// CHECK:           %[[PARTS:.*]] = arith.ceildivui
// CHECK:           %[[TOLD:.*]] = scf.while
// CHECK:             %[[OLD:.*]] = memref.atomic_rmw addi %{{.*}}, %[[CLAIMS]][%{{.*}}, %[[OWNER]],
// CHECK:             %[[NUMBER:.*]] = arith.index_cast %[[OLD]]
// CHECK:             arith.cmpi ult, %[[NUMBER]], %[[PARTS]]
// CHECK:             scf.condition
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

// Tokens of 1.5 MiB are read for each part, by as few of these as leave each thread four of two
// strips: 16 tiles of rows.
// CHECK-LABEL: func.func private @strips
// CHECK-SAME:    %[[THREADS:[^ ]*]]: index)
// CHECK-SAME:    rows = 6 : i64, strip = 48 : i64
// CHECK:         arith.muli %[[THREADS]], %c128
// CHECK:         %[[LEAST:.*]] = arith.constant 16 : index
// CHECK-NEXT:    arith.muli %{{.*}}, %[[LEAST]]
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

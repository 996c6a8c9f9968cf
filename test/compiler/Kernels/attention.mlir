// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s

// Queries in the lanes, keys broadcast four at a time. All scores wait in scratch: there is
// nothing to scale down. The power of two is taken of scores that were never scaled. Lines of the
// output are asked for while its sums are made.
// CHECK-LABEL: func.func private @attention
// CHECK-SAME:    memref<49152xi8>
// CHECK-SAME:    weft.schedule = #weft.schedule<attention{{.*}} groups = 4 : i64, key_block = 128 : i64, {{.*}}lanes = 16 : i64, online = 0 : i64, rows = 4 : i64}
// CHECK:         scf.condition
// CHECK-NOT:     arith.cmpi
// CHECK:         vector.fma
// CHECK:         arith.cmpf ogt
// CHECK-NOT:     math.exp
// CHECK:         arith.constant dense<0.180336878>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// CHECK:         arith.shli
// CHECK-COUNT-16: memref.prefetch %{{.*}}, write, locality<3>, data
// CHECK:         vector.fma
// CHECK:         arith.divf
#heads = #weft.layout<[0, 2, 1, 3], tile 2 by 64>
!logical = tensor<1x12x128x64xf32, #heads>
!physical = tensor<1x2x12x64x64xf32>
func.func private @attention(%q: !physical, %k: !physical, %v: !physical) -> !physical
    attributes {weft.kernel = "attention"} {
  %query = builtin.unrealized_conversion_cast %q : !physical to !logical
  %key = builtin.unrealized_conversion_cast %k : !physical to !logical
  %value = builtin.unrealized_conversion_cast %v : !physical to !logical
  %out = weft.attention %query, %key, %value causal false scale 0.125 : !logical, !logical, !logical -> !logical
  %result = builtin.unrealized_conversion_cast %out : !logical to !physical
  return %result : !physical
}

// -----

// The last block has queries in three of its four vectors, which alone are computed. Their lanes
// behind the last query are stored all the same, with their heads merged as well: what somebody
// else left there could be slow to compute with.
// CHECK-LABEL: func.func private @merged_heads
// CHECK-NOT:     vector.maskedstore
// CHECK:         scf.condition
// CHECK:         %[[LAST:.*]] = arith.cmpi eq
// CHECK-NEXT:    scf.if %[[LAST]] {
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK:         } else {
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK:         vector.store %{{.*}} : memref<98304xf32>, vector<16xf32>
// CHECK-NOT:     vector.maskedstore
#tail = #weft.layout<[0, 2, 1, 3], tile 2 by 64>
!tail = tensor<1x12x100x64xf32, #tail>
!stored = tensor<1x2x12x64x64xf32>
func.func private @merged_heads(%q: !stored, %k: !stored, %v: !stored) -> tensor<1x2x768x64xf32>
    attributes {weft.kernel = "attention"} {
  %query = builtin.unrealized_conversion_cast %q : !stored to !tail
  %key = builtin.unrealized_conversion_cast %k : !stored to !tail
  %value = builtin.unrealized_conversion_cast %v : !stored to !tail
  %out = weft.attention %query, %key, %value causal false scale 0.125 : !tail, !tail, !tail -> !tail
  %result = builtin.unrealized_conversion_cast %out : !tail to !stored
  %merged = tensor.collapse_shape %result [[0], [1], [2, 3], [4]] : !stored into tensor<1x2x768x64xf32>
  return %merged : tensor<1x2x768x64xf32>
}

// -----

// Many keys come in blocks, whose scores fit in the first-level cache: maxima and sums are
// carried from block to block.
// CHECK-LABEL: func.func private @long
// CHECK-SAME:    key_block = 192 : i64, {{.*}}lanes = 16 : i64, online = 1 : i64
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
func.func private @long(%q: tensor<1x1500x64xf32>, %k: tensor<1x1500x64xf32>, %v: tensor<1x1500x64xf32>)
    -> tensor<1x1500x64xf32> attributes {weft.kernel = "attention"} {
  %out = weft.attention %q, %k, %v causal false scale 0.125 : tensor<1x1500x64xf32>, tensor<1x1500x64xf32>, tensor<1x1500x64xf32> -> tensor<1x1500x64xf32>
  return %out : tensor<1x1500x64xf32>
}

// -----

// Causal: early and late blocks take turns; keys ahead of the block are not compared at all,
// and each of the four vectors of keys beside it is compared with one vector of queries.
// Row-major queries and results pass through registers.
// CHECK-LABEL: func.func private @causal
// CHECK:         scf.for
// CHECK:         arith.subi %{{.*}} : index
// CHECK:         vector.shuffle
// CHECK:         arith.minui
// CHECK-COUNT-4: vector.broadcast %{{.*}} : i32 to vector<16xi32>
// CHECK:         arith.divf
// CHECK:         vector.shuffle
func.func private @causal(%q: tensor<2x170x24xf32>, %k: tensor<2x170x24xf32>, %v: tensor<2x170x24xf32>)
    -> tensor<2x170x24xf32> attributes {weft.kernel = "attention"} {
  %out = weft.attention %q, %k, %v causal true scale 0.2 : tensor<2x170x24xf32>, tensor<2x170x24xf32>, tensor<2x170x24xf32> -> tensor<2x170x24xf32>
  return %out : tensor<2x170x24xf32>
}

// -----

#same = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#padding = affine_map<(d0, d1, d2) -> (d0, d2)>

// A mask that all queries share becomes one number for a key, from which its sums start.
// CHECK-LABEL: func.func private @padding
// CHECK:         %[[KEPT:.*]] = arith.cmpi ne, %{{.*}} : vector<16xi1>
// CHECK:         arith.select %[[KEPT]]
// CHECK-NOT:     arith.cmpi ne
// CHECK:         %[[BIAS:.*]] = memref.load
// CHECK:         vector.broadcast %[[BIAS]]
// CHECK:         vector.fma
func.func private @padding(%q: tensor<2x64x32xf32>, %mask: tensor<2x64xi1>) -> tensor<2x64x32xf32>
    attributes {weft.kernel = "attention"} {
  %empty = tensor.empty() : tensor<2x64x64xi1>
  %keep = linalg.generic {indexing_maps = [#padding, #same],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mask : tensor<2x64xi1>) outs(%empty : tensor<2x64x64xi1>) {
  ^bb0(%in: i1, %out: i1):
    linalg.yield %in : i1
  } -> tensor<2x64x64xi1>
  %out = weft.attention %q, %q, %q mask %keep : tensor<2x64x64xi1> causal false scale 0.2 : tensor<2x64x32xf32>, tensor<2x64x32xf32>, tensor<2x64x32xf32> -> tensor<2x64x32xf32>
  return %out : tensor<2x64x32xf32>
}

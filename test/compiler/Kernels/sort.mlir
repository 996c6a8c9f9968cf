// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s --weft-fill=bools.0=0:1 %}

// A short list is filled by insertion; then vectors of keys are compared with its last
// element, and only where one is better are the elements looked at.
// CHECK-LABEL: func.func private @top
// CHECK-SAME:    memref<128xi8>
// CHECK:         scf.for
// CHECK:           scf.while
// CHECK:         scf.for
// CHECK:           %[[LAST:.*]] = memref.load
// CHECK:           %[[HIGH:.*]] = arith.shrui %[[LAST]], %c32_i64
// CHECK:           %[[KEY:.*]] = arith.trunci %[[HIGH]] : i64 to i32
// CHECK:           %[[WORST:.*]] = vector.broadcast %[[KEY]] : i32 to vector<16xi32>
// CHECK:           arith.cmpi ult, %{{.*}}, %[[WORST]] : vector<16xi32>
// CHECK:           %[[ANY:.*]] = vector.reduction <or>
// CHECK:           scf.if %[[ANY]]
// CHECK:             scf.while
func.func private @top(%x: tensor<4x1000xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>)
    attributes {weft.kernel = "sort"} {
  %0, %1 = weft.sort %x dim 1 descending true count 5 : tensor<4x1000xf32> -> tensor<4x5xf32>, tensor<4x5xi64>
  return %0, %1 : tensor<4x5xf32>, tensor<4x5xi64>
}

// -----

// A whole row of 16-bit keys takes two passes; only the positions are wanted.
// CHECK-LABEL: func.func private @rows
// CHECK:         arith.shrui %{{.*}}, %c32_i64
// CHECK:         arith.shrui %{{.*}}, %c40_i64
// CHECK-NOT:     arith.shrui %{{.*}}, %c48_i64
// CHECK-NOT:     scf.while
// CHECK:         memref.store %{{.*}} : memref<4000xi64>
func.func private @rows(%x: tensor<4x1000xbf16>) -> tensor<4x1000xi64>
    attributes {weft.kernel = "sort"} {
  %0, %1 = weft.sort %x dim 1 descending false count 1000 : tensor<4x1000xbf16> -> tensor<4x1000xbf16>, tensor<4x1000xi64>
  return %1 : tensor<4x1000xi64>
}

// -----

// Candidates for a long list: the first 512 fill the space. It is sorted when it is full, and
// once more at the end; in between vectors of keys are compared with the limit.
// CHECK-LABEL: func.func private @candidates
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c512
// CHECK:         scf.for
// CHECK:           arith.cmpi uge, %{{.*}}, %c512
// CHECK:           scf.if
// CHECK:             arith.shrui %{{.*}}, %c32_i64
// CHECK:             arith.shrui %{{.*}}, %c56_i64
// CHECK:           arith.cmpi ult, %{{.*}} : vector<16xi32>
// CHECK:           vector.reduction <or>
// CHECK:         arith.shrui %{{.*}}, %c56_i64
// CHECK-NOT:     scf.while
func.func private @candidates(%x: tensor<4x5000xf32>) -> tensor<4x100xi64>
    attributes {weft.kernel = "sort"} {
  %0, %1 = weft.sort %x dim 1 descending true count 100 : tensor<4x5000xf32> -> tensor<4x100xf32>, tensor<4x100xi64>
  return %1 : tensor<4x100xi64>
}

// -----

// Bools are partitioned: those that come first are counted; then the positions of each vector are
// packed twice, and only as many stored.
// CHECK-LABEL: func.func private @bools
// CHECK:         llvm.intr.ctpop
// CHECK-NOT:     arith.shrui
// CHECK:         %[[REST:.*]] = arith.xori %[[FIRST:.*]], %{{.*}} : vector<8xi1>
// CHECK:         %[[PACKED:.*]] = llvm.call_intrinsic "llvm.experimental.vector.compress"(%[[AT:.*]], %[[FIRST]], %{{.*}})
// CHECK:         vector.maskedstore %{{.*}}, %{{.*}}, %[[PACKED]] : memref<1000xi64>
// CHECK:         %[[OTHERS:.*]] = llvm.call_intrinsic "llvm.experimental.vector.compress"(%[[AT]], %[[REST]], %{{.*}})
// CHECK:         vector.maskedstore %{{.*}}, %{{.*}}, %[[OTHERS]] : memref<1000xi64>
func.func private @bools(%x: tensor<1000xi8>) -> tensor<1000xi64>
    attributes {weft.kernel = "sort"} {
  %0, %1 = weft.sort %x dim 0 descending true count 1000 {weft.stored_bools} : tensor<1000xi8> -> tensor<1000xi8>, tensor<1000xi64>
  return %1 : tensor<1000xi64>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-expand-bfloat16 | FileCheck %s
// RUN: weft-opt %s --weft-expand-bfloat16=has-bfloat16=true | FileCheck %s --check-prefix=HAS

// CHECK-LABEL: func.func @to(
// CHECK-NOT: arith.truncf
// CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : vector<8xf32> to vector<8xi32>
// CHECK: arith.shrui %[[BITS]]
// CHECK: return %{{.*}} : vector<8xi16>
// HAS-LABEL: func.func @to(
// HAS-NOT: arith.truncf
// HAS: return %{{.*}} : vector<8xbf16>
func.func @to(%x: vector<8xf32>) -> vector<8xbf16> {
  %0 = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  return %0 : vector<8xbf16>
}

// CHECK-LABEL: func.func @from(
// CHECK-NOT: arith.extf
// CHECK: arith.bitcast %{{.*}} : i32 to f32
func.func @from(%x: bf16) -> f32 {
  %0 = arith.extf %x : bf16 to f32
  return %0 : f32
}

// Elements that are only moved, and constants, are bits as well.
// CHECK-LABEL: func.func @move(
// CHECK-SAME: memref<8xi16>, %{{.*}}: i1) -> vector<4xi16>
// CHECK: arith.constant dense<16256> : vector<4xi16>
// CHECK: vector.broadcast %{{.*}} : i16 to vector<4xi16>
// CHECK: arith.select %{{.*}} : vector<4xi16>
// CHECK-NOT: bf16
func.func @move(%m: memref<8xbf16>, %c: i1) -> vector<4xbf16> {
  %zero = arith.constant 0 : index
  %ones = arith.constant dense<1.0> : vector<4xbf16>
  %0 = memref.load %m[%zero] : memref<8xbf16>
  %1 = vector.broadcast %0 : bf16 to vector<4xbf16>
  %2 = arith.select %c, %1, %ones : vector<4xbf16>
  return %2 : vector<4xbf16>
}

// Other conversions, and other folds, are left alone.
// CHECK-LABEL: func.func @other(
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.addi %{{.*}}, %{{.*}} : i32
func.func @other(%x: f32, %n: i32) -> (f16, i32) {
  %0 = arith.truncf %x : f32 to f16
  %zero = arith.constant 0 : i32
  %1 = arith.addi %n, %zero : i32
  return %0, %1 : f16, i32
}

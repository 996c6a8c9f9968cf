// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-math-to-libm | FileCheck %s

// CHECK-DAG: func.func private @expm1f(f32) -> f32
// CHECK-DAG: func.func private @erf(f64) -> f64

// CHECK-LABEL: func.func @scalar
// CHECK: call @expm1f
func.func @scalar(%x: f32) -> f32 {
  %0 = math.expm1 %x : f32
  return %0 : f32
}

// A vector is taken apart first.
// CHECK-LABEL: func.func @vector
// CHECK-COUNT-2: call @erf
// CHECK-NOT: math.erf
func.func @vector(%x: vector<2xf64>) -> vector<2xf64> {
  %0 = math.erf %x : vector<2xf64>
  return %0 : vector<2xf64>
}

// One instruction is better than a call.
// CHECK-LABEL: func.func @declines
// CHECK: math.sqrt
// CHECK: math.floor
func.func @declines(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.sqrt %x : vector<4xf32>
  %1 = math.floor %0 : vector<4xf32>
  return %1 : vector<4xf32>
}

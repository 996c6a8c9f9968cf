// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-widen-attention | FileCheck %s

// CHECK-LABEL: @half(
// CHECK-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[M:[^:]*]]:
// CHECK-DAG:     %[[Q1:.*]] = weft.convert %[[Q]] : tensor<2x3x8xbf16> -> tensor<2x3x8xf32>
// CHECK-DAG:     %[[K1:.*]] = weft.convert %[[K]] : tensor<2x5x8xbf16> -> tensor<2x5x8xf32>
// CHECK-DAG:     %[[V1:.*]] = weft.convert %[[V]] : tensor<2x5x4xbf16> -> tensor<2x5x4xf32>
// CHECK-DAG:     %[[M1:.*]] = weft.convert %[[M]] : tensor<2x3x5xbf16> -> tensor<2x3x5xf32>
// CHECK:         %[[WIDE:.*]] = weft.attention %[[Q1]], %[[K1]], %[[V1]] mask %[[M1]]
// CHECK-SAME:      causal false scale 5.000000e-01
// CHECK-SAME:      -> tensor<2x3x4xf32>
// CHECK:         %[[RESULT:.*]] = weft.convert %[[WIDE]] : tensor<2x3x4xf32> -> tensor<2x3x4xbf16>
// CHECK:         return %[[RESULT]]
func.func @half(%q: tensor<2x3x8xbf16>, %k: tensor<2x5x8xbf16>, %v: tensor<2x5x4xbf16>,
                %m: tensor<2x3x5xbf16>) -> tensor<2x3x4xbf16> {
  %0 = weft.attention %q, %k, %v mask %m : tensor<2x3x5xbf16> causal false scale 0.5
    : tensor<2x3x8xbf16>, tensor<2x5x8xbf16>, tensor<2x5x4xbf16> -> tensor<2x3x4xbf16>
  return %0 : tensor<2x3x4xbf16>
}

// A mask of truths stays.
// CHECK-LABEL: @truths(
// CHECK:         weft.attention {{.*}} mask %{{.*}} : tensor<2x3x5xi1>
// CHECK-SAME:      -> tensor<2x3x4xf32>
func.func @truths(%q: tensor<2x3x8xf16>, %k: tensor<2x5x8xf16>, %v: tensor<2x5x4xf16>,
                  %m: tensor<2x3x5xi1>) -> tensor<2x3x4xf16> {
  %0 = weft.attention %q, %k, %v mask %m : tensor<2x3x5xi1> causal true scale 0.5
    : tensor<2x3x8xf16>, tensor<2x5x8xf16>, tensor<2x5x4xf16> -> tensor<2x3x4xf16>
  return %0 : tensor<2x3x4xf16>
}

// CHECK-LABEL: @single(
// CHECK-NOT:     weft.convert
func.func @single(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x4xf32>)
    -> tensor<2x3x4xf32> {
  %0 = weft.attention %q, %k, %v causal false scale 0.5
    : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x4xf32> -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

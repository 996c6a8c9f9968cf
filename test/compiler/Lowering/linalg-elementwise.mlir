// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-lower-to-linalg --split-input-file | FileCheck %s

#tile = #weft.layout<[0, 1, 2], tile 1 by 4>

// A tiled op is a generic over its physical dims; the splat is a scalar in the body and
// what broadcast it is gone.
// CHECK-DAG: #[[FEATURE:.*]] = affine_map<(d0, d1, d2, d3) -> (d2)>
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func private @tiled(
// CHECK-SAME: %[[X:.*]]: tensor<2x2x8x4xf32>, %[[BIAS:.*]]: tensor<8xf32>) -> tensor<2x2x8x4xf32>
// CHECK-SAME: attributes {weft.kernel = "nest"}
// CHECK-NEXT: tensor.empty() : tensor<2x2x8x4xf32>
// CHECK-NEXT: %[[WIDE:.*]] = linalg.generic {indexing_maps = [#[[FEATURE]], #[[ALL]]]
// CHECK-SAME: ins(%[[BIAS]]
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]], #[[ALL]]], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%[[X]], %[[WIDE]]
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%{{[0-9]*}} : tensor<2x2x8x4xf32>)
// CHECK: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK: arith.mulf %{{.*}}, %[[TWO]]
func.func private @tiled(%x: tensor<2x6x8xf32, #tile>, %bias: tensor<8xf32>)
    -> tensor<2x6x8xf32, #tile> attributes {weft.kernel = "nest"} {
  %two = weft.constant dense<2.0> : tensor<f32>
  %0 = weft.broadcast_in_dim %bias dims [2] : tensor<8xf32> -> tensor<2x6x8xf32, #tile>
  %1 = weft.add %x, %0 : tensor<2x6x8xf32, #tile>
  %2 = weft.broadcast_in_dim %two dims [] : tensor<f32> -> tensor<2x6x8xf32, #tile>
  %3 = weft.mul %1, %2 : tensor<2x6x8xf32, #tile>
  return %3 : tensor<2x6x8xf32, #tile>
}

// -----

// bool is i8 in memory and i1 in bodies; u8 is i8 and compares unsigned.
// CHECK-LABEL: func.func private @bool_and_u8(
// CHECK-SAME: %[[X:.*]]: tensor<4xi8>, %[[B:.*]]: tensor<4xi8>) -> tensor<4xi8>
// CHECK: ^bb0(%[[L:.*]]: i8, %[[R:.*]]: i8, %{{.*}}: i8):
// CHECK-NEXT: %[[LT:.*]] = arith.cmpi ult, %[[L]], %[[R]] : i8
// CHECK-NEXT: %[[OUT:.*]] = arith.extui %[[LT]] : i1 to i8
// CHECK-NEXT: linalg.yield %[[OUT]]
// CHECK: arith.cmpi ne
// CHECK: arith.cmpi ne
// CHECK: arith.andi %{{.*}}, %{{.*}} : i1
func.func private @bool_and_u8(%x: tensor<4xui8>, %b: tensor<4xi1>) -> tensor<4xi1>
    attributes {weft.kernel = "nest"} {
  %0 = weft.cmp #weft.predicate<lt> %x, %x : tensor<4xui8> -> tensor<4xi1>
  %1 = weft.and %0, %b : tensor<4xi1>
  return %1 : tensor<4xi1>
}

// -----

// Half precision computes in f32.
// CHECK-LABEL: func.func private @half(
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: math.exp %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func private @half(%x: tensor<4xbf16>) -> tensor<4xbf16> attributes {weft.kernel = "nest"} {
  %0 = weft.exp %x : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// Padding holds zeros, which must not trap.
// CHECK-LABEL: func.func private @integer_division(
// CHECK: %[[SAFE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[RHS:.*]] : i32
// CHECK: arith.divsi %{{.*}}, %[[SAFE]]
// CHECK: arith.divsi %{{.*}}, %[[THREE:.*]] : i32
func.func private @integer_division(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32>
    attributes {weft.kernel = "nest"} {
  %three = weft.constant dense<3> : tensor<4xi32>
  %0 = weft.div %x, %y : tensor<4xi32>
  %1 = weft.div %0, %three : tensor<4xi32>
  return %1 : tensor<4xi32>
}

// -----

// PyTorch's narrow integers wrap round. What an int32 does not hold is its least one.
// CHECK-LABEL: func.func private @convert(
// CHECK: %[[LEAST:.*]] = arith.constant -2.14748365E+9 : f32
// CHECK: %[[HELD:.*]] = arith.andi
// CHECK: %[[SAFE:.*]] = arith.select %[[HELD]], %{{.*}}, %[[LEAST]]
// CHECK: %[[WIDE:.*]] = arith.fptosi %[[SAFE]] : f32 to i32
// CHECK: arith.trunci %[[WIDE]] : i32 to i8
// CHECK: arith.uitofp %{{.*}} : i8 to f64
// CHECK: arith.cmpf une
func.func private @convert(%x: tensor<4xf32>) -> tensor<4xi1> attributes {weft.kernel = "nest"} {
  %0 = weft.convert %x : tensor<4xf32> -> tensor<4xui8>
  %1 = weft.convert %0 : tensor<4xui8> -> tensor<4xf64>
  %2 = weft.convert %1 : tensor<4xf64> -> tensor<4xi1>
  return %2 : tensor<4xi1>
}

// -----

// A product and a sum of floats round once; half precision does so in f32.
// CHECK-LABEL: func.func private @fma(
// CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: %[[WIDE:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: arith.truncf %[[WIDE]] : f32 to bf16
// CHECK: %[[PRODUCT:.*]] = arith.muli
// CHECK: arith.addi %[[PRODUCT]], %{{.*}} : i32
// CHECK: %[[BOTH:.*]] = arith.andi
// CHECK: arith.ori %[[BOTH]], %{{.*}} : i1
func.func private @fma(%x: tensor<4xf32>, %h: tensor<4xbf16>, %i: tensor<4xi32>, %b: tensor<4xi1>)
    -> (tensor<4xf32>, tensor<4xbf16>, tensor<4xi32>, tensor<4xi1>)
    attributes {weft.kernel = "nest"} {
  %0 = weft.fma %x, %x, %x : tensor<4xf32>
  %1 = weft.fma %h, %h, %h : tensor<4xbf16>
  %2 = weft.fma %i, %i, %i : tensor<4xi32>
  %3 = weft.fma %b, %b, %b : tensor<4xi1>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xbf16>, tensor<4xi32>, tensor<4xi1>
}

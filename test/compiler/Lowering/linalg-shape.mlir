// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-lower-to-linalg --split-input-file | FileCheck %s

#tokens = #weft.layout<[0, 1, 2], tile 1 by 4>
#split = #weft.layout<[0, 1, 2, 3], tile 1 by 4>
#heads = #weft.layout<[0, 2, 1, 3], tile 2 by 4>

// Splitting heads off tiled tokens moves nothing.
// CHECK-LABEL: func.func private @split_heads(
// CHECK-SAME: %[[X:.*]]: tensor<2x2x12x4xf32>
// CHECK-NEXT: %[[R:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1], [2, 3], [4]]
// CHECK-NEXT: return %[[R]] : tensor<2x2x3x4x4xf32>
func.func private @split_heads(%x: tensor<2x8x12xf32, #tokens>) -> tensor<2x3x8x4xf32, #heads>
    attributes {weft.kernel = "nest"} {
  %0 = weft.reshape %x : tensor<2x8x12xf32, #tokens> -> tensor<2x8x3x4xf32, #split>
  %1 = weft.transpose %0 perm [0, 2, 1, 3]
    : tensor<2x8x3x4xf32, #split> -> tensor<2x3x8x4xf32, #heads>
  return %1 : tensor<2x3x8x4xf32, #heads>
}

// -----

#tokens = #weft.layout<[0, 1, 2], tile 1 by 4>

// CHECK-LABEL: func.func private @relayout(
// CHECK: tensor.pad %{{.*}} low[0, 0, 0] high[0, 2, 0]
// CHECK: tensor.expand_shape
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func private @relayout(%x: tensor<2x6x8xf32>) -> tensor<2x6x8xf32, #tokens>
    attributes {weft.kernel = "nest"} {
  %0 = weft.relayout %x : tensor<2x6x8xf32> -> tensor<2x6x8xf32, #tokens>
  return %0 : tensor<2x6x8xf32, #tokens>
}

// -----

// A kernel's attention keeps its logical types behind casts.
#heads = #weft.layout<[0, 2, 1, 3], tile 2 by 4>
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x3x4x4xf32>
// CHECK: builtin.unrealized_conversion_cast %[[Q]] : tensor<1x2x3x4x4xf32> to tensor<1x3x8x4xf32, #weft.layout<[0, 2, 1, 3], tile 2 by 4>>
// CHECK: weft.attention
// CHECK: builtin.unrealized_conversion_cast
func.func private @attention(%q: tensor<1x3x8x4xf32, #heads>) -> tensor<1x3x8x4xf32, #heads>
    attributes {weft.kernel = "attention"} {
  %0 = weft.attention %q, %q, %q causal true scale 0.5
    : tensor<1x3x8x4xf32, #heads>, tensor<1x3x8x4xf32, #heads>, tensor<1x3x8x4xf32, #heads>
    -> tensor<1x3x8x4xf32, #heads>
  return %0 : tensor<1x3x8x4xf32, #heads>
}

// -----

// Entries remember their logical types, fallbacks their element types.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4xi8> {weft.type = tensor<4xi1>}
// CHECK: weft.assert %{{.*}}, "message" : tensor<4xi8>
// CHECK: weft.torch_fallback {{.*}} {operand_dtypes = [i1], result_dtypes = [ui8]} : (tensor<4xi8>) -> tensor<4xi8>
func.func @main(%x: tensor<4xi1>) -> tensor<4xui8> {
  weft.assert %x, "message" : tensor<4xi1>
  %0 = weft.torch_fallback "aten.x"(%x) "[]" : (tensor<4xi1>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// -----

// Nothing is inserted for an operand without elements.
// CHECK-LABEL: func.func private @concat_nothing(
// CHECK-COUNT-1: tensor.insert_slice
// CHECK-NOT: tensor.insert_slice
// CHECK: return
func.func private @concat_nothing(%x: tensor<2x3xf32>, %y: tensor<0x3xf32>) -> tensor<2x3xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.concat %x, %y dim 0 : tensor<2x3xf32>, tensor<0x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

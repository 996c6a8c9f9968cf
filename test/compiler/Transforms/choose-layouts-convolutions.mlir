// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-choose-layouts | FileCheck %s

// CHECK-LABEL: func.func @images(
// CHECK-SAME: %[[X:.*]]: tensor<1x3x16x16xf32>, %[[W:.*]]: tensor<48x3x3x3xf32>, %[[D:.*]]: tensor<48x1x3x3xf32>, %[[C:.*]]: tensor<48xf32>)
func.func @images(%x: tensor<1x3x16x16xf32>, %w: tensor<48x3x3x3xf32>, %d: tensor<48x1x3x3xf32>, %c: tensor<48xf32>) -> tensor<1x48xf32> {
  // CHECK-DAG: %[[IMAGE:.*]] = weft.relayout %[[X]] : {{.*}} -> tensor<1x3x16x16xf32, #weft.layout<[0, 2, 3, 1]>>
  // CHECK-DAG: %[[PACKED:.*]] = weft.relayout %[[W]] : {{.*}} -> tensor<48x3x3x3xf32, #weft.layout<[0, 2, 3, 1], tile 0 by 48>>
  // CHECK-DAG: weft.relayout %[[D]] : {{.*}} -> tensor<48x1x3x3xf32, #weft.layout<[2, 3, 1, 0]>>
  // CHECK: %[[PAD:.*]] = weft.pad %[[IMAGE]], %{{.*}} low [0, 0, 1, 1] high [0, 0, 1, 1]
  // CHECK: weft.conv %[[PAD]], %[[PACKED]] strides [1, 1] pad [0, 0] x [0, 0] {{.*}} -> tensor<1x48x16x16xf32, #weft.layout<[0, 2, 3, 1]>>
  // CHECK-NOT: weft.relayout
  // CHECK: weft.batch_norm {{.*}} : tensor<1x48x16x16xf32, #weft.layout<[0, 2, 3, 1]>>
  // CHECK: weft.conv {{.*}} groups 48 {{.*}} -> tensor<1x48x16x16xf32, #weft.layout<[0, 2, 3, 1]>>
  // CHECK: weft.add
  // CHECK: weft.reduce_window {{.*}} -> tensor<1x48x15x15xf32, #weft.layout<[0, 2, 3, 1]>>
  // CHECK: weft.reduce <sum> {{.*}} -> tensor<1x48xf32>
  %0 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1 : tensor<1x3x16x16xf32>, tensor<48x3x3x3xf32> -> tensor<1x48x16x16xf32>
  %1 = weft.batch_norm %0 mean %c variance %c : tensor<48xf32>, tensor<48xf32> eps 1.0e-5 : tensor<1x48x16x16xf32>
  %2 = weft.conv %1, %d strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 48 : tensor<1x48x16x16xf32>, tensor<48x1x3x3xf32> -> tensor<1x48x16x16xf32>
  %3 = weft.add %2, %1 : tensor<1x48x16x16xf32>
  %4 = weft.reduce_window <max> %3 window [1, 1, 2, 2] strides [1, 1, 1, 1] dilations [1, 1, 1, 1] : tensor<1x48x16x16xf32> -> tensor<1x48x15x15xf32>
  %5 = weft.reduce <sum> %4 dims [2, 3] : tensor<1x48x15x15xf32> -> tensor<1x48xf32>
  return %5 : tensor<1x48xf32>
}

// -----

// Groups whose channels do not fill vectors keep the layout of torch where rows do.
// CHECK-LABEL: func.func @grouped(
func.func @grouped(%x: tensor<1x8x8x16xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x8x16xf32> {
  // CHECK-NOT: weft.relayout
  // CHECK: %[[PAD:.*]] = weft.pad
  // CHECK: weft.conv %[[PAD]]
  %0 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 2 : tensor<1x8x8x16xf32>, tensor<8x4x3x3xf32> -> tensor<1x8x8x16xf32>
  return %0 : tensor<1x8x8x16xf32>
}

// -----

// Strided rows do not.
// CHECK-LABEL: func.func @grouped_strided(
func.func @grouped_strided(%x: tensor<1x8x9x33xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x4x16xf32> {
  // CHECK-DAG: weft.relayout {{.*}} -> tensor<1x8x9x33xf32, #weft.layout<[0, 2, 3, 1]>>
  // CHECK-DAG: weft.relayout {{.*}} -> tensor<8x4x3x3xf32, #weft.layout<[2, 3, 1, 0]>>
  // CHECK: weft.conv
  %0 = weft.conv %x, %w strides [2, 2] pad [0, 0] x [0, 0] dilations [1, 1] groups 2 : tensor<1x8x9x33xf32>, tensor<8x4x3x3xf32> -> tensor<1x8x4x16xf32>
  return %0 : tensor<1x8x4x16xf32>
}

// -----

// Groups whose channels do, and images of other ranks, have their channels last. A block of the
// weight has channels of one group.
// CHECK-LABEL: func.func @groups_of_vectors(
func.func @groups_of_vectors(%x: tensor<1x8x4xf32>, %w: tensor<32x4x3xf32>) -> tensor<1x32x4xf32> {
  // CHECK-DAG: weft.relayout {{.*}} -> tensor<1x8x4xf32, #weft.layout<[0, 2, 1]>>
  // CHECK-DAG: weft.relayout {{.*}} -> tensor<32x4x3xf32, #weft.layout<[0, 2, 1], tile 0 by 16>>
  // CHECK: weft.conv {{.*}} groups 2 {{.*}} -> tensor<1x32x4xf32, #weft.layout<[0, 2, 1]>>
  %0 = weft.conv %x, %w strides [1] pad [1] x [1] dilations [1] groups 2 : tensor<1x8x4xf32>, tensor<32x4x3xf32> -> tensor<1x32x4xf32>
  return %0 : tensor<1x32x4xf32>
}

// -----

// Two registers to a block: five do not come in such.
// CHECK-LABEL: func.func @groups_of_five_vectors(
func.func @groups_of_five_vectors(%x: tensor<1x8x4xf32>, %w: tensor<160x4x3xf32>) -> tensor<1x160x4xf32> {
  // CHECK: weft.relayout {{.*}} -> tensor<160x4x3xf32, #weft.layout<[2, 1, 0]>>
  %0 = weft.conv %x, %w strides [1] pad [1] x [1] dilations [1] groups 2 : tensor<1x8x4xf32>, tensor<160x4x3xf32> -> tensor<1x160x4xf32>
  return %0 : tensor<1x160x4xf32>
}

// -----

// Few output channels leave lanes empty: vectors run along rows of the image.
// CHECK-LABEL: func.func @few_channels(
func.func @few_channels(%x: tensor<1x32x64x64xf32>, %w: tensor<3x32x3x3xf32>) -> tensor<1x3x62x62xf32> {
  // CHECK-NOT: weft.relayout
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x32x64x64xf32>, tensor<3x32x3x3xf32> -> tensor<1x3x62x62xf32>
  return %0 : tensor<1x3x62x62xf32>
}

// A reshape that merges dims which do not lie in order keeps the innermost one where it is.
// CHECK-LABEL: func.func @interleaved(
// CHECK: weft.relayout {{.*}} -> tensor<2x16x4x2x4xf32, #weft.layout<[0, 2, 3, 4, 1]>>
// CHECK: weft.reshape {{.*}} -> tensor<2x16x8x4xf32, #weft.layout<[0, 2, 3, 1]>>
func.func @interleaved(%x: tensor<4x16x4x4xf32>, %w: tensor<16x16x1x1xf32>) -> tensor<2x16x8x4xf32> {
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<4x16x4x4xf32>, tensor<16x16x1x1xf32> -> tensor<4x16x4x4xf32>
  %1 = weft.reshape %0 : tensor<4x16x4x4xf32> -> tensor<2x2x16x4x4xf32>
  %2 = weft.transpose %1 perm [1, 2, 3, 0, 4] : tensor<2x2x16x4x4xf32> -> tensor<2x16x4x2x4xf32>
  %3 = weft.reshape %2 : tensor<2x16x4x2x4xf32> -> tensor<2x16x8x4xf32>
  return %3 : tensor<2x16x8x4xf32>
}

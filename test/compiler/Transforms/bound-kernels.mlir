// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-bound-kernels --split-input-file | FileCheck %s

// Rows of padding give rows of padding.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK-SAME: (%{{.*}}: tensor<1x64x8xf32>, %{{.*}}: tensor<1xi64>)
// CHECK-SAME: weft.bound = array<i64: 1, 0, 64, 1>
// CHECK-LABEL: func.func @main
// CHECK: call @elementwise_0(%arg0, %arg1)
func.func private @elementwise_0(%x: tensor<1x64x8xf32>) -> tensor<1x64x8xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.exp %x : tensor<1x64x8xf32>
  return %0 : tensor<1x64x8xf32>
}
func.func @main(%x: tensor<1x64x8xf32> {weft.bounded = array<i64: -1, 0, -1>},
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>}) -> tensor<1x64x8xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = call @elementwise_0(%x) : (tensor<1x64x8xf32>) -> tensor<1x64x8xf32>
  return %0 : tensor<1x64x8xf32>
}

// -----

// What hides padding is read behind it: its sums alone are left out.
// CHECK-LABEL: func.func private @dot_general_0
// CHECK-SAME: weft.bound = array<i64: 0, 0, 64, 0>
func.func private @dot_general_0(%x: tensor<64x8xf32>, %w: tensor<8x4xf32>, %mask: tensor<64x4xi1>)
    -> tensor<64x4xf32> attributes {weft.kernel = "contraction"} {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [0]
    : tensor<64x8xf32>, tensor<8x4xf32> -> tensor<64x4xf32>
  %1 = weft.constant dense<0.0> : tensor<64x4xf32>
  %2 = weft.select %mask, %0, %1 : tensor<64x4xi1>, tensor<64x4xf32>
  return %2 : tensor<64x4xf32>
}
func.func private @counts_0(%sizes: tensor<1xi64>) -> tensor<64x4xi1>
    attributes {weft.kernel = "nest"} {
  %0 = weft.iota 0 : tensor<64x4xi64>
  %1 = weft.reshape %sizes : tensor<1xi64> -> tensor<i64>
  %2 = weft.broadcast_in_dim %1 dims [] : tensor<i64> -> tensor<64x4xi64>
  %3 = weft.cmp <lt> %0, %2 : tensor<64x4xi64> -> tensor<64x4xi1>
  return %3 : tensor<64x4xi1>
}
func.func @main(%x: tensor<64x8xf32> {weft.bounded = array<i64: 0, -1>}, %w: tensor<8x4xf32>,
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>}) -> tensor<64x4xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = call @counts_0(%sizes) : (tensor<1xi64>) -> tensor<64x4xi1>
  %1 = call @dot_general_0(%x, %w, %0)
    : (tensor<64x8xf32>, tensor<8x4xf32>, tensor<64x4xi1>) -> tensor<64x4xf32>
  return %1 : tensor<64x4xf32>
}

// -----

// Rows of each matrix of a batch.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK-SAME: weft.bound = array<i64: 1, 0, 64, 1>
func.func private @elementwise_0(%x: tensor<2x64xf32>) -> tensor<2x64xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.exp %x : tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
func.func @main(%x: tensor<2x64xf32> {weft.bounded = array<i64: -1, 0>},
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>}) -> tensor<2x64xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = call @elementwise_0(%x) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// -----

// Of hidden keys an attention reads the blocks with one that counts.
#keys = #weft.layout<[0, 2, 1, 3], tile 2 by 64>
// CHECK-LABEL: func.func private @hidden_0
// CHECK-SAME: weft.bound = array<i64: 1, 0, 128, 1>
func.func private @hidden_0(%sizes: tensor<1xi64>, %x: tensor<1x4x128x16xf32, #keys>)
    -> tensor<1x4x128x16xf32, #keys> attributes {weft.kernel = "nest"} {
  %0 = weft.iota 2 : tensor<1x4x128x16xi64, #keys>
  %1 = weft.reshape %sizes : tensor<1xi64> -> tensor<i64>
  %2 = weft.broadcast_in_dim %1 dims [] : tensor<i64> -> tensor<1x4x128x16xi64, #keys>
  %3 = weft.cmp <lt> %0, %2 : tensor<1x4x128x16xi64, #keys> -> tensor<1x4x128x16xi1, #keys>
  %4 = weft.constant dense<0.0> : tensor<1x4x128x16xf32, #keys>
  %5 = weft.select %3, %x, %4 : tensor<1x4x128x16xi1, #keys>, tensor<1x4x128x16xf32, #keys>
  return %5 : tensor<1x4x128x16xf32, #keys>
}
// CHECK-LABEL: func.func private @attention_0
// CHECK-SAME: weft.bound = array<i64: 0, -1, 0>
func.func private @attention_0(%q: tensor<1x4x128x16xf32, #keys>, %k: tensor<1x4x128x16xf32, #keys>,
                               %v: tensor<1x4x128x16xf32, #keys>) -> tensor<1x4x128x16xf32, #keys>
    attributes {weft.kernel = "attention"} {
  %0 = weft.attention %q, %k, %v causal false scale 0.25
    : tensor<1x4x128x16xf32, #keys>, tensor<1x4x128x16xf32, #keys>, tensor<1x4x128x16xf32, #keys>
    -> tensor<1x4x128x16xf32, #keys>
  return %0 : tensor<1x4x128x16xf32, #keys>
}
func.func @main(%x: tensor<1x4x128x16xf32, #keys> {weft.bounded = array<i64: -1, -1, 0, -1>},
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 128>})
    -> tensor<1x4x128x16xf32, #keys> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @hidden_0(%sizes, %x)
    : (tensor<1xi64>, tensor<1x4x128x16xf32, #keys>) -> tensor<1x4x128x16xf32, #keys>
  %1 = call @attention_0(%x, %0, %0)
    : (tensor<1x4x128x16xf32, #keys>, tensor<1x4x128x16xf32, #keys>, tensor<1x4x128x16xf32, #keys>)
    -> tensor<1x4x128x16xf32, #keys>
  return %1 : tensor<1x4x128x16xf32, #keys>
}

// -----

// Calls that differ are computed in full.
// CHECK-NOT: weft.bound =
func.func private @elementwise_1(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @main(%y: tensor<64xf32> {weft.bounded = array<i64: 0>}, %z: tensor<64xf32>,
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>})
    -> (tensor<64xf32>, tensor<64xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = call @elementwise_1(%y) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @elementwise_1(%z) : (tensor<64xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// What prepares weights has no sizes to give a kernel that it shares.
// CHECK-NOT: weft.bound =
// CHECK-LABEL: func.func @bind
// CHECK: call @elementwise_2(%{{.*}}) : (tensor<64xf32>) -> tensor<64xf32>
func.func private @elementwise_2(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @main(%y: tensor<64xf32> {weft.bounded = array<i64: 0>},
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>})
    -> tensor<64xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @elementwise_2(%y) : (tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @bind(%w: tensor<64xf32>) -> tensor<64xf32> attributes {weft.entry = #weft.entry<bind>} {
  %0 = call @elementwise_2(%w) : (tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Kernels that steps call, too, are not given the sizes.
// CHECK-NOT: weft.bound =
func.func private @elementwise_2(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
// CHECK: call @elementwise_2(%{{.*}}) : (tensor<64xf32>) -> tensor<64xf32>
func.func private @step(%s: tensor<64xf32>) -> tensor<64xf32> attributes {weft.step} {
  %0 = call @elementwise_2(%s) : (tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @main(%x: tensor<64xf32> {weft.bounded = array<i64: 0>},
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>}) -> tensor<64xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = call @elementwise_2(%x) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = weft.loop @step 4 reverse false carry(%0) over() with() : (tensor<64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// Rows of which each element of the padded dim has four.
// CHECK-LABEL: func.func private @elementwise_3
// CHECK-SAME: weft.bound = array<i64: 1, 0, 256, 0, 4>
func.func private @elementwise_3(%x: tensor<64x4x8xf32>) -> tensor<256x8xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.reshape %x : tensor<64x4x8xf32> -> tensor<256x8xf32>
  %1 = weft.exp %0 : tensor<256x8xf32>
  return %1 : tensor<256x8xf32>
}
// CHECK-LABEL: func.func private @elementwise_4
// CHECK-SAME: weft.bound = array<i64: 1, 0, 64, 0>
func.func private @elementwise_4(%x: tensor<256x8xf32>) -> tensor<64x32xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.neg %x : tensor<256x8xf32>
  %1 = weft.reshape %0 : tensor<256x8xf32> -> tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}
func.func @main(%x: tensor<64x4x8xf32> {weft.bounded = array<i64: 0, -1, -1>},
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>}) -> tensor<64x32xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = call @elementwise_3(%x) : (tensor<64x4x8xf32>) -> tensor<256x8xf32>
  %1 = call @elementwise_4(%0) : (tensor<256x8xf32>) -> tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}

// -----

// Padding within rows is no end of them.
// CHECK-NOT: weft.bound =
func.func private @elementwise_5(%x: tensor<4x64xf32>) -> tensor<256xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.reshape %x : tensor<4x64xf32> -> tensor<256xf32>
  %1 = weft.exp %0 : tensor<256xf32>
  return %1 : tensor<256xf32>
}
func.func @main(%x: tensor<4x64xf32> {weft.bounded = array<i64: -1, 0>},
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 64>}) -> tensor<256xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = call @elementwise_5(%x) : (tensor<4x64xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

// Windows with steps give what is a quotient of a size; three numbers behind the largest sizes say
// of each which one it is.
// CHECK-LABEL: func.func private @conv_0
// CHECK-SAME: weft.bound = array<i64: 1, 1, 15, 2>
func.func private @conv_0(%x: tensor<1x4x31x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x15x3xf32>
    attributes {weft.kernel = "contraction"} {
  %0 = weft.conv %x, %w strides [2, 2] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<1x4x31x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x15x3xf32>
  return %0 : tensor<1x4x15x3xf32>
}
func.func @main(%x: tensor<1x4x31x8xf32> {weft.bounded = array<i64: -1, -1, 0, -1>},
                %w: tensor<4x4x3x3xf32>,
                %sizes: tensor<2xi64> {weft.bounds = array<i64: 31, 15, 0, 0, 1, 0, -1, 2>})
    -> tensor<1x4x15x3xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @conv_0(%x, %w) : (tensor<1x4x31x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x15x3xf32>
  return %0 : tensor<1x4x15x3xf32>
}

// -----

// No symbol has the size that the windows give.
// CHECK-LABEL: func.func private @reduce_window_0
// CHECK-NOT: weft.bound
// CHECK-LABEL: func.func @main
func.func private @reduce_window_0(%x: tensor<31x8xf32>) -> tensor<14x8xf32>
    attributes {weft.kernel = "nest"} {
  %0 = weft.reduce_window <max> %x window [4, 1] strides [2, 1] dilations [1, 1]
    : tensor<31x8xf32> -> tensor<14x8xf32>
  return %0 : tensor<14x8xf32>
}
func.func @main(%x: tensor<31x8xf32> {weft.bounded = array<i64: 0, -1>},
                %sizes: tensor<2xi64> {weft.bounds = array<i64: 31, 15, 0, 0, 1, 0, -1, 2>})
    -> tensor<14x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @reduce_window_0(%x) : (tensor<31x8xf32>) -> tensor<14x8xf32>
  return %0 : tensor<14x8xf32>
}

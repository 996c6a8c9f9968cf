// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-fuse-kernels -weft-dedupe-kernels -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Layers of one shape call one kernel, each from its own line.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[A:.*]] = call @[[KERNEL:[a-z_0-9]+]](%[[X]], %{{.*}} loc({{.*}}"first"
// CHECK: %[[B:.*]] = call @[[KERNEL]](%[[A]], %{{.*}} loc({{.*}}"second"
// CHECK: return %[[B]]
// CHECK: func.func private @[[KERNEL]](
// CHECK-NOT: func.func
func.func @layers(%x: tensor<128x128xf32>, %w0: tensor<128x128xf32>, %w1: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.dot_general %x, %w0 batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32> loc("first")
  %1 = weft.tanh %0 : tensor<128x128xf32> loc("first")
  %2 = weft.dot_general %1, %w1 batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32> loc("second")
  %3 = weft.tanh %2 : tensor<128x128xf32> loc("second")
  return %3 : tensor<128x128xf32>
}

// -----

// Another attribute or another wiring is another kernel.
// CHECK-LABEL: func.func @different
// CHECK: call @[[A:[a-z_0-9]+]](
// CHECK: call @[[B:[a-z_0-9]+]](
// CHECK: call @[[C:[a-z_0-9]+]](
// CHECK-DAG: func.func private @[[A]](
// CHECK-DAG: func.func private @[[B]](
// CHECK-DAG: func.func private @[[C]](
func.func @different(%x: tensor<128x128xf32>, %y: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.dot_general %x, %y batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
  %1 = weft.dot_general %x, %y batch [] x [] contract [1] x [1] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
  %2 = weft.dot_general %x, %x batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
  return %0, %1, %2 : tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>
}

// -----

// Steps of a recurrent net read their rows from the start of an operand that their calls advance,
// by what the rows are apart in memory. What all of them read at one place stays there.
// CHECK-LABEL: func.func @steps
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: call @[[KERNEL:[a-z_0-9]+]](%[[X]], %{{[^)]*}})
// CHECK: %[[ROW:.*]] = weft.advance %[[X]] by 16 : tensor<4x3x8xf32>
// CHECK: call @[[KERNEL]](%[[ROW]], %{{[^)]*}})
// CHECK: func.func private @[[KERNEL]](
// CHECK-DAG: weft.slice %{{.*}} [0, 0, 0] to [4, 1, 8] by [1, 1, 1]
// CHECK-DAG: weft.slice %{{.*}} [4] to [12] by [1]
// CHECK-NOT: func.func private @reduce_1
func.func @steps(%x: tensor<4x3x8xf32>, %y: tensor<16xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {weft.entry = #weft.entry<main>} {
  %last = weft.slice %y [4] to [12] by [1] : tensor<16xf32> -> tensor<8xf32>
  %b = weft.broadcast_in_dim %last dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %0 = weft.slice %x [0, 0, 0] to [4, 1, 8] by [1, 1, 1] : tensor<4x3x8xf32> -> tensor<4x1x8xf32>
  %1 = weft.reshape %0 : tensor<4x1x8xf32> -> tensor<4x8xf32>
  %2 = weft.sub %1, %b : tensor<4x8xf32>
  %3 = weft.tanh %2 : tensor<4x8xf32>
  %t = weft.exp %3 : tensor<4x8xf32>
  %s = weft.reduce <sum> %t dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %4 = weft.slice %x [0, 2, 0] to [4, 3, 8] by [1, 1, 1] : tensor<4x3x8xf32> -> tensor<4x1x8xf32>
  %5 = weft.reshape %4 : tensor<4x1x8xf32> -> tensor<4x8xf32>
  %6 = weft.sub %5, %b : tensor<4x8xf32>
  %7 = weft.tanh %6 : tensor<4x8xf32>
  %t2 = weft.exp %7 : tensor<4x8xf32>
  %s2 = weft.reduce <sum> %t2 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %s, %s2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Through ops that leave memory as it is, in any layout; of a tiled dim by whole tiles.
// CHECK-LABEL: func.func @layouts
// CHECK-SAME: %[[X:[^:]*]]:{{.*}} %[[Y:[^:]*]]:
// CHECK: %[[FIRST:.*]] = weft.advance %[[X]] by 1 : tensor<6x4xf32, #weft.layout<[1, 0]>>
// CHECK: call @a(%[[FIRST]], %[[Y]])
// CHECK-DAG: %[[PART:.*]] = weft.advance %[[X]] by 3 : tensor<6x4xf32, #weft.layout<[1, 0]>>
// CHECK-DAG: %[[TILE:.*]] = weft.advance %[[Y]] by 64 : tensor<16x8xf32, #weft.layout<[0, 1], tile 0 by 8>>
// CHECK: call @a(%[[PART]], %[[TILE]])
// CHECK-NOT: func.func private @b
#columns = #weft.layout<[1, 0]>
#tiled = #weft.layout<[0, 1], tile 0 by 8>
func.func private @a(%x: tensor<6x4xf32, #columns>, %y: tensor<16x8xf32, #tiled>) -> (tensor<4x3xf32>, tensor<2x8xf32, #tiled>) attributes {weft.kernel = "nest"} {
  %0 = weft.transpose %x perm [1, 0] : tensor<6x4xf32, #columns> -> tensor<4x6xf32>
  %1 = weft.slice %0 [0, 1] to [4, 4] by [1, 1] : tensor<4x6xf32> -> tensor<4x3xf32>
  %2 = weft.slice %y [1, 0] to [3, 8] by [1, 1] : tensor<16x8xf32, #tiled> -> tensor<2x8xf32, #tiled>
  return %1, %2 : tensor<4x3xf32>, tensor<2x8xf32, #tiled>
}
func.func private @b(%x: tensor<6x4xf32, #columns>, %y: tensor<16x8xf32, #tiled>) -> (tensor<4x3xf32>, tensor<2x8xf32, #tiled>) attributes {weft.kernel = "nest"} {
  %0 = weft.transpose %x perm [1, 0] : tensor<6x4xf32, #columns> -> tensor<4x6xf32>
  %1 = weft.slice %0 [0, 3] to [4, 6] by [1, 1] : tensor<4x6xf32> -> tensor<4x3xf32>
  %2 = weft.slice %y [9, 0] to [11, 8] by [1, 1] : tensor<16x8xf32, #tiled> -> tensor<2x8xf32, #tiled>
  return %1, %2 : tensor<4x3xf32>, tensor<2x8xf32, #tiled>
}
func.func @layouts(%x: tensor<6x4xf32, #columns>, %y: tensor<16x8xf32, #tiled>) -> (tensor<4x3xf32>, tensor<4x3xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0:2 = call @a(%x, %y) : (tensor<6x4xf32, #columns>, tensor<16x8xf32, #tiled>) -> (tensor<4x3xf32>, tensor<2x8xf32, #tiled>)
  %1:2 = call @b(%x, %y) : (tensor<6x4xf32, #columns>, tensor<16x8xf32, #tiled>) -> (tensor<4x3xf32>, tensor<2x8xf32, #tiled>)
  return %0#0, %1#0 : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// What a kernel would have to move is not a part of its operand.
// CHECK-LABEL: func.func @moved
// CHECK: call @e(
// CHECK-NOT: weft.advance
// CHECK: call @f(
func.func private @e(%x: tensor<4x6xf32>) -> tensor<1x4xf32> attributes {weft.kernel = "nest"} {
  %0 = weft.transpose %x perm [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %1 = weft.slice %0 [0, 0] to [1, 4] by [1, 1] : tensor<6x4xf32> -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}
func.func private @f(%x: tensor<4x6xf32>) -> tensor<1x4xf32> attributes {weft.kernel = "nest"} {
  %0 = weft.transpose %x perm [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %1 = weft.slice %0 [5, 0] to [6, 4] by [1, 1] : tensor<6x4xf32> -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}
func.func @moved(%x: tensor<4x6xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = call @e(%x) : (tensor<4x6xf32>) -> tensor<1x4xf32>
  %1 = call @f(%x) : (tensor<4x6xf32>) -> tensor<1x4xf32>
  return %0, %1 : tensor<1x4xf32>, tensor<1x4xf32>
}

// -----

// An operand that is read as a whole, too, is nobody else's.
// CHECK-LABEL: func.func @whole
// CHECK: call @c(
// CHECK-NOT: weft.advance
// CHECK: call @d(
func.func private @c(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) attributes {weft.kernel = "nest"} {
  %0 = weft.slice %x [0] to [2] by [1] : tensor<4xf32> -> tensor<2xf32>
  %1 = weft.tanh %x : tensor<4xf32>
  return %0, %1 : tensor<2xf32>, tensor<4xf32>
}
func.func private @d(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) attributes {weft.kernel = "nest"} {
  %0 = weft.slice %x [2] to [4] by [1] : tensor<4xf32> -> tensor<2xf32>
  %1 = weft.tanh %x : tensor<4xf32>
  return %0, %1 : tensor<2xf32>, tensor<4xf32>
}
func.func @whole(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0:2 = call @c(%x) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>)
  %1:2 = call @d(%x) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>)
  return %0#0, %1#0 : tensor<2xf32>, tensor<2xf32>
}

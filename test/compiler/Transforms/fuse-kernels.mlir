// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-fuse-kernels | FileCheck %s

// Two reductions of one dim and what lies between them are one kernel.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-NEXT: %[[Y:.*]] = call @[[KERNEL:[a-z_0-9]+]](%[[X]]) :
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @[[KERNEL]]({{.*}}attributes {weft.kernel = "nest"}
// CHECK: weft.reduce <max>
// CHECK: weft.exp
// CHECK: weft.reduce <sum>
// CHECK: weft.div
// CHECK-NOT: func.func
func.func @softmax(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.entry = #weft.entry<main>} {
  %max = weft.reduce <max> %x dims [1] : tensor<64x128xf32> -> tensor<64xf32>
  %mb = weft.broadcast_in_dim %max dims [0] : tensor<64xf32> -> tensor<64x128xf32>
  %s = weft.sub %x, %mb : tensor<64x128xf32>
  %e = weft.exp %s : tensor<64x128xf32>
  %sum = weft.reduce <sum> %e dims [1] : tensor<64x128xf32> -> tensor<64xf32>
  %sb = weft.broadcast_in_dim %sum dims [0] : tensor<64xf32> -> tensor<64x128xf32>
  %d = weft.div %e, %sb : tensor<64x128xf32>
  return %d : tensor<64x128xf32>
}

// -----

// Residual and layer norm; the sum is needed elsewhere and becomes a result.
// CHECK-LABEL: func.func @norm
// CHECK-NEXT: %[[Y:.*]]:2 = call @[[KERNEL:[a-z_0-9]+]](
// CHECK-NEXT: return %[[Y]]#0, %[[Y]]#1
// CHECK: func.func private @[[KERNEL]]({{.*}}attributes {weft.kernel = "nest"}
// CHECK: %[[SUM:.*]] = weft.add
// CHECK: weft.rsqrt
// CHECK: return %[[SUM]], %{{.*}}
// CHECK-NOT: func.func
func.func @norm(%x: tensor<1x128x768xf32>, %r: tensor<1x128x768xf32>, %w: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<1x128x768xf32>, tensor<1x128x768xf32>) attributes {weft.entry = #weft.entry<main>} {
  %n = weft.constant dense<0.0013020833> : tensor<1x128xf32>
  %eps = weft.constant dense<1.0e-05> : tensor<1x128xf32>
  %h = weft.add %x, %r : tensor<1x128x768xf32>
  %s = weft.reduce <sum> %h dims [2] : tensor<1x128x768xf32> -> tensor<1x128xf32>
  %m = weft.mul %s, %n : tensor<1x128xf32>
  %mb = weft.broadcast_in_dim %m dims [0, 1] : tensor<1x128xf32> -> tensor<1x128x768xf32>
  %c = weft.sub %h, %mb : tensor<1x128x768xf32>
  %q = weft.mul %c, %c : tensor<1x128x768xf32>
  %v = weft.reduce <sum> %q dims [2] : tensor<1x128x768xf32> -> tensor<1x128xf32>
  %v1 = weft.mul %v, %n : tensor<1x128xf32>
  %v2 = weft.add %v1, %eps : tensor<1x128xf32>
  %v3 = weft.rsqrt %v2 : tensor<1x128xf32>
  %vb = weft.broadcast_in_dim %v3 dims [0, 1] : tensor<1x128xf32> -> tensor<1x128x768xf32>
  %y = weft.mul %c, %vb : tensor<1x128x768xf32>
  %wb = weft.broadcast_in_dim %w dims [2] : tensor<768xf32> -> tensor<1x128x768xf32>
  %bb = weft.broadcast_in_dim %b dims [2] : tensor<768xf32> -> tensor<1x128x768xf32>
  %yw = weft.mul %y, %wb : tensor<1x128x768xf32>
  %o = weft.add %yw, %bb : tensor<1x128x768xf32>
  return %h, %o : tensor<1x128x768xf32>, tensor<1x128x768xf32>
}

// -----

// Bias, gelu and residual are epilogues; two contractions stay two kernels.
// CHECK-LABEL: func.func @mlp
// CHECK-NEXT: %[[H:.*]] = call @[[UP:dot_general[a-z_0-9]+]](
// CHECK-NEXT: %[[Y:.*]] = call @[[DOWN:dot_general[a-z_0-9]+]](%[[H]],
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @[[UP]]({{.*}}attributes {weft.kernel = "contraction"}
// CHECK: weft.erf
// CHECK: func.func private @[[DOWN]](%{{.*}}, %{{.*}}, %{{.*}}, %[[RESIDUAL:[^:]*]]:
// CHECK: weft.dot_general
// CHECK: weft.add %{{.*}}, %[[RESIDUAL]]
// CHECK-NOT: func.func
func.func @mlp(%x: tensor<1x128x768xf32>, %w1: tensor<3072x768xf32>, %b1: tensor<3072xf32>, %w2: tensor<768x3072xf32>, %b2: tensor<768xf32>) -> tensor<1x128x768xf32> attributes {weft.entry = #weft.entry<main>} {
  %d = weft.dot_general %x, %w1 batch [] x [] contract [2] x [1] : tensor<1x128x768xf32>, tensor<3072x768xf32> -> tensor<1x128x3072xf32>
  %bb = weft.broadcast_in_dim %b1 dims [2] : tensor<3072xf32> -> tensor<1x128x3072xf32>
  %a = weft.add %d, %bb : tensor<1x128x3072xf32>
  %half = weft.constant dense<0.5> : tensor<1x128x3072xf32>
  %c = weft.constant dense<0.707106781> : tensor<1x128x3072xf32>
  %ac = weft.mul %a, %c : tensor<1x128x3072xf32>
  %e = weft.erf %ac : tensor<1x128x3072xf32>
  %one = weft.constant dense<1.0> : tensor<1x128x3072xf32>
  %e1 = weft.add %e, %one : tensor<1x128x3072xf32>
  %ah = weft.mul %a, %half : tensor<1x128x3072xf32>
  %g = weft.mul %ah, %e1 : tensor<1x128x3072xf32>
  %d2 = weft.dot_general %g, %w2 batch [] x [] contract [2] x [1] : tensor<1x128x3072xf32>, tensor<768x3072xf32> -> tensor<1x128x768xf32>
  %bb2 = weft.broadcast_in_dim %b2 dims [2] : tensor<768xf32> -> tensor<1x128x768xf32>
  %a2 = weft.add %d2, %bb2 : tensor<1x128x768xf32>
  %r = weft.add %a2, %x : tensor<1x128x768xf32>
  return %r : tensor<1x128x768xf32>
}

// -----

// Reductions of different dims are two kernels; their producer is computed once.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT: %[[A:.*]]:2 = call @[[FIRST:[a-z_0-9]+]](
// CHECK-NEXT: %[[B:.*]] = call @[[SECOND:[a-z_0-9]+]](%[[A]]#0)
// CHECK-NEXT: return %[[A]]#1, %[[B]]
// CHECK: func.func private @[[FIRST]](
// CHECK: weft.exp
// CHECK: func.func private @[[SECOND]](
// CHECK-NOT: weft.exp
func.func @shared(%x: tensor<128x256xf32>) -> (tensor<128xf32>, tensor<256xf32>) attributes {weft.entry = #weft.entry<main>} {
  %e = weft.exp %x : tensor<128x256xf32>
  %a = weft.reduce <sum> %e dims [1] : tensor<128x256xf32> -> tensor<128xf32>
  %b = weft.reduce <sum> %e dims [0] : tensor<128x256xf32> -> tensor<256xf32>
  return %a, %b : tensor<128xf32>, tensor<256xf32>
}

// -----

// A kernel cannot wait for a fallback that waits for it.
// CHECK-LABEL: func.func @cycle
// CHECK-NEXT: %[[E:.*]] = call @[[FIRST:[a-z_0-9]+]](
// CHECK-NEXT: %[[F:.*]] = weft.torch_fallback "aten.foo.default"(%[[E]])
// CHECK-NEXT: %[[Y:.*]] = call @[[SECOND:[a-z_0-9]+]](%[[E]], %[[F]])
// CHECK-NEXT: return %[[Y]]
func.func @cycle(%x: tensor<128x256xf32>) -> tensor<128x256xf32> attributes {weft.entry = #weft.entry<main>} {
  %e = weft.exp %x : tensor<128x256xf32>
  %f = weft.torch_fallback "aten.foo.default"(%e) "[{\"tensor\": 0}]" : (tensor<128x256xf32>) -> tensor<128x256xf32>
  %s = weft.add %e, %f : tensor<128x256xf32>
  return %s : tensor<128x256xf32>
}

// -----

// What a kernel would need on rows and on columns is computed ahead of it.
// CHECK-LABEL: func.func @pairwise
// CHECK-NEXT: %[[E:.*]] = call @{{.*}} -> tensor<128xf32>
// CHECK-NEXT: %[[Y:.*]] = call @{{[a-z_0-9]+}}(%[[E]])
// CHECK-NEXT: return %[[Y]]
func.func @pairwise(%x: tensor<128xf32>) -> tensor<128x128xf32> attributes {weft.entry = #weft.entry<main>} {
  %e = weft.exp %x : tensor<128xf32>
  %a = weft.broadcast_in_dim %e dims [0] : tensor<128xf32> -> tensor<128x128xf32>
  %b = weft.broadcast_in_dim %e dims [1] : tensor<128xf32> -> tensor<128x128xf32>
  %s = weft.sub %a, %b : tensor<128x128xf32>
  return %s : tensor<128x128xf32>
}

// -----

// Reductions of one tensor that nothing else joins.
// CHECK-LABEL: func.func @siblings
// CHECK-NEXT: %[[Y:.*]]:2 = call @{{[a-z_0-9]+}}(
// CHECK-NEXT: return %[[Y]]#0, %[[Y]]#1
func.func @siblings(%x: tensor<128x256xf32>) -> (tensor<128xf32>, tensor<128xf32>) attributes {weft.entry = #weft.entry<main>} {
  %a = weft.reduce <sum> %x dims [1] : tensor<128x256xf32> -> tensor<128xf32>
  %q = weft.mul %x, %x : tensor<128x256xf32>
  %b = weft.reduce <sum> %q dims [1] : tensor<128x256xf32> -> tensor<128xf32>
  return %a, %b : tensor<128xf32>, tensor<128xf32>
}

// -----

// A pad takes its producer, but a convolution does not take the pad.
// CHECK-LABEL: func.func @conv
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-NEXT: %[[P:.*]] = call @[[PAD:[a-z_0-9]+]](%[[X]])
// CHECK-NEXT: %[[Y:.*]] = call @[[CONV:[a-z_0-9]+]](%[[P]],
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @[[PAD]]({{.*}}attributes {weft.kernel = "nest"}
// CHECK: weft.max
// CHECK: weft.pad
// CHECK: func.func private @[[CONV]]({{.*}}attributes {weft.kernel = "contraction"}
// CHECK: weft.conv
// CHECK: weft.mul
// CHECK: weft.max
func.func @conv(%x: tensor<1x64x30x30xf32>, %w: tensor<64x64x3x3xf32>, %s: tensor<64xf32>) -> tensor<1x64x30x30xf32> attributes {weft.entry = #weft.entry<main>} {
  %zero = weft.constant dense<0.0> : tensor<f32>
  %r = weft.constant dense<0.0> : tensor<1x64x30x30xf32>
  %a = weft.max %x, %r : tensor<1x64x30x30xf32>
  %p = weft.pad %a, %zero low [0, 0, 1, 1] high [0, 0, 1, 1] : tensor<1x64x30x30xf32>, tensor<f32> -> tensor<1x64x32x32xf32>
  %c = weft.conv %p, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x64x32x32xf32>, tensor<64x64x3x3xf32> -> tensor<1x64x30x30xf32>
  %sb = weft.broadcast_in_dim %s dims [1] : tensor<64xf32> -> tensor<1x64x30x30xf32>
  %m = weft.mul %c, %sb : tensor<1x64x30x30xf32>
  %y = weft.max %m, %r : tensor<1x64x30x30xf32>
  return %y : tensor<1x64x30x30xf32>
}

// -----

// A contraction stores its result between the borders of what others read.
// CHECK-LABEL: func.func @borders
// CHECK-NEXT: %[[P:.*]]:2 = call @[[FIRST:[a-z_0-9]+]](
// CHECK-NEXT: %[[Y:.*]] = call @{{[a-z_0-9]+}}(%[[P]]#0,
// CHECK-NEXT: %[[E:.*]] = call @{{[a-z_0-9]+}}(%[[P]]#1)
// CHECK-NEXT: return %[[Y]], %[[E]]
// CHECK: func.func private @[[FIRST]](
// CHECK-NEXT: weft.conv
// CHECK: weft.max
// CHECK-NEXT: weft.pad
// CHECK-NEXT: weft.pad
// CHECK-NEXT: return
#nhwc = #weft.layout<[0, 2, 3, 1]>
func.func @borders(%x: tensor<1x16x8x8xf32, #nhwc>, %w: tensor<32x16x1x1xf32>, %v: tensor<32x32x3x3xf32>) -> (tensor<1x32x8x8xf32, #nhwc>, tensor<1x32x9x8xf32, #nhwc>) attributes {weft.entry = #weft.entry<main>} {
  %zero = weft.constant dense<0.0> : tensor<f32>
  %zeros = weft.broadcast_in_dim %zero dims [] : tensor<f32> -> tensor<1x32x8x8xf32, #nhwc>
  %c = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x16x8x8xf32, #nhwc>, tensor<32x16x1x1xf32> -> tensor<1x32x8x8xf32, #nhwc>
  %r = weft.max %c, %zeros : tensor<1x32x8x8xf32, #nhwc>
  %p = weft.pad %r, %zero low [0, 0, 1, 1] high [0, 0, 1, 1] : tensor<1x32x8x8xf32, #nhwc>, tensor<f32> -> tensor<1x32x10x10xf32, #nhwc>
  %y = weft.conv %p, %v strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x32x10x10xf32, #nhwc>, tensor<32x32x3x3xf32> -> tensor<1x32x8x8xf32, #nhwc>
  %q = weft.pad %r, %zero low [0, 0, 1, 0] high [0, 0, 0, 0] : tensor<1x32x8x8xf32, #nhwc>, tensor<f32> -> tensor<1x32x9x8xf32, #nhwc>
  %e = weft.exp %q : tensor<1x32x9x8xf32, #nhwc>
  return %y, %e : tensor<1x32x8x8xf32, #nhwc>, tensor<1x32x9x8xf32, #nhwc>
}

// -----

// The right side walks its free dim in steps, the left one the summed dim: the right one is
// stored as the product sees it.
// CHECK-LABEL: func.func @stored_view
// CHECK-NEXT: %[[T:.*]] = call @[[COPY:transpose_[0-9]+]](%arg1)
// CHECK-NEXT: call @{{.*}}(%arg0, %[[T]])
// CHECK: func.func private @{{.*}}attributes {weft.kernel = "nest"}
func.func @stored_view(%x: tensor<4x16x32xf32>, %w: tensor<4x24x16xf32>) -> tensor<4x32x24xf32> attributes {weft.entry = #weft.entry<main>} {
  %xt = weft.transpose %x perm [0, 2, 1] : tensor<4x16x32xf32> -> tensor<4x32x16xf32>
  %wt = weft.transpose %w perm [0, 2, 1] : tensor<4x24x16xf32> -> tensor<4x16x24xf32>
  %y = weft.dot_general %xt, %wt batch [0] x [0] contract [2] x [1] : tensor<4x32x16xf32>, tensor<4x16x24xf32> -> tensor<4x32x24xf32>
  return %y : tensor<4x32x24xf32>
}

// -----

// Both are contiguous along the summed dim: dot products read them where they lie.
// CHECK-LABEL: func.func @views_of_dot_products
// CHECK-NEXT: call @{{.*}}(%arg0, %arg1)
// CHECK-NEXT: return
func.func @views_of_dot_products(%x: tensor<4x32x16xf32>, %w: tensor<4x24x16xf32>) -> tensor<4x32x24xf32> attributes {weft.entry = #weft.entry<main>} {
  %wt = weft.transpose %w perm [0, 2, 1] : tensor<4x24x16xf32> -> tensor<4x16x24xf32>
  %y = weft.dot_general %x, %wt batch [0] x [0] contract [2] x [1] : tensor<4x32x16xf32>, tensor<4x16x24xf32> -> tensor<4x32x24xf32>
  return %y : tensor<4x32x24xf32>
}

// -----

// Single elements are gathered once, ahead of the three passes of a norm.
// CHECK-LABEL: func.func @gathered_norm
// CHECK-NEXT: %[[G:.*]] = call @[[GATHER:[a-z_0-9]+]](%arg0, %arg1)
// CHECK-NEXT: call @{{.*}}(%[[G]])
// CHECK: func.func private @[[GATHER]]
// CHECK-NEXT: weft.gather
// CHECK-NEXT: return
func.func @gathered_norm(%x: tensor<32x64xf32>, %i: tensor<128xi64>) -> tensor<128x32xf32> attributes {weft.entry = #weft.entry<main>} {
  %g = weft.gather %x[%i] dims [1] : tensor<32x64xf32>, tensor<128xi64> -> tensor<128x32xf32>
  %max = weft.reduce <max> %g dims [1] : tensor<128x32xf32> -> tensor<128xf32>
  %mb = weft.broadcast_in_dim %max dims [0] : tensor<128xf32> -> tensor<128x32xf32>
  %s = weft.sub %g, %mb : tensor<128x32xf32>
  %sum = weft.reduce <sum> %s dims [1] : tensor<128x32xf32> -> tensor<128xf32>
  %sb = weft.broadcast_in_dim %sum dims [0] : tensor<128xf32> -> tensor<128x32xf32>
  %d = weft.div %s, %sb : tensor<128x32xf32>
  return %d : tensor<128x32xf32>
}

// -----

// Groups of channels are reduced: rows that lie in another order are moved once, ahead.
// CHECK-LABEL: func.func @group_sums
// CHECK-NEXT: %[[T:.*]] = call @[[MOVE:relayout_[0-9]+]](%arg0)
// CHECK-NEXT: call @{{.*}}(%[[T]])
func.func @group_sums(%x: tensor<1x32x8x8xf32, #weft.layout<[0, 2, 3, 1]>>) -> tensor<1x8x4x8x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %r = weft.relayout %x : tensor<1x32x8x8xf32, #weft.layout<[0, 2, 3, 1]>> -> tensor<1x32x8x8xf32>
  %v = weft.reshape %r : tensor<1x32x8x8xf32> -> tensor<1x8x4x8x8xf32>
  %sum = weft.reduce <sum> %v dims [2, 3, 4] : tensor<1x8x4x8x8xf32> -> tensor<1x8xf32>
  %b = weft.broadcast_in_dim %sum dims [0, 1] : tensor<1x8xf32> -> tensor<1x8x4x8x8xf32>
  %d = weft.div %v, %b : tensor<1x8x4x8x8xf32>
  return %d : tensor<1x8x4x8x8xf32>
}

// -----

// Single channels are: vectors run along them, and the result takes its own order by another kernel.
// CHECK-LABEL: func.func @turned_norm
// CHECK-NEXT: %[[S:.*]] = call @[[SUM:reduce_[0-9]+]](%arg0)
// CHECK-NEXT: call @[[MOVE:relayout_[0-9]+]](%[[S]])
// CHECK-NEXT: return
func.func @turned_norm(%x: tensor<1x32x8x8xf32, #weft.layout<[0, 2, 3, 1]>>) -> tensor<1x32x8x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %r = weft.relayout %x : tensor<1x32x8x8xf32, #weft.layout<[0, 2, 3, 1]>> -> tensor<1x32x8x8xf32>
  %sum = weft.reduce <sum> %r dims [2, 3] : tensor<1x32x8x8xf32> -> tensor<1x32xf32>
  %b = weft.broadcast_in_dim %sum dims [0, 1] : tensor<1x32xf32> -> tensor<1x32x8x8xf32>
  %d = weft.div %r, %b : tensor<1x32x8x8xf32>
  %t = weft.relayout %d : tensor<1x32x8x8xf32> -> tensor<1x32x8x8xf32, #weft.layout<[0, 2, 3, 1]>>
  %e = weft.exp %t : tensor<1x32x8x8xf32, #weft.layout<[0, 2, 3, 1]>>
  %o = weft.relayout %e : tensor<1x32x8x8xf32, #weft.layout<[0, 2, 3, 1]>> -> tensor<1x32x8x8xf32>
  return %o : tensor<1x32x8x8xf32>
}

// -----

// A flattened image is turned as an image: its places in the row need no division.
// CHECK-LABEL: func.func @flattened
// CHECK-NEXT: %[[T:.*]] = call @[[MOVE:relayout_[0-9]+]](%arg0)
// CHECK-NEXT: call @[[DOT:dot_general_[0-9]+]](%[[T]], %arg1)
// CHECK: func.func private @[[MOVE]](
// CHECK-NOT: weft.reshape
// CHECK: func.func private @[[DOT]](
// CHECK: weft.reshape
func.func @flattened(%x: tensor<2x32x7x7xf32, #weft.layout<[0, 2, 3, 1]>>, %w: tensor<10x1568xf32>) -> tensor<2x10xf32> attributes {weft.entry = #weft.entry<main>} {
  %r = weft.relayout %x : tensor<2x32x7x7xf32, #weft.layout<[0, 2, 3, 1]>> -> tensor<2x32x7x7xf32>
  %v = weft.reshape %r : tensor<2x32x7x7xf32> -> tensor<2x1568xf32>
  %y = weft.dot_general %v, %w batch [] x [] contract [1] x [1] : tensor<2x1568xf32>, tensor<10x1568xf32> -> tensor<2x10xf32>
  return %y : tensor<2x10xf32>
}

// -----

// Rows of 12 elements in tiles of 8, of one tensor: loops over tiles would reduce each row again for
// every element. Neither what is read from such tiles nor what goes into them joins the reductions.
// CHECK-LABEL: func.func @cut_rows
// CHECK-NEXT: %[[T:.*]] = call @relayout_{{[0-9]+}}(%arg0)
// CHECK-NEXT: %[[S:.*]] = call @[[ROWS:reduce_[0-9]+]](%[[T]])
// CHECK-NEXT: call @relayout_{{[0-9]+}}(%[[S]])
// CHECK-NEXT: return
// CHECK: func.func private @[[ROWS]](
// CHECK-NOT: weft.relayout
// CHECK: return
func.func @cut_rows(%x: tensor<60x4xf32, #weft.layout<[0, 1], tile 0 by 8>>) -> tensor<60x4xf32, #weft.layout<[0, 1], tile 0 by 8>> attributes {weft.entry = #weft.entry<main>} {
  %r = weft.relayout %x : tensor<60x4xf32, #weft.layout<[0, 1], tile 0 by 8>> -> tensor<60x4xf32>
  %v = weft.reshape %r : tensor<60x4xf32> -> tensor<5x12x4xf32>
  %max = weft.reduce <max> %v dims [1] : tensor<5x12x4xf32> -> tensor<5x4xf32>
  %b = weft.broadcast_in_dim %max dims [0, 2] : tensor<5x4xf32> -> tensor<5x12x4xf32>
  %e = weft.sub %v, %b : tensor<5x12x4xf32>
  %sum = weft.reduce <sum> %e dims [1] : tensor<5x12x4xf32> -> tensor<5x4xf32>
  %c = weft.broadcast_in_dim %sum dims [0, 2] : tensor<5x4xf32> -> tensor<5x12x4xf32>
  %d = weft.div %e, %c : tensor<5x12x4xf32>
  %f = weft.reshape %d : tensor<5x12x4xf32> -> tensor<60x4xf32>
  %t = weft.relayout %f : tensor<60x4xf32> -> tensor<60x4xf32, #weft.layout<[0, 1], tile 0 by 8>>
  return %t : tensor<60x4xf32, #weft.layout<[0, 1], tile 0 by 8>>
}

// -----

// Tiles that hold whole rows do not.
// CHECK-LABEL: func.func @whole_rows
// CHECK-NEXT: call @reduce_{{[0-9]+}}(%arg0)
// CHECK-NEXT: return
func.func @whole_rows(%x: tensor<48x4xf32>) -> tensor<48x4xf32, #weft.layout<[0, 1], tile 0 by 8>> attributes {weft.entry = #weft.entry<main>} {
  %v = weft.reshape %x : tensor<48x4xf32> -> tensor<12x4x4xf32>
  %max = weft.reduce <max> %v dims [1] : tensor<12x4x4xf32> -> tensor<12x4xf32>
  %b = weft.broadcast_in_dim %max dims [0, 2] : tensor<12x4xf32> -> tensor<12x4x4xf32>
  %e = weft.sub %v, %b : tensor<12x4x4xf32>
  %sum = weft.reduce <sum> %e dims [1] : tensor<12x4x4xf32> -> tensor<12x4xf32>
  %c = weft.broadcast_in_dim %sum dims [0, 2] : tensor<12x4xf32> -> tensor<12x4x4xf32>
  %d = weft.div %e, %c : tensor<12x4x4xf32>
  %f = weft.reshape %d : tensor<12x4x4xf32> -> tensor<48x4xf32>
  %t = weft.relayout %f : tensor<48x4xf32> -> tensor<48x4xf32, #weft.layout<[0, 1], tile 0 by 8>>
  return %t : tensor<48x4xf32, #weft.layout<[0, 1], tile 0 by 8>>
}

// -----

// What a relayout turns in squares of vectors lies in memory, where its rows are made of runs or of
// parts; a border of zeros is no such part.
// CHECK-LABEL: func.func @turned_runs
// CHECK:         %[[TWICE:.*]] = call @{{.*}} : (tensor<1x8x6x6xf32>) -> tensor<1x8x12x12xf32>
// CHECK:         call @relayout_0(%[[TWICE]]) : (tensor<1x8x12x12xf32>) -> tensor<1x8x14x14xf32, #weft.layout<[0, 2, 3, 1]>>
// CHECK:       }
func.func @turned_runs(%x: tensor<1x8x6x6xf32>) -> tensor<1x8x14x14xf32, #weft.layout<[0, 2, 3, 1]>>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.broadcast_in_dim %x dims [0, 1, 2, 4] : tensor<1x8x6x6xf32> -> tensor<1x8x6x2x6x2xf32>
  %1 = weft.reshape %0 : tensor<1x8x6x2x6x2xf32> -> tensor<1x8x12x12xf32>
  %2 = weft.constant dense<0.0> : tensor<f32>
  %3 = weft.pad %1, %2 low [0, 0, 1, 1] high [0, 0, 1, 1] : tensor<1x8x12x12xf32>, tensor<f32> -> tensor<1x8x14x14xf32>
  %4 = weft.relayout %3 : tensor<1x8x14x14xf32> -> tensor<1x8x14x14xf32, #weft.layout<[0, 2, 3, 1]>>
  return %4 : tensor<1x8x14x14xf32, #weft.layout<[0, 2, 3, 1]>>
}

// -----

// CHECK-LABEL: func.func @turned_parts
// CHECK:         %[[ROWS:.*]] = call @concat_0
// CHECK:         call @relayout_0(%[[ROWS]])
func.func @turned_parts(%x: tensor<1x8x6x6xf32>, %y: tensor<1x8x6x1xf32>) -> tensor<1x8x6x7xf32, #weft.layout<[0, 2, 3, 1]>>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.concat %y, %x dim 3 : tensor<1x8x6x1xf32>, tensor<1x8x6x6xf32> -> tensor<1x8x6x7xf32>
  %1 = weft.relayout %0 : tensor<1x8x6x7xf32> -> tensor<1x8x6x7xf32, #weft.layout<[0, 2, 3, 1]>>
  return %1 : tensor<1x8x6x7xf32, #weft.layout<[0, 2, 3, 1]>>
}

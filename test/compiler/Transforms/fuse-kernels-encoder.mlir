// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-fuse-kernels | FileCheck %s

#t = #weft.layout<[0, 1, 2], tile 1 by 64>

// Lookup, sum, norm and relayout are one kernel; both layouts are results.
// CHECK-LABEL: func.func @embed
// CHECK-NEXT: %[[Y:.*]]:2 = call @[[KERNEL:[a-z_0-9]+]](
// CHECK-NEXT: return %[[Y]]#1, %[[Y]]#0
// CHECK: func.func private @[[KERNEL]]({{.*}}attributes {weft.kernel = "nest"}
// CHECK: %[[INDEX:.*]] = weft.select
// CHECK: weft.gather %{{.*}}[%[[INDEX]]]
// CHECK: weft.reduce
// CHECK: %[[ROWS:.*]] = weft.mul
// CHECK: %[[ROWS:.*]] = weft.mul
// CHECK-NEXT: %[[TILED:.*]] = weft.relayout %[[ROWS]]
// CHECK-NEXT: return %[[ROWS]], %[[TILED]]
// CHECK-NOT: func.func
func.func @embed(%ids: tensor<2x128xi64>, %word: tensor<30522x768xf32>, %pos: tensor<512x768xf32>, %w: tensor<768xf32>) -> (tensor<2x128x768xf32, #t>, tensor<2x128x768xf32>) attributes {weft.entry = #weft.entry<main>} {
  %zero = weft.constant dense<0> : tensor<2x128xi64>
  %vocab = weft.constant dense<30522> : tensor<2x128xi64>
  %neg = weft.cmp <lt> %ids, %zero : tensor<2x128xi64> -> tensor<2x128xi1>
  %up = weft.add %ids, %vocab : tensor<2x128xi64>
  %idx = weft.select %neg, %up, %ids : tensor<2x128xi1>, tensor<2x128xi64>
  %g = weft.gather %word[%idx] dims [0] : tensor<30522x768xf32>, tensor<2x128xi64> -> tensor<2x128x768xf32>
  %p = weft.slice %pos [0, 0] to [128, 768] by [1, 1] : tensor<512x768xf32> -> tensor<128x768xf32>
  %pb = weft.broadcast_in_dim %p dims [1, 2] : tensor<128x768xf32> -> tensor<2x128x768xf32>
  %h = weft.add %g, %pb : tensor<2x128x768xf32>
  %s = weft.reduce <sum> %h dims [2] : tensor<2x128x768xf32> -> tensor<2x128xf32>
  %n = weft.constant dense<0.0013020833> : tensor<2x128xf32>
  %m = weft.mul %s, %n : tensor<2x128xf32>
  %mb = weft.broadcast_in_dim %m dims [0, 1] : tensor<2x128xf32> -> tensor<2x128x768xf32>
  %c = weft.sub %h, %mb : tensor<2x128x768xf32>
  %wb = weft.broadcast_in_dim %w dims [2] : tensor<768xf32> -> tensor<2x128x768xf32>
  %o = weft.mul %c, %wb : tensor<2x128x768xf32>
  %t = weft.relayout %o : tensor<2x128x768xf32> -> tensor<2x128x768xf32, #t>
  return %t, %o : tensor<2x128x768xf32, #t>, tensor<2x128x768xf32>
}

// -----

#t = #weft.layout<[0, 1, 2], tile 1 by 64>

// Views of q, k, v and of the result belong to attention, and what of the mask is cheaper
// to compute than to load.
// CHECK-LABEL: func.func @attn
// CHECK-NEXT: %[[QKV:.*]]:3 = call @[[PROJECT:[a-z_0-9]+]](
// CHECK-NEXT: %[[KEEP:.*]] = call @{{[a-z_0-9]+}}(%{{.*}}) : (tensor<2x128xi64>) -> tensor<2x128xi1>
// CHECK-NEXT: %[[A:.*]] = call @[[ATTENTION:[a-z_0-9]+]](%[[QKV]]#0, %[[QKV]]#1, %[[QKV]]#2, %[[KEEP]])
// CHECK-NEXT: %[[O:.*]] = call @[[OUT:[a-z_0-9]+]](%[[A]],
// CHECK-NEXT: return %[[O]]
// CHECK: func.func private @[[PROJECT]]({{.*}}attributes {weft.kernel = "contraction"}
// CHECK: weft.multi_dot
// CHECK-COUNT-3: weft.add
// CHECK: func.func private @[[ATTENTION]]({{.*}}attributes {weft.kernel = "attention"}
// CHECK-COUNT-3: weft.transpose
// CHECK: weft.iota
// CHECK: weft.attention
// CHECK-NEXT: weft.transpose
// CHECK-NEXT: %[[STORED:.*]] = weft.reshape
// CHECK-NEXT: return %[[STORED]]
// CHECK: func.func private @[[OUT]](
// CHECK-NEXT: weft.dot_general
func.func @attn(%x: tensor<2x128x768xf32, #t>, %wq: tensor<768x768xf32>, %wk: tensor<768x768xf32>, %wv: tensor<768x768xf32>, %b: tensor<768xf32>, %wo: tensor<768x768xf32>, %mask: tensor<2x128xi64>) -> tensor<2x128x768xf32> attributes {weft.entry = #weft.entry<main>} {
  %q, %k, %v = weft.multi_dot %x with %wq, %wk, %wv contract [2] x [1] : tensor<2x128x768xf32, #t>, tensor<768x768xf32>, tensor<768x768xf32>, tensor<768x768xf32> -> tensor<2x128x768xf32>, tensor<2x128x768xf32>, tensor<2x128x768xf32>
  %bb = weft.broadcast_in_dim %b dims [2] : tensor<768xf32> -> tensor<2x128x768xf32>
  %q1 = weft.add %q, %bb : tensor<2x128x768xf32>
  %k1 = weft.add %k, %bb : tensor<2x128x768xf32>
  %v1 = weft.add %v, %bb : tensor<2x128x768xf32>
  %q2 = weft.reshape %q1 : tensor<2x128x768xf32> -> tensor<2x128x12x64xf32>
  %k2 = weft.reshape %k1 : tensor<2x128x768xf32> -> tensor<2x128x12x64xf32>
  %v2 = weft.reshape %v1 : tensor<2x128x768xf32> -> tensor<2x128x12x64xf32>
  %q3 = weft.transpose %q2 perm [0, 2, 1, 3] : tensor<2x128x12x64xf32> -> tensor<2x12x128x64xf32>
  %k3 = weft.transpose %k2 perm [0, 2, 1, 3] : tensor<2x128x12x64xf32> -> tensor<2x12x128x64xf32>
  %v3 = weft.transpose %v2 perm [0, 2, 1, 3] : tensor<2x128x12x64xf32> -> tensor<2x12x128x64xf32>
  %zero = weft.constant dense<0> : tensor<2x128xi64>
  %keep = weft.cmp <ne> %mask, %zero : tensor<2x128xi64> -> tensor<2x128xi1>
  %mb = weft.broadcast_in_dim %keep dims [0, 3] : tensor<2x128xi1> -> tensor<2x12x128x128xi1>
  %i = weft.iota 2 : tensor<2x12x128x128xi64>
  %j = weft.iota 3 : tensor<2x12x128x128xi64>
  %causal = weft.cmp <le> %j, %i : tensor<2x12x128x128xi64> -> tensor<2x12x128x128xi1>
  %m = weft.and %causal, %mb : tensor<2x12x128x128xi1>
  %a = weft.attention %q3, %k3, %v3 mask %m : tensor<2x12x128x128xi1> causal false scale 1.250000e-01 : tensor<2x12x128x64xf32>, tensor<2x12x128x64xf32>, tensor<2x12x128x64xf32> -> tensor<2x12x128x64xf32>
  %a1 = weft.transpose %a perm [0, 2, 1, 3] : tensor<2x12x128x64xf32> -> tensor<2x128x12x64xf32>
  %a2 = weft.reshape %a1 : tensor<2x128x12x64xf32> -> tensor<2x128x768xf32>
  %o = weft.dot_general %a2, %wo batch [] x [] contract [2] x [1] : tensor<2x128x768xf32>, tensor<768x768xf32> -> tensor<2x128x768xf32>
  return %o : tensor<2x128x768xf32>
}

// -----

// Slices and a concat of views and of a negation.
// CHECK-LABEL: func.func @rotary
// CHECK-NEXT: %[[Y:.*]] = call @[[KERNEL:[a-z_0-9]+]](
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @[[KERNEL]](
// CHECK: weft.neg
// CHECK: weft.concat
// CHECK-NOT: func.func
func.func @rotary(%q: tensor<1x128x768xf32>, %cos: tensor<128x64xf32>, %sin: tensor<128x64xf32>) -> tensor<1x12x128x64xf32> attributes {weft.entry = #weft.entry<main>} {
  %r = weft.reshape %q : tensor<1x128x768xf32> -> tensor<1x128x12x64xf32>
  %t = weft.transpose %r perm [0, 2, 1, 3] : tensor<1x128x12x64xf32> -> tensor<1x12x128x64xf32>
  %cb = weft.broadcast_in_dim %cos dims [2, 3] : tensor<128x64xf32> -> tensor<1x12x128x64xf32>
  %sb = weft.broadcast_in_dim %sin dims [2, 3] : tensor<128x64xf32> -> tensor<1x12x128x64xf32>
  %lo = weft.slice %t [0, 0, 0, 0] to [1, 12, 128, 32] by [1, 1, 1, 1] : tensor<1x12x128x64xf32> -> tensor<1x12x128x32xf32>
  %hi = weft.slice %t [0, 0, 0, 32] to [1, 12, 128, 64] by [1, 1, 1, 1] : tensor<1x12x128x64xf32> -> tensor<1x12x128x32xf32>
  %nh = weft.neg %hi : tensor<1x12x128x32xf32>
  %rot = weft.concat %nh, %lo dim 3 : tensor<1x12x128x32xf32>, tensor<1x12x128x32xf32> -> tensor<1x12x128x64xf32>
  %a = weft.mul %t, %cb : tensor<1x12x128x64xf32>
  %b = weft.mul %rot, %sb : tensor<1x12x128x64xf32>
  %o = weft.add %a, %b : tensor<1x12x128x64xf32>
  return %o : tensor<1x12x128x64xf32>
}

// -----

// Attention strides over its operands, but does not repeat them.
// CHECK-LABEL: func.func @gqa
// CHECK-NEXT: %[[K:.*]] = call @{{[a-z_0-9]+}}(%{{.*}}) : (tensor<1x2x128x64xf32>) -> tensor<1x2x4x128x64xf32>
// CHECK-NEXT: %[[Y:.*]] = call @[[ATTENTION:[a-z_0-9]+]](%{{.*}}, %[[K]])
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @[[ATTENTION]](
// CHECK-NEXT: weft.reshape
// CHECK-NEXT: weft.attention
func.func @gqa(%q: tensor<1x8x128x64xf32>, %k: tensor<1x2x128x64xf32>) -> tensor<1x8x128x64xf32> attributes {weft.entry = #weft.entry<main>} {
  %kb = weft.broadcast_in_dim %k dims [0, 1, 3, 4] : tensor<1x2x128x64xf32> -> tensor<1x2x4x128x64xf32>
  %kr = weft.reshape %kb : tensor<1x2x4x128x64xf32> -> tensor<1x8x128x64xf32>
  %a = weft.attention %q, %kr, %kr causal true scale 1.250000e-01 : tensor<1x8x128x64xf32>, tensor<1x8x128x64xf32>, tensor<1x8x128x64xf32> -> tensor<1x8x128x64xf32>
  return %a : tensor<1x8x128x64xf32>
}

// -----

// The rows of the sum and of the product are one, since both read x.
// CHECK-LABEL: func.func @rms
// CHECK-NEXT: %[[Y:.*]] = call @{{[a-z_0-9]+}}(
// CHECK-NEXT: return %[[Y]]
func.func @rms(%x: tensor<128x512xf32>) -> tensor<128x512xf32> attributes {weft.entry = #weft.entry<main>} {
  %q = weft.mul %x, %x : tensor<128x512xf32>
  %s = weft.reduce <sum> %q dims [1] : tensor<128x512xf32> -> tensor<128xf32>
  %r = weft.rsqrt %s : tensor<128xf32>
  %b = weft.broadcast_in_dim %r dims [0] : tensor<128xf32> -> tensor<128x512xf32>
  %y = weft.mul %x, %b : tensor<128x512xf32>
  return %y : tensor<128x512xf32>
}

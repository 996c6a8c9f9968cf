// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-fuse-kernels | FileCheck %s

// Asserts check one bool; arguments are returned as they are; results that are views are
// stored by the kernel of their source, or copied.
// CHECK-LABEL: func.func @boundary
// CHECK-SAME: %[[X:[^:]*]]: {{[^,]*}}, %[[IDS:[^:]*]]:
// CHECK-NEXT: %[[OK:.*]] = call @{{[a-z_0-9]+}}(%[[IDS]]) : (tensor<128xi64>) -> tensor<i1>
// CHECK-NEXT: weft.assert %[[OK]], "index out of range"
// CHECK-NEXT: %[[T:.*]] = call @[[COPY:[a-z_0-9]+]](%[[X]])
// CHECK-NEXT: %[[C:.*]] = call @{{[a-z_0-9]+}}() : () -> tensor<4xf32>
// CHECK-NEXT: %[[E:.*]] = call @[[EXP:[a-z_0-9]+]](%[[X]])
// CHECK-NEXT: %[[D:.*]] = call @{{[a-z_0-9]+}}(%[[X]])
// CHECK-NEXT: %[[F:.*]] = call @[[DOT:[a-z_0-9]+]](%[[D]], %[[X]])
// CHECK-NEXT: return %[[T]], %[[X]], %[[C]], %[[E]], %[[F]]
// CHECK: func.func private @[[COPY]](
// CHECK-NEXT: weft.transpose
// CHECK: func.func private @[[EXP]](
// CHECK-NEXT: weft.exp
// CHECK-NEXT: weft.reshape
// CHECK: func.func private @[[DOT]](
// CHECK-NEXT: weft.dot_general
// CHECK-NEXT: weft.reshape
func.func @boundary(%x: tensor<128x64xf32>, %ids: tensor<128xi64>) -> (tensor<64x128xf32>, tensor<128x64xf32>, tensor<4xf32>, tensor<128x8x8xf32>, tensor<2x64x64xf32>) attributes {weft.entry = #weft.entry<main>} {
  %zero = weft.constant dense<0> : tensor<128xi64>
  %ok = weft.cmp <ge> %ids, %zero : tensor<128xi64> -> tensor<128xi1>
  weft.assert %ok, "index out of range" : tensor<128xi1>
  %t = weft.transpose %x perm [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
  %c = weft.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = weft.exp %x : tensor<128x64xf32>
  %er = weft.reshape %e : tensor<128x64xf32> -> tensor<128x8x8xf32>
  %d = weft.dot_general %x, %x batch [] x [] contract [1] x [1] : tensor<128x64xf32>, tensor<128x64xf32> -> tensor<128x128xf32>
  %f = weft.dot_general %d, %x batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x64xf32> -> tensor<128x64xf32>
  %fr = weft.reshape %f : tensor<128x64xf32> -> tensor<2x64x64xf32>
  return %t, %x, %c, %er, %fr : tensor<64x128xf32>, tensor<128x64xf32>, tensor<4xf32>, tensor<128x8x8xf32>, tensor<2x64x64xf32>
}

// -----

// A kernel computes of its producer only what it slices out; a mean follows its sum.
// CHECK-LABEL: func.func @pool
// CHECK-NEXT: %[[Y:.*]]:2 = call @{{[a-z_0-9]+}}(
// CHECK-NEXT: return %[[Y]]#0, %[[Y]]#1
func.func @pool(%x: tensor<4x128x768xf32>) -> (tensor<4x768xf32>, tensor<f32>) attributes {weft.entry = #weft.entry<main>} {
  %e = weft.exp %x : tensor<4x128x768xf32>
  %s = weft.slice %e [0, 0, 0] to [4, 1, 768] by [1, 1, 1] : tensor<4x128x768xf32> -> tensor<4x1x768xf32>
  %r = weft.reshape %s : tensor<4x1x768xf32> -> tensor<4x768xf32>
  %t = weft.tanh %r : tensor<4x768xf32>
  %sum = weft.reduce <sum> %t dims [0, 1] : tensor<4x768xf32> -> tensor<f32>
  %c = weft.constant dense<3072.0> : tensor<f32>
  %mean = weft.div %sum, %c : tensor<f32>
  return %t, %mean : tensor<4x768xf32>, tensor<f32>
}

// -----

// Small results are computed once all the same when the caller wants them.
// CHECK-LABEL: func.func @tiny
// CHECK-NEXT: %[[Y:.*]]:3 = call @[[KERNEL:[a-z_0-9]+]](
// CHECK-NEXT: return %[[Y]]#0, %[[Y]]#1, %[[Y]]#2
// CHECK: func.func private @[[KERNEL]](
// CHECK-COUNT-1: weft.mul
// CHECK-NOT: weft.mul
func.func @tiny(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>) attributes {weft.entry = #weft.entry<main>} {
  %a = weft.add %x, %y : tensor<2x3xf32>
  %b = weft.mul %a, %y : tensor<2x3xf32>
  %t = weft.transpose %b perm [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %s = weft.reduce <sum> %b dims [1] : tensor<2x3xf32> -> tensor<2xf32>
  return %b, %t, %s : tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>
}

// -----

// Small states that a contraction reads are computed once.
// CHECK-LABEL: func.func @rnn
// CHECK-NEXT: %[[H1:.*]] = call @[[FIRST:[a-z_0-9]+]](
// CHECK-NEXT: %[[H2:.*]] = call @[[SECOND:[a-z_0-9]+]](%[[H1]],
// CHECK-NEXT: return %[[H2]]
// CHECK: func.func private @[[SECOND]](
// CHECK-COUNT-1: weft.tanh
// CHECK-NOT: weft.tanh
func.func @rnn(%x: tensor<3x1x8xf32>, %h0: tensor<1x8xf32>, %w: tensor<8x8xf32>) -> tensor<1x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %x0 = weft.slice %x [0, 0, 0] to [1, 1, 8] by [1, 1, 1] : tensor<3x1x8xf32> -> tensor<1x1x8xf32>
  %x0r = weft.reshape %x0 : tensor<1x1x8xf32> -> tensor<1x8xf32>
  %d0 = weft.dot_general %h0, %w batch [] x [] contract [1] x [0] : tensor<1x8xf32>, tensor<8x8xf32> -> tensor<1x8xf32>
  %s0 = weft.add %d0, %x0r : tensor<1x8xf32>
  %h1 = weft.tanh %s0 : tensor<1x8xf32>
  %d1 = weft.dot_general %h1, %w batch [] x [] contract [1] x [0] : tensor<1x8xf32>, tensor<8x8xf32> -> tensor<1x8xf32>
  %x1 = weft.slice %x [1, 0, 0] to [2, 1, 8] by [1, 1, 1] : tensor<3x1x8xf32> -> tensor<1x1x8xf32>
  %x1r = weft.reshape %x1 : tensor<1x1x8xf32> -> tensor<1x8xf32>
  %s1 = weft.add %d1, %x1r : tensor<1x8xf32>
  %h2 = weft.tanh %s1 : tensor<1x8xf32>
  return %h2 : tensor<1x8xf32>
}

// -----

// A window takes its epilogue, but not the pad.
// CHECK-LABEL: func.func @maxpool
// CHECK-NEXT: %[[P:.*]] = call @[[PAD:[a-z_0-9]+]](
// CHECK-NEXT: %[[Y:.*]] = call @[[POOL:[a-z_0-9]+]](%[[P]])
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @[[POOL]]({{.*}}attributes {weft.kernel = "nest"}
// CHECK-NEXT: weft.reduce_window
// CHECK-NEXT: weft.tanh
func.func @maxpool(%x: tensor<1x64x112x112xf32>) -> tensor<1x64x56x56xf32> attributes {weft.entry = #weft.entry<main>} {
  %ninf = weft.constant dense<0xFF800000> : tensor<f32>
  %p = weft.pad %x, %ninf low [0, 0, 1, 1] high [0, 0, 1, 1] : tensor<1x64x112x112xf32>, tensor<f32> -> tensor<1x64x114x114xf32>
  %m = weft.reduce_window <max> %p window [1, 1, 3, 3] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] : tensor<1x64x114x114xf32> -> tensor<1x64x56x56xf32>
  %t = weft.tanh %m : tensor<1x64x56x56xf32>
  return %t : tensor<1x64x56x56xf32>
}

// -----

// Axes are found through reshapes: the groups of the reduction, the channels of the scale.
// CHECK-LABEL: func.func @groupnorm
// CHECK-NEXT: %[[Y:.*]] = call @{{[a-z_0-9]+}}(
// CHECK-NEXT: return %[[Y]]
func.func @groupnorm(%x: tensor<2x320x32x32xf32>, %w: tensor<320xf32>) -> tensor<2x320x32x32xf32> attributes {weft.entry = #weft.entry<main>} {
  %r = weft.reshape %x : tensor<2x320x32x32xf32> -> tensor<2x32x10240xf32>
  %s = weft.reduce <sum> %r dims [2] : tensor<2x32x10240xf32> -> tensor<2x32xf32>
  %n = weft.constant dense<0.0001> : tensor<2x32xf32>
  %m = weft.mul %s, %n : tensor<2x32xf32>
  %mb = weft.broadcast_in_dim %m dims [0, 1] : tensor<2x32xf32> -> tensor<2x32x10240xf32>
  %c = weft.sub %r, %mb : tensor<2x32x10240xf32>
  %q = weft.mul %c, %c : tensor<2x32x10240xf32>
  %v = weft.reduce <sum> %q dims [2] : tensor<2x32x10240xf32> -> tensor<2x32xf32>
  %rs = weft.rsqrt %v : tensor<2x32xf32>
  %vb = weft.broadcast_in_dim %rs dims [0, 1] : tensor<2x32xf32> -> tensor<2x32x10240xf32>
  %y = weft.mul %c, %vb : tensor<2x32x10240xf32>
  %back = weft.reshape %y : tensor<2x32x10240xf32> -> tensor<2x320x32x32xf32>
  %wb = weft.broadcast_in_dim %w dims [1] : tensor<320xf32> -> tensor<2x320x32x32xf32>
  %o = weft.mul %back, %wb : tensor<2x320x32x32xf32>
  %sig = weft.sigmoid %o : tensor<2x320x32x32xf32>
  %z = weft.mul %o, %sig : tensor<2x320x32x32xf32>
  return %z : tensor<2x320x32x32xf32>
}

// -----

// What is looked up at computed places has been computed before.
// CHECK-LABEL: func.func @nll
// CHECK-NEXT: %[[D:.*]] = call @{{[a-z_0-9]+}}(
// CHECK-NEXT: %[[L:.*]] = call @{{[a-z_0-9]+}}(%[[D]])
// CHECK-NEXT: %[[Y:.*]] = call @{{[a-z_0-9]+}}(%[[L]],
// CHECK-NEXT: return %[[Y]]
func.func @nll(%x: tensor<128x256xf32>, %w: tensor<256x1000xf32>, %y: tensor<128xi64>) -> tensor<f32> attributes {weft.entry = #weft.entry<main>} {
  %d = weft.dot_general %x, %w batch [] x [] contract [1] x [0] : tensor<128x256xf32>, tensor<256x1000xf32> -> tensor<128x1000xf32>
  %max = weft.reduce <max> %d dims [1] : tensor<128x1000xf32> -> tensor<128xf32>
  %mb = weft.broadcast_in_dim %max dims [0] : tensor<128xf32> -> tensor<128x1000xf32>
  %s = weft.sub %d, %mb : tensor<128x1000xf32>
  %e = weft.exp %s : tensor<128x1000xf32>
  %sum = weft.reduce <sum> %e dims [1] : tensor<128x1000xf32> -> tensor<128xf32>
  %l = weft.log %sum : tensor<128xf32>
  %lb = weft.broadcast_in_dim %l dims [0] : tensor<128xf32> -> tensor<128x1000xf32>
  %lp = weft.sub %s, %lb : tensor<128x1000xf32>
  %i = weft.iota 0 : tensor<128xi64>
  %g = weft.gather %lp[%i, %y] dims [0, 1] : tensor<128x1000xf32>, tensor<128xi64>, tensor<128xi64> -> tensor<128xf32>
  %t = weft.reduce <sum> %g dims [0] : tensor<128xf32> -> tensor<f32>
  %c = weft.constant dense<-0.0078125> : tensor<f32>
  %loss = weft.mul %t, %c : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// An epilogue takes what only it needs; a contraction does not yield foreign values.
// CHECK-LABEL: func.func @ind
// CHECK-NEXT: %[[N:.*]] = call @[[SUB:[a-z_0-9]+]](
// CHECK-NEXT: %[[Y:.*]] = call @[[DOT:[a-z_0-9]+]]({{.*}}, %[[N]])
// CHECK-NEXT: return %[[Y]], %[[N]]
// CHECK: func.func private @[[DOT]](
// CHECK: weft.mul
func.func @ind(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %a: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>) attributes {weft.entry = #weft.entry<main>} {
  %m = weft.mul %a, %b : tensor<128x128xf32>
  %d = weft.dot_general %x, %w batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
  %s = weft.add %d, %m : tensor<128x128xf32>
  %n = weft.sub %a, %b : tensor<128x128xf32>
  %s2 = weft.add %s, %n : tensor<128x128xf32>
  return %s2, %n : tensor<128x128xf32>, tensor<128x128xf32>
}

// -----

// A scatter is a kernel of its own: what it writes is computed ahead of it, what reads its
// result comes after it; views of its operands are part of it.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[U:.*]] = call @elementwise_0
// CHECK-NEXT: %[[S:.*]] = call @scatter_0(%[[U]], %{{.*}})
// CHECK-NEXT: call @elementwise_1(%[[S]])
// CHECK: func.func private @scatter_0({{.*}}) -> tensor<900x64xf32> attributes {weft.kernel = "scatter"}
// CHECK: weft.constant
// CHECK: weft.scatter
// CHECK-NEXT: return
func.func @main(%u: tensor<300x64xf32>, %i: tensor<300xi64>) -> tensor<900x64xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.exp %u : tensor<300x64xf32>
  %zero = weft.constant dense<0.0> : tensor<900x64xf32>
  %1 = weft.scatter <sum> %0 into %zero[%i] dims [0]
    : tensor<300x64xf32> into tensor<900x64xf32>, tensor<300xi64> -> tensor<900x64xf32>
  %2 = weft.exp %1 : tensor<900x64xf32>
  return %2 : tensor<900x64xf32>
}

// -----

// The rows of two reductions have one size but are not one axis.
// CHECK-LABEL: func.func @sums_of_a_square(
// CHECK-NEXT: %[[S:.*]] = call @reduce_0
// CHECK-NEXT: call @reduce_1(%[[S]])
func.func @sums_of_a_square(%x: tensor<96x96xf32>) -> tensor<f32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.reduce <sum> %x dims [0] : tensor<96x96xf32> -> tensor<96xf32>
  %1 = weft.reduce <max> %0 dims [0] : tensor<96xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

#last = #weft.layout<[0, 2, 3, 1]>

// What the channels of a group have in common lies in memory as a row, where many rows need it.
// CHECK-LABEL: func.func @row_of_runs
// CHECK-NEXT:  %[[ROW:.*]] = call @[[SPREAD:[a-z_0-9]+]](%{{.*}}) : (tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:  call @[[SUB:[a-z_0-9]+]](%{{.*}}, %[[ROW]])
// CHECK:       func.func private @[[SPREAD]](
// CHECK-NEXT:  weft.broadcast_in_dim
// CHECK-NEXT:  weft.reshape
// CHECK:       func.func private @[[SUB]](
// CHECK-NEXT:  weft.broadcast_in_dim
// CHECK-NEXT:  weft.sub
func.func @row_of_runs(%x: tensor<2x6x4x4xf32, #last>, %m: tensor<2x3xf32>) -> tensor<2x6x4x4xf32, #last> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.broadcast_in_dim %m dims [0, 1] : tensor<2x3xf32> -> tensor<2x3x2xf32>
  %1 = weft.reshape %0 : tensor<2x3x2xf32> -> tensor<2x6xf32>
  %2 = weft.broadcast_in_dim %1 dims [0, 1] : tensor<2x6xf32> -> tensor<2x6x4x4xf32, #last>
  %3 = weft.sub %x, %2 : tensor<2x6x4x4xf32, #last>
  return %3 : tensor<2x6x4x4xf32, #last>
}

// -----

// What many ops share is looked at once: forty squarings have a million million paths.
// CHECK-LABEL: func.func @shared_operands
// CHECK:       return
func.func @shared_operands(%w: tensor<128xf32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {weft.entry = #weft.entry<main>} {
  %1 = weft.mul %w, %w : tensor<128xf32>
  %2 = weft.mul %1, %1 : tensor<128xf32>
  %3 = weft.mul %2, %2 : tensor<128xf32>
  %4 = weft.mul %3, %3 : tensor<128xf32>
  %5 = weft.mul %4, %4 : tensor<128xf32>
  %6 = weft.mul %5, %5 : tensor<128xf32>
  %7 = weft.mul %6, %6 : tensor<128xf32>
  %8 = weft.mul %7, %7 : tensor<128xf32>
  %9 = weft.mul %8, %8 : tensor<128xf32>
  %10 = weft.mul %9, %9 : tensor<128xf32>
  %11 = weft.mul %10, %10 : tensor<128xf32>
  %12 = weft.mul %11, %11 : tensor<128xf32>
  %13 = weft.mul %12, %12 : tensor<128xf32>
  %14 = weft.mul %13, %13 : tensor<128xf32>
  %15 = weft.mul %14, %14 : tensor<128xf32>
  %16 = weft.mul %15, %15 : tensor<128xf32>
  %17 = weft.mul %16, %16 : tensor<128xf32>
  %18 = weft.mul %17, %17 : tensor<128xf32>
  %19 = weft.mul %18, %18 : tensor<128xf32>
  %20 = weft.mul %19, %19 : tensor<128xf32>
  %21 = weft.mul %20, %20 : tensor<128xf32>
  %22 = weft.mul %21, %21 : tensor<128xf32>
  %23 = weft.mul %22, %22 : tensor<128xf32>
  %24 = weft.mul %23, %23 : tensor<128xf32>
  %25 = weft.mul %24, %24 : tensor<128xf32>
  %26 = weft.mul %25, %25 : tensor<128xf32>
  %27 = weft.mul %26, %26 : tensor<128xf32>
  %28 = weft.mul %27, %27 : tensor<128xf32>
  %29 = weft.mul %28, %28 : tensor<128xf32>
  %30 = weft.mul %29, %29 : tensor<128xf32>
  %31 = weft.mul %30, %30 : tensor<128xf32>
  %32 = weft.mul %31, %31 : tensor<128xf32>
  %33 = weft.mul %32, %32 : tensor<128xf32>
  %34 = weft.mul %33, %33 : tensor<128xf32>
  %35 = weft.mul %34, %34 : tensor<128xf32>
  %36 = weft.mul %35, %35 : tensor<128xf32>
  %37 = weft.mul %36, %36 : tensor<128xf32>
  %38 = weft.mul %37, %37 : tensor<128xf32>
  %39 = weft.mul %38, %38 : tensor<128xf32>
  %40 = weft.mul %39, %39 : tensor<128xf32>
  %spread = weft.broadcast_in_dim %40 dims [1] : tensor<128xf32> -> tensor<64x128xf32>
  %sum = weft.add %x, %spread : tensor<64x128xf32>
  return %sum : tensor<64x128xf32>
}

// -----

// A constant that is returned is no operand of the kernels that use it.
// CHECK-LABEL: func.func @returned_padding
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-DAG: %[[ZERO:.*]] = call @constant_0() : () -> tensor<f32>
// CHECK-DAG: %[[PADDED:.*]] = call @pad_0(%[[X]]) : (tensor<4xf32>) -> tensor<6xf32>
// CHECK: return %[[PADDED]], %[[ZERO]]
func.func @returned_padding(%x: tensor<4xf32>) -> (tensor<6xf32>, tensor<f32>) attributes {weft.entry = #weft.entry<main>} {
  %zero = weft.constant dense<0.0> : tensor<f32>
  %0 = weft.pad %x, %zero low [1] high [1] : tensor<4xf32>, tensor<f32> -> tensor<6xf32>
  return %0, %zero : tensor<6xf32>, tensor<f32>
}

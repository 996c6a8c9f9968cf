// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s > %t.1
// RUN: weft-opt %t.1 > %t.2
// RUN: diff %t.1 %t.2
// RUN: FileCheck %s < %t.2

// Every op prints what it parses.

// CHECK-LABEL: @unary
// CHECK-COUNT-27: weft.{{neg|abs|sign|ceil|floor|round_even|trunc|exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt|sin|cos|tan|asin|acos|atan|sinh|cosh|asinh|acosh|atanh}} %
// CHECK: weft.tanh
// CHECK: weft.sigmoid
// CHECK: weft.erf
// CHECK: weft.erfc
// CHECK: weft.not
func.func @unary(%x: tensor<4xf32>, %c: tensor<4xi1>) {
  %0 = weft.neg %x : tensor<4xf32>
  %1 = weft.abs %x : tensor<4xf32>
  %2 = weft.sign %x : tensor<4xf32>
  %3 = weft.ceil %x : tensor<4xf32>
  %4 = weft.floor %x : tensor<4xf32>
  %5 = weft.round_even %x : tensor<4xf32>
  %6 = weft.trunc %x : tensor<4xf32>
  %7 = weft.exp %x : tensor<4xf32>
  %8 = weft.expm1 %x : tensor<4xf32>
  %9 = weft.log %x : tensor<4xf32>
  %10 = weft.log1p %x : tensor<4xf32>
  %11 = weft.sqrt %x : tensor<4xf32>
  %12 = weft.rsqrt %x : tensor<4xf32>
  %13 = weft.sin %x : tensor<4xf32>
  %14 = weft.cos %x : tensor<4xf32>
  %15 = weft.tan %x : tensor<4xf32>
  %16 = weft.asin %x : tensor<4xf32>
  %17 = weft.acos %x : tensor<4xf32>
  %18 = weft.atan %x : tensor<4xf32>
  %19 = weft.sinh %x : tensor<4xf32>
  %20 = weft.cosh %x : tensor<4xf32>
  %25 = weft.exp2 %x : tensor<4xf32>
  %26 = weft.log2 %x : tensor<4xf32>
  %27 = weft.log10 %x : tensor<4xf32>
  %28 = weft.asinh %x : tensor<4xf32>
  %29 = weft.acosh %x : tensor<4xf32>
  %30 = weft.atanh %x : tensor<4xf32>
  %21 = weft.tanh %x : tensor<4xf32>
  %22 = weft.sigmoid %x : tensor<4xf32>
  %23 = weft.erf %x : tensor<4xf32>
  %31 = weft.erfc %x : tensor<4xf32>
  %24 = weft.not %c : tensor<4xi1>
  return
}

// CHECK-LABEL: @binary
// CHECK-COUNT-12: weft.{{add|sub|mul|div|rem|pow|atan2|max|min|and|or|xor}} %
// CHECK: weft.fma %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK: weft.philox %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xi32>
// CHECK: weft.cmp <le>
// CHECK: weft.select
// CHECK: weft.convert
func.func @binary(%x: tensor<4xf32>, %i: tensor<4xui8>, %n: tensor<4xi32>) {
  %0 = weft.add %x, %x : tensor<4xf32>
  %1 = weft.sub %x, %x : tensor<4xf32>
  %2 = weft.mul %x, %x : tensor<4xf32>
  %3 = weft.div %x, %x : tensor<4xf32>
  %4 = weft.rem %x, %x : tensor<4xf32>
  %5 = weft.pow %x, %x : tensor<4xf32>
  %6 = weft.atan2 %x, %x : tensor<4xf32>
  %7 = weft.max %x, %x : tensor<4xf32>
  %8 = weft.min %x, %x : tensor<4xf32>
  %9 = weft.and %i, %i : tensor<4xui8>
  %10 = weft.or %i, %i : tensor<4xui8>
  %11 = weft.xor %i, %i : tensor<4xui8>
  %15 = weft.fma %x, %x, %x : tensor<4xf32>
  %16 = weft.philox %n, %n, %n : tensor<4xi32>
  %12 = weft.cmp <le> %x, %x : tensor<4xf32> -> tensor<4xi1>
  %13 = weft.select %12, %x, %x : tensor<4xi1>, tensor<4xf32>
  %14 = weft.convert %x : tensor<4xf32> -> tensor<4xbf16>
  return
}

#rows = #weft.layout<[0, 1], tile 0 by 16>

// CHECK-LABEL: @shape
// CHECK: weft.constant dense<1> : tensor<ui8>
// CHECK: weft.iota 1 : tensor<2x8xi64>
// CHECK: weft.broadcast_in_dim %{{.*}} dims [1, 2] : tensor<4x8xf32> -> tensor<3x4x8xf32>
// CHECK: weft.reshape %{{.*}} : tensor<4x8xf32> -> tensor<2x16xf32>
// CHECK: weft.transpose %{{.*}} perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK: weft.slice %{{.*}} [0, 2] to [4, 8] by [1, 3] : tensor<4x8xf32> -> tensor<4x2xf32>
// CHECK: weft.advance %{{.*}} by 8 : tensor<4x8xf32>
// CHECK: weft.pad %{{.*}}, %{{.*}} low [0, 1] high [0, 2] : tensor<4x8xf32>, tensor<f32> -> tensor<4x11xf32>
// CHECK: weft.concat %{{.*}}, %{{.*}} dim 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x16xf32>
// CHECK: weft.reverse %{{.*}} dims [0, 1] : tensor<4x8xf32>
// CHECK: weft.relayout %{{.*}} : tensor<4x8xf32> -> tensor<4x8xf32, #weft.layout<[0, 1], tile 0 by 16>>
func.func @shape(%x: tensor<4x8xf32>, %s: tensor<f32>) {
  %0 = weft.constant dense<1> : tensor<ui8>
  %1 = weft.iota 1 : tensor<2x8xi64>
  %2 = weft.broadcast_in_dim %x dims [1, 2] : tensor<4x8xf32> -> tensor<3x4x8xf32>
  %3 = weft.reshape %x : tensor<4x8xf32> -> tensor<2x16xf32>
  %4 = weft.transpose %x perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %5 = weft.slice %x [0, 2] to [4, 8] by [1, 3] : tensor<4x8xf32> -> tensor<4x2xf32>
  %rows = weft.advance %x by 8 : tensor<4x8xf32>
  %6 = weft.pad %x, %s low [0, 1] high [0, 2] : tensor<4x8xf32>, tensor<f32> -> tensor<4x11xf32>
  %7 = weft.concat %x, %x dim 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x16xf32>
  %8 = weft.reverse %x dims [0, 1] : tensor<4x8xf32>
  %9 = weft.relayout %x : tensor<4x8xf32> -> tensor<4x8xf32, #rows>
  return
}

// CHECK-LABEL: @reduce
// CHECK: weft.reduce <sum> %{{.*}} dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
// CHECK: weft.arg_reduce <max> %{{.*}} dim 1 : tensor<4x8xf32> -> tensor<4xi64>
// CHECK: weft.cumulative <prod> %{{.*}} dim 0 : tensor<4x8xf32>
// CHECK: weft.reduce_window <min> %{{.*}} window [1, 2] strides [1, 2] dilations [1, 3] : tensor<4x8xf32> -> tensor<4x3xf32>
func.func @reduce(%x: tensor<4x8xf32>) {
  %0 = weft.reduce <sum> %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %1 = weft.arg_reduce <max> %x dim 1 : tensor<4x8xf32> -> tensor<4xi64>
  %2 = weft.cumulative <prod> %x dim 0 : tensor<4x8xf32>
  %3 = weft.reduce_window <min> %x window [1, 2] strides [1, 2] dilations [1, 3] : tensor<4x8xf32> -> tensor<4x3xf32>
  return
}

// CHECK-LABEL: @contract
// CHECK: weft.dot_general %{{.*}}, %{{.*}} batch [0] x [0] contract [2] x [1] : tensor<2x3x4xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
// CHECK: weft.grouped_dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<24x8xf32>, tensor<4x64x8xf32>, tensor<4xi32> -> tensor<24x64xf32>
// CHECK: weft.multi_dot %{{.*}} with %{{.*}}, %{{.*}} contract [2] x [1] : tensor<2x3x4xf32>, tensor<5x4xf32>, tensor<6x4xf32> -> tensor<2x3x5xf32>, tensor<2x3x6xf32>
// CHECK: weft.conv %{{.*}}, %{{.*}} strides [2, 2] pad [1, 1] x [1, 1] dilations [1, 1] groups 2 : tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32> -> tensor<1x6x4x4xf32>
// CHECK: weft.winograd_conv %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x8x8xf32>, tensor<16x4x6xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x6x6xf32>
func.func @contract(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>, %w: tensor<5x4xf32>,
                    %v: tensor<6x4xf32>, %i: tensor<1x4x8x8xf32>, %k: tensor<6x2x3x3xf32>,
                    %u: tensor<16x4x6xf32>, %l: tensor<6x4x3x3xf32>, %rows: tensor<24x8xf32>,
                    %matrices: tensor<4x64x8xf32>, %ends: tensor<4xi32>) {
  %0 = weft.dot_general %a, %b batch [0] x [0] contract [2] x [1]
    : tensor<2x3x4xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
  %g = weft.grouped_dot %rows, %matrices, %ends
    : tensor<24x8xf32>, tensor<4x64x8xf32>, tensor<4xi32> -> tensor<24x64xf32>
  %1:2 = weft.multi_dot %a with %w, %v contract [2] x [1]
    : tensor<2x3x4xf32>, tensor<5x4xf32>, tensor<6x4xf32> -> tensor<2x3x5xf32>, tensor<2x3x6xf32>
  %2 = weft.conv %i, %k strides [2, 2] pad [1, 1] x [1, 1] dilations [1, 1] groups 2
    : tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32> -> tensor<1x6x4x4xf32>
  %3 = weft.winograd_conv %i, %u, %l : tensor<1x4x8x8xf32>, tensor<16x4x6xf32>,
      tensor<6x4x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// CHECK-LABEL: @index_and_effects
// CHECK: weft.gather %{{.*}}[%{{.*}}] dims [0] : tensor<9x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
// CHECK: weft.scatter <max> %{{.*}} into %{{.*}}[%{{.*}}] dims [0] : tensor<2x3x4xf32> into tensor<9x4xf32>, tensor<2x3xi64> -> tensor<9x4xf32>
// CHECK: weft.sort %{{.*}} dim 1 descending true count 2 : tensor<9x4xf32> -> tensor<9x2xf32>, tensor<9x2xi64>
// CHECK: weft.assert %{{.*}}, "index out of range" : tensor<2x3xi1>
// CHECK: weft.torch_fallback "aten.erfinv.default"(%{{.*}}) "[{\22tensor\22: 0}]" : (tensor<9x4xf32>) -> tensor<9x4xf32>
func.func @index_and_effects(%t: tensor<9x4xf32>, %i: tensor<2x3xi64>, %c: tensor<2x3xi1>) {
  %0 = weft.gather %t[%i] dims [0] : tensor<9x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  %s = weft.scatter <max> %0 into %t[%i] dims [0] : tensor<2x3x4xf32> into tensor<9x4xf32>, tensor<2x3xi64> -> tensor<9x4xf32>
  %v, %p = weft.sort %t dim 1 descending true count 2 : tensor<9x4xf32> -> tensor<9x2xf32>, tensor<9x2xi64>
  weft.assert %c, "index out of range" : tensor<2x3xi1>
  %1 = weft.torch_fallback "aten.erfinv.default"(%t) "[{\22tensor\22: 0}]" : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

// CHECK-LABEL: @composite
// CHECK: weft.softmax %{{.*}} dim 1 : tensor<2x4xf32>
// CHECK: weft.log_softmax %{{.*}} dim 0 : tensor<2x4xf32>
// CHECK: weft.layer_norm %{{.*}} weight %{{.*}} : tensor<4xf32> bias %{{.*}} : tensor<4xf32> over 1 eps 1.000000e-05 : tensor<2x4xf32>
// CHECK: weft.layer_norm %{{.*}} over 2 eps 1.000000e-05 : tensor<2x4xf32>
// CHECK: weft.rms_norm %{{.*}} weight %{{.*}} : tensor<4xf32> over 1 eps 1.000000e-05 : tensor<2x4xf32>
// CHECK: weft.group_norm %{{.*}} weight %{{.*}} : tensor<4xf32> groups 2 eps 1.000000e-05 : tensor<2x4xf32>
// CHECK: weft.batch_norm %{{.*}} mean %{{.*}} variance %{{.*}} : tensor<4xf32>, tensor<4xf32> bias %{{.*}} : tensor<4xf32> eps 1.000000e-05 : tensor<2x4xf32>
// CHECK: weft.gelu <erf> %{{.*}} : tensor<2x4xf32>
// CHECK: weft.silu %{{.*}} : tensor<2x4xf32>
// CHECK: weft.attention %{{.*}}, %{{.*}}, %{{.*}} causal true scale 1.250000e-01 : tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
// CHECK: weft.attention %{{.*}} mask %{{.*}} : tensor<2x3xi1> causal false
func.func @composite(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %k: tensor<3x4xf32>, %v: tensor<3x5xf32>,
                     %m: tensor<2x3xi1>) {
  %0 = weft.softmax %x dim 1 : tensor<2x4xf32>
  %1 = weft.log_softmax %x dim 0 : tensor<2x4xf32>
  %2 = weft.layer_norm %x weight %w : tensor<4xf32> bias %w : tensor<4xf32> over 1 eps 1.0e-05 : tensor<2x4xf32>
  %3 = weft.layer_norm %x over 2 eps 1.0e-05 : tensor<2x4xf32>
  %4 = weft.rms_norm %x weight %w : tensor<4xf32> over 1 eps 1.0e-05 : tensor<2x4xf32>
  %5 = weft.group_norm %x weight %w : tensor<4xf32> groups 2 eps 1.0e-05 : tensor<2x4xf32>
  %6 = weft.batch_norm %x mean %w variance %w : tensor<4xf32>, tensor<4xf32> bias %w : tensor<4xf32> eps 1.0e-05 : tensor<2x4xf32>
  %7 = weft.gelu <erf> %x : tensor<2x4xf32>
  %8 = weft.silu %x : tensor<2x4xf32>
  %9 = weft.attention %x, %k, %v causal true scale 0.125 : tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %10 = weft.attention %x, %k, %v mask %m : tensor<2x3xi1> causal false scale 0.125 : tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  return
}

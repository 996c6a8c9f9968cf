// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-decompose-composites | FileCheck %s

// Composite ops become the primitives they mean, in f32 or f64; layouts stay.

// CHECK-LABEL: @softmax(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[REDUCE:.*]] = weft.reduce <max> %[[X]] dims [1]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[REDUCE]] dims [0]
// CHECK: %[[SUB:.*]] = weft.sub %[[X]], %[[BROADCAST]]
// CHECK: %[[EXP:.*]] = weft.exp %[[SUB]]
// CHECK: %[[REDUCE2:.*]] = weft.reduce <sum> %[[EXP]] dims [1]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[REDUCE2]] dims [0]
// CHECK: %[[DIV:.*]] = weft.div %[[EXP]], %[[BROADCAST2]]
// CHECK: return %[[DIV]]
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = weft.softmax %x dim 1 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Weights of a sum: what would be less than 2^-100 is zero, ahead of exp, which is computed once.
// CHECK-LABEL: @weights(
// CHECK: %[[SUB:.*]] = weft.sub %{{.*}}
// CHECK: %[[LEAST:.*]] = weft.constant dense<-69.3
// CHECK: %[[VANISHES:.*]] = weft.cmp <lt> %[[SUB]], %[[LEAST]]
// CHECK: %[[ZERO:.*]] = weft.constant dense<0xFF800000>
// CHECK: %[[SELECT:.*]] = weft.select %[[VANISHES]], %[[ZERO]], %[[SUB]]
// CHECK: weft.exp %[[SELECT]]
func.func @weights(%x: tensor<4x8xf32>, %v: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = weft.softmax %x dim 1 : tensor<4x8xf32>
  %1 = weft.dot_general %0, %v batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// Whoever sees them as they are may want their logarithms.
// CHECK-LABEL: @seen_weights(
// CHECK-NOT: weft.select
// CHECK: return
func.func @seen_weights(%x: tensor<4x8xf32>, %v: tensor<8x2xf32>) -> (tensor<4x2xf32>, tensor<4x8xf32>) {
  %0 = weft.softmax %x dim 1 : tensor<4x8xf32>
  %1 = weft.dot_general %0, %v batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
  %2 = weft.log %0 : tensor<4x8xf32>
  return %1, %2 : tensor<4x2xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @softmax_first_dim_f64(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[REDUCE:.*]] = weft.reduce <max> %[[X]] dims [0]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[REDUCE]] dims [1]
// CHECK: %[[SUB:.*]] = weft.sub %[[X]], %[[BROADCAST]]
// CHECK: %[[EXP:.*]] = weft.exp %[[SUB]]
// CHECK: %[[REDUCE2:.*]] = weft.reduce <sum> %[[EXP]] dims [0]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[REDUCE2]] dims [1]
// CHECK: %[[DIV:.*]] = weft.div %[[EXP]], %[[BROADCAST2]]
// CHECK: return %[[DIV]]
func.func @softmax_first_dim_f64(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
  %0 = weft.softmax %x dim 0 : tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}

// CHECK-LABEL: @softmax_bf16(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[CONVERT:.*]] = weft.convert %[[X]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: %[[REDUCE:.*]] = weft.reduce <max> %[[CONVERT]] dims [1]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[REDUCE]] dims [0]
// CHECK: %[[SUB:.*]] = weft.sub %[[CONVERT]], %[[BROADCAST]]
// CHECK: %[[EXP:.*]] = weft.exp %[[SUB]]
// CHECK: %[[REDUCE2:.*]] = weft.reduce <sum> %[[EXP]] dims [1]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[REDUCE2]] dims [0]
// CHECK: %[[DIV:.*]] = weft.div %[[EXP]], %[[BROADCAST2]]
// CHECK: %[[CONVERT2:.*]] = weft.convert %[[DIV]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: return %[[CONVERT2]]
func.func @softmax_bf16(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %0 = weft.softmax %x dim 1 : tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}

// CHECK-LABEL: @log_softmax(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[REDUCE:.*]] = weft.reduce <max> %[[X]] dims [1]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[REDUCE]] dims [0]
// CHECK: %[[SUB:.*]] = weft.sub %[[X]], %[[BROADCAST]]
// CHECK: %[[EXP:.*]] = weft.exp %[[SUB]]
// CHECK: %[[REDUCE2:.*]] = weft.reduce <sum> %[[EXP]] dims [1]
// CHECK: %[[LOG:.*]] = weft.log %[[REDUCE2]]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[LOG]] dims [0]
// CHECK: %[[SUB2:.*]] = weft.sub %[[SUB]], %[[BROADCAST2]]
// CHECK: return %[[SUB2]]
func.func @log_softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = weft.log_softmax %x dim 1 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

#tokens = #weft.layout<[0, 1, 2], tile 1 by 16>
// CHECK-LABEL: @layer_norm_tiled(
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[W:[^:]*]]: {{[^%]*}}%[[B:[^:]*]]:
// The mean of equal elements is what they are: it comes from a sum in f64.
// CHECK: %[[WIDE:.*]] = weft.convert %[[X]]
// CHECK: %[[REDUCE:.*]] = weft.reduce <sum> %[[WIDE]] dims [2] : tensor<2x32x8xf64, #weft.layout<[0, 1, 2], tile 1 by 16>> -> tensor<2x32xf64, #weft.layout<[0, 1], tile 1 by 16>>
// CHECK: %[[C:.*]] = weft.constant dense<8.000000e+00> : tensor<2x32xf64, #weft.layout<[0, 1], tile 1 by 16>>
// CHECK: %[[MEAN:.*]] = weft.div %[[REDUCE]], %[[C]]
// CHECK: %[[DIV:.*]] = weft.convert %[[MEAN]]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[DIV]] dims [0, 1] : tensor<2x32xf32, #weft.layout<[0, 1], tile 1 by 16>> -> tensor<2x32x8xf32, #weft.layout<[0, 1, 2], tile 1 by 16>>
// CHECK: %[[SUB:.*]] = weft.sub %[[X]], %[[BROADCAST]]
// CHECK: %[[MUL:.*]] = weft.mul %[[SUB]], %[[SUB]]
// CHECK: %[[REDUCE2:.*]] = weft.reduce <sum> %[[MUL]] dims [2] : tensor<2x32x8xf32, #weft.layout<[0, 1, 2], tile 1 by 16>> -> tensor<2x32xf32, #weft.layout<[0, 1], tile 1 by 16>>
// CHECK: %[[C2:.*]] = weft.constant dense<8.000000e+00> : tensor<2x32xf32, #weft.layout<[0, 1], tile 1 by 16>>
// CHECK: %[[DIV2:.*]] = weft.div %[[REDUCE2]], %[[C2]]
// CHECK: %[[C3:.*]] = weft.constant dense<9.99999974E-6> : tensor<2x32xf32, #weft.layout<[0, 1], tile 1 by 16>>
// CHECK: %[[ADD:.*]] = weft.add %[[DIV2]], %[[C3]]
// CHECK: %[[SQRT:.*]] = weft.sqrt %[[ADD]]
// CHECK: %[[C4:.*]] = weft.constant dense<1.000000e+00> : tensor<2x32xf32, #weft.layout<[0, 1], tile 1 by 16>>
// CHECK: %[[DIV3:.*]] = weft.div %[[C4]], %[[SQRT]]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[DIV3]] dims [0, 1] : tensor<2x32xf32, #weft.layout<[0, 1], tile 1 by 16>> -> tensor<2x32x8xf32, #weft.layout<[0, 1, 2], tile 1 by 16>>
// CHECK: %[[MUL2:.*]] = weft.mul %[[SUB]], %[[BROADCAST2]]
// CHECK: %[[BROADCAST3:.*]] = weft.broadcast_in_dim %[[W]] dims [2] : tensor<8xf32> -> tensor<2x32x8xf32, #weft.layout<[0, 1, 2], tile 1 by 16>>
// CHECK: %[[MUL3:.*]] = weft.mul %[[MUL2]], %[[BROADCAST3]]
// CHECK: %[[BROADCAST4:.*]] = weft.broadcast_in_dim %[[B]] dims [2] : tensor<8xf32> -> tensor<2x32x8xf32, #weft.layout<[0, 1, 2], tile 1 by 16>>
// CHECK: %[[ADD2:.*]] = weft.add %[[MUL3]], %[[BROADCAST4]]
// CHECK: return %[[ADD2]]
func.func @layer_norm_tiled(%x: tensor<2x32x8xf32, #tokens>, %w: tensor<8xf32>, %b: tensor<8xf32>)
    -> tensor<2x32x8xf32, #tokens> {
  %0 = weft.layer_norm %x weight %w : tensor<8xf32> bias %b : tensor<8xf32> over 1 eps 1.0e-05
    : tensor<2x32x8xf32, #tokens>
  return %0 : tensor<2x32x8xf32, #tokens>
}

// Nothing is wider than f64: the mean of the rest is added.
// CHECK-LABEL: @layer_norm_f64(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[FIRST:.*]] = weft.div
// CHECK: %[[SPREAD:.*]] = weft.broadcast_in_dim %[[FIRST]] dims [0]
// CHECK: %[[LEFT:.*]] = weft.sub %[[X]], %[[SPREAD]]
// CHECK: %[[SUM:.*]] = weft.reduce <sum> %[[LEFT]] dims [1]
// CHECK: %[[REST:.*]] = weft.div %[[SUM]]
// CHECK: %[[MEAN:.*]] = weft.add %[[FIRST]], %[[REST]]
// CHECK: %[[MEANS:.*]] = weft.broadcast_in_dim %[[MEAN]] dims [0]
// CHECK: weft.sub %[[X]], %[[MEANS]]
func.func @layer_norm_f64(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
  %0 = weft.layer_norm %x over 1 eps 1.0e-05 : tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}

// CHECK-LABEL: @rms_norm(
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[W:[^:]*]]:
// CHECK: %[[MUL:.*]] = weft.mul %[[X]], %[[X]]
// CHECK: %[[REDUCE:.*]] = weft.reduce <sum> %[[MUL]] dims [1]
// CHECK: %[[C:.*]] = weft.constant dense<8.000000e+00> : tensor<4xf32>
// CHECK: %[[DIV:.*]] = weft.div %[[REDUCE]], %[[C]]
// CHECK: %[[C2:.*]] = weft.constant dense<9.99999997E-7> : tensor<4xf32>
// CHECK: %[[ADD:.*]] = weft.add %[[DIV]], %[[C2]]
// CHECK: %[[SQRT:.*]] = weft.sqrt %[[ADD]]
// CHECK: %[[C3:.*]] = weft.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK: %[[DIV2:.*]] = weft.div %[[C3]], %[[SQRT]]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[DIV2]] dims [0]
// CHECK: %[[MUL2:.*]] = weft.mul %[[X]], %[[BROADCAST]]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[W]] dims [1]
// CHECK: %[[MUL3:.*]] = weft.mul %[[MUL2]], %[[BROADCAST2]]
// CHECK: return %[[MUL3]]
func.func @rms_norm(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = weft.rms_norm %x weight %w : tensor<8xf32> over 1 eps 1.0e-06 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

#last = #weft.layout<[0, 2, 3, 1]>
// CHECK-LABEL: @group_norm_channels_last(
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[W:[^:]*]]:
// Means of channels, then of groups, spread over the channels again.
// CHECK: %[[SUM:.*]] = weft.reduce <sum> %[[X]] dims [2, 3] : {{.*}} -> tensor<2x6xf32>
// CHECK: %[[OFCHANNELS:.*]] = weft.div %[[SUM]]
// CHECK: %[[MEMBERS:.*]] = weft.reshape %[[OFCHANNELS]] : tensor<2x6xf32> -> tensor<2x3x2xf32>
// CHECK: %[[SUM2:.*]] = weft.reduce <sum> %[[MEMBERS]] dims [2]
// CHECK: %[[MEAN:.*]] = weft.div %[[SUM2]]
// CHECK: %[[SPREAD:.*]] = weft.broadcast_in_dim %[[MEAN]] dims [0, 1] : tensor<2x3xf32> -> tensor<2x3x2xf32>
// CHECK: %[[ROW:.*]] = weft.reshape %[[SPREAD]] : tensor<2x3x2xf32> -> tensor<2x6xf32>
// CHECK: %[[MEANS:.*]] = weft.broadcast_in_dim %[[ROW]] dims [0, 1] : {{.*}} -> tensor<2x6x4x4xf32, #weft.layout<[0, 2, 3, 1]>>
// CHECK: %[[CENTRED:.*]] = weft.sub %[[X]], %[[MEANS]]
// What the mean lacks is the mean of what it leaves; it is added, and the variance does without it.
// CHECK: weft.reduce <sum> %[[CENTRED]] dims [2, 3]
// CHECK: %[[SUM3:.*]] = weft.reduce <sum> %{{.*}} dims [2] : tensor<2x3x2xf32>
// CHECK: %[[LACKING:.*]] = weft.div %[[SUM3]]
// CHECK: weft.mul %[[CENTRED]], %[[CENTRED]]
// CHECK: %[[SUM4:.*]] = weft.reduce <sum> %{{.*}} dims [2] : tensor<2x3x2xf32>
// CHECK: %[[SQUARE:.*]] = weft.div %[[SUM4]]
// CHECK: %[[EXCESS:.*]] = weft.mul %[[LACKING]], %[[LACKING]]
// CHECK: %[[VARIANCE:.*]] = weft.sub %[[SQUARE]], %[[EXCESS]]
// CHECK: weft.max %[[VARIANCE]]
// CHECK: weft.add %[[MEAN]], %[[LACKING]]
// CHECK: %[[AGAIN:.*]] = weft.sub %[[X]]
// CHECK: %[[SCALES:.*]] = weft.broadcast_in_dim %[[W]] dims [1] : tensor<6xf32> -> tensor<2x6xf32>
// CHECK: %[[SCALE:.*]] = weft.mul %{{.*}}, %[[SCALES]]
// CHECK: %[[S:.*]] = weft.broadcast_in_dim %[[SCALE]] dims [0, 1]
// CHECK: weft.mul %[[AGAIN]], %[[S]]
func.func @group_norm_channels_last(%x: tensor<2x6x4x4xf32, #last>, %w: tensor<6xf32>)
    -> tensor<2x6x4x4xf32, #last> {
  %0 = weft.group_norm %x weight %w : tensor<6xf32> groups 3 eps 1.0e-05 : tensor<2x6x4x4xf32, #last>
  return %0 : tensor<2x6x4x4xf32, #last>
}

// CHECK-LABEL: @batch_norm(
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[M:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[W:[^:]*]]: {{[^%]*}}%[[B:[^:]*]]:
// CHECK: %[[C:.*]] = weft.constant dense<9.99999974E-6> : tensor<6xf32>
// CHECK: %[[ADD:.*]] = weft.add %[[V]], %[[C]]
// CHECK: %[[SQRT:.*]] = weft.sqrt %[[ADD]]
// CHECK: %[[C2:.*]] = weft.constant dense<1.000000e+00> : tensor<6xf32>
// CHECK: %[[DIV:.*]] = weft.div %[[C2]], %[[SQRT]]
// CHECK: %[[MUL:.*]] = weft.mul %[[W]], %[[DIV]]
// CHECK: %[[MUL2:.*]] = weft.mul %[[M]], %[[MUL]]
// CHECK: %[[SUB:.*]] = weft.sub %[[B]], %[[MUL2]]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[MUL]] dims [1]
// CHECK: %[[MUL3:.*]] = weft.mul %[[X]], %[[BROADCAST]]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[SUB]] dims [1]
// CHECK: %[[ADD2:.*]] = weft.add %[[MUL3]], %[[BROADCAST2]]
// CHECK: return %[[ADD2]]
func.func @batch_norm(%x: tensor<2x6x4xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>,
                      %w: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<2x6x4xf32> {
  %0 = weft.batch_norm %x mean %m variance %v : tensor<6xf32>, tensor<6xf32>
    weight %w : tensor<6xf32> bias %b : tensor<6xf32> eps 1.0e-05 : tensor<2x6x4xf32>
  return %0 : tensor<2x6x4xf32>
}

// CHECK-LABEL: @batch_norm_plain_bf16(
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[M:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]:
// CHECK: %[[C:.*]] = weft.constant dense<9.99999974E-6> : tensor<6xf32>
// CHECK: %[[ADD:.*]] = weft.add %[[V]], %[[C]]
// CHECK: %[[SQRT:.*]] = weft.sqrt %[[ADD]]
// CHECK: %[[C2:.*]] = weft.constant dense<1.000000e+00> : tensor<6xf32>
// CHECK: %[[DIV:.*]] = weft.div %[[C2]], %[[SQRT]]
// CHECK: %[[MUL:.*]] = weft.mul %[[M]], %[[DIV]]
// CHECK: %[[NEG:.*]] = weft.neg %[[MUL]]
// CHECK: %[[CONVERT:.*]] = weft.convert %[[X]] : tensor<2x6xbf16> -> tensor<2x6xf32>
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[DIV]] dims [1]
// CHECK: %[[MUL2:.*]] = weft.mul %[[CONVERT]], %[[BROADCAST]]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[NEG]] dims [1]
// CHECK: %[[ADD2:.*]] = weft.add %[[MUL2]], %[[BROADCAST2]]
// CHECK: %[[CONVERT2:.*]] = weft.convert %[[ADD2]] : tensor<2x6xf32> -> tensor<2x6xbf16>
// CHECK: return %[[CONVERT2]]
func.func @batch_norm_plain_bf16(%x: tensor<2x6xbf16>, %m: tensor<6xf32>, %v: tensor<6xf32>)
    -> tensor<2x6xbf16> {
  %0 = weft.batch_norm %x mean %m variance %v : tensor<6xf32>, tensor<6xf32> eps 1.0e-05
    : tensor<2x6xbf16>
  return %0 : tensor<2x6xbf16>
}

// CHECK-LABEL: @gelu_erf(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[C:.*]] = weft.constant dense<0.707106769> : tensor<8xf32>
// CHECK: %[[MUL:.*]] = weft.mul %[[X]], %[[C]]
// CHECK: %[[ERF:.*]] = weft.erf %[[MUL]]
// CHECK: %[[C2:.*]] = weft.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK: %[[ADD:.*]] = weft.add %[[ERF]], %[[C2]]
// CHECK: %[[C3:.*]] = weft.constant dense<5.000000e-01> : tensor<8xf32>
// CHECK: %[[MUL2:.*]] = weft.mul %[[X]], %[[C3]]
// CHECK: %[[MUL3:.*]] = weft.mul %[[MUL2]], %[[ADD]]
// CHECK: return %[[MUL3]]
func.func @gelu_erf(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = weft.gelu <erf> %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: @gelu_tanh(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[MUL:.*]] = weft.mul %[[X]], %[[X]]
// CHECK: %[[MUL2:.*]] = weft.mul %[[MUL]], %[[X]]
// CHECK: %[[C:.*]] = weft.constant dense<4.471500e-02> : tensor<8xf32>
// CHECK: %[[MUL3:.*]] = weft.mul %[[MUL2]], %[[C]]
// CHECK: %[[ADD:.*]] = weft.add %[[X]], %[[MUL3]]
// CHECK: %[[C2:.*]] = weft.constant dense<0.797884583> : tensor<8xf32>
// CHECK: %[[MUL4:.*]] = weft.mul %[[ADD]], %[[C2]]
// CHECK: %[[TANH:.*]] = weft.tanh %[[MUL4]]
// CHECK: %[[C3:.*]] = weft.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK: %[[ADD2:.*]] = weft.add %[[TANH]], %[[C3]]
// CHECK: %[[C4:.*]] = weft.constant dense<5.000000e-01> : tensor<8xf32>
// CHECK: %[[MUL5:.*]] = weft.mul %[[X]], %[[C4]]
// CHECK: %[[MUL6:.*]] = weft.mul %[[MUL5]], %[[ADD2]]
// CHECK: return %[[MUL6]]
func.func @gelu_tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = weft.gelu <tanh> %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: @silu(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[CONVERT:.*]] = weft.convert %[[X]] : tensor<8xf16> -> tensor<8xf32>
// CHECK: %[[SIGMOID:.*]] = weft.sigmoid %[[CONVERT]]
// CHECK: %[[MUL:.*]] = weft.mul %[[CONVERT]], %[[SIGMOID]]
// CHECK: %[[CONVERT2:.*]] = weft.convert %[[MUL]] : tensor<8xf32> -> tensor<8xf16>
// CHECK: return %[[CONVERT2]]
func.func @silu(%x: tensor<8xf16>) -> tensor<8xf16> {
  %0 = weft.silu %x : tensor<8xf16>
  return %0 : tensor<8xf16>
}

// An attention has a kernel of its own.
// CHECK-LABEL: @attention_stays
// CHECK-NEXT: weft.attention
func.func @attention_stays(%q: tensor<3x8xf32>, %k: tensor<5x8xf32>, %v: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %0 = weft.attention %q, %k, %v causal false scale 0.5
    : tensor<3x8xf32>, tensor<5x8xf32>, tensor<5x4xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// Attention has a kernel of its own.
// CHECK-LABEL: @whole_attention(
// CHECK: weft.attention
func.func @whole_attention(%q: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
  %0 = weft.attention %q, %q, %q causal false scale 1.0
    : tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32> -> tensor<1x4x8xf32>
  return %0 : tensor<1x4x8xf32>
}

// -----

// Two reductions instead of one of pairs; a NaN makes the maximum NaN, and is not itself.
// CHECK-LABEL: @arg_max(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[MAX:.*]] = weft.reduce <max> %[[X]] dims [1]
// CHECK: %[[ALL:.*]] = weft.broadcast_in_dim %[[MAX]] dims [0]
// CHECK: %[[EQ:.*]] = weft.cmp <eq> %[[X]], %[[ALL]]
// CHECK: %[[NAN:.*]] = weft.cmp <ne> %[[X]], %[[X]]
// CHECK: %[[FOUND:.*]] = weft.or %[[EQ]], %[[NAN]]
// CHECK: %[[PLACE:.*]] = weft.iota 1 : tensor<4x8xi32>
// CHECK: %[[BEHIND:.*]] = weft.constant dense<8> : tensor<4x8xi32>
// CHECK: %[[CHOSEN:.*]] = weft.select %[[FOUND]], %[[PLACE]], %[[BEHIND]]
// CHECK: %[[FIRST:.*]] = weft.reduce <min> %[[CHOSEN]] dims [1]
// CHECK: weft.convert %[[FIRST]] : tensor<4xi32> -> tensor<4xi64>
func.func @arg_max(%x: tensor<4x8xf32>) -> tensor<4xi64> {
  %0 = weft.arg_reduce <max> %x dim 1 : tensor<4x8xf32> -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// No float holds every integer.
// CHECK-LABEL: @arg_min_of_integers(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[MIN:.*]] = weft.reduce <min> %[[X]] dims [1] : tensor<4x8xi64>
// CHECK: %[[ALL:.*]] = weft.broadcast_in_dim %[[MIN]] dims [0]
// CHECK: weft.cmp <eq> %[[X]], %[[ALL]]
// CHECK-NOT: weft.cmp
func.func @arg_min_of_integers(%x: tensor<4x8xi64>) -> tensor<4xi64> {
  %0 = weft.arg_reduce <min> %x dim 1 : tensor<4x8xi64> -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-decompose-composites=queries=100 | FileCheck %s

// Rows whose keys are all hidden are zero: their max is taken as 0 and their sum as 1.

// CHECK-LABEL: @attention(
// CHECK-SAME: %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[M:[^:]*]]:
// CHECK: %[[DOT_GENERAL:.*]] = weft.dot_general %[[Q]], %[[K]] batch [0] x [0] contract [2] x [2]
// CHECK: %[[C:.*]] = weft.constant dense<5.000000e-01> : tensor<2x3x5xf32>
// CHECK: %[[MUL:.*]] = weft.mul %[[DOT_GENERAL]], %[[C]]
// CHECK: %[[C2:.*]] = weft.constant dense<0xFF800000> : tensor<2x3x5xf32>
// CHECK: %[[SELECT:.*]] = weft.select %[[M]], %[[MUL]], %[[C2]]
// CHECK: %[[IOTA:.*]] = weft.iota 1 : tensor<2x3x5xi32>
// CHECK: %[[IOTA2:.*]] = weft.iota 2 : tensor<2x3x5xi32>
// CHECK: %[[CMP:.*]] = weft.cmp <le> %[[IOTA2]], %[[IOTA]]
// CHECK: %[[C3:.*]] = weft.constant dense<0xFF800000> : tensor<2x3x5xf32>
// CHECK: %[[SELECT2:.*]] = weft.select %[[CMP]], %[[SELECT]], %[[C3]]
// CHECK: %[[REDUCE:.*]] = weft.reduce <max> %[[SELECT2]] dims [2]
// CHECK: %[[C4:.*]] = weft.constant dense<0xFF800000> : tensor<2x3xf32>
// CHECK: %[[CMP2:.*]] = weft.cmp <eq> %[[REDUCE]], %[[C4]]
// CHECK: %[[C5:.*]] = weft.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: %[[SELECT3:.*]] = weft.select %[[CMP2]], %[[C5]], %[[REDUCE]]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[SELECT3]] dims [0, 1]
// CHECK: %[[SUB:.*]] = weft.sub %[[SELECT2]], %[[BROADCAST]]
// CHECK: %[[LEAST:.*]] = weft.constant dense<-69.3
// CHECK: %[[VANISHES:.*]] = weft.cmp <lt> %[[SUB]], %[[LEAST]]
// CHECK: %[[HIDDEN:.*]] = weft.constant dense<0xFF800000>
// CHECK: %[[SHIFTED:.*]] = weft.select %[[VANISHES]], %[[HIDDEN]], %[[SUB]]
// CHECK: %[[EXP:.*]] = weft.exp %[[SHIFTED]]
// CHECK: %[[REDUCE2:.*]] = weft.reduce <sum> %[[EXP]] dims [2]
// CHECK: %[[C6:.*]] = weft.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK: %[[SELECT4:.*]] = weft.select %[[CMP2]], %[[C6]], %[[REDUCE2]]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[SELECT4]] dims [0, 1]
// CHECK: %[[DIV:.*]] = weft.div %[[EXP]], %[[BROADCAST2]]
// CHECK: %[[DOT_GENERAL2:.*]] = weft.dot_general %[[DIV]], %[[V]] batch [0] x [0] contract [2] x [1]
// CHECK: return %[[DOT_GENERAL2]]
func.func @attention(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x4xf32>,
                     %m: tensor<2x3x5xi1>) -> tensor<2x3x4xf32> {
  %0 = weft.attention %q, %k, %v mask %m : tensor<2x3x5xi1> causal true scale 0.5
    : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x4xf32> -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// CHECK-LABEL: @attention_added_mask(
// CHECK-SAME: %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[M:[^:]*]]:
// CHECK: %[[CONVERT:.*]] = weft.convert %[[Q]] : tensor<3x8xbf16> -> tensor<3x8xf32>
// CHECK: %[[CONVERT2:.*]] = weft.convert %[[K]] : tensor<5x8xbf16> -> tensor<5x8xf32>
// CHECK: %[[DOT_GENERAL:.*]] = weft.dot_general %[[CONVERT]], %[[CONVERT2]] batch [] x [] contract [1] x [1]
// CHECK: %[[C:.*]] = weft.constant dense<5.000000e-01> : tensor<3x5xf32>
// CHECK: %[[MUL:.*]] = weft.mul %[[DOT_GENERAL]], %[[C]]
// CHECK: %[[CONVERT3:.*]] = weft.convert %[[M]] : tensor<3x5xbf16> -> tensor<3x5xf32>
// CHECK: %[[ADD:.*]] = weft.add %[[MUL]], %[[CONVERT3]]
// CHECK: %[[REDUCE:.*]] = weft.reduce <max> %[[ADD]] dims [1]
// CHECK: %[[C2:.*]] = weft.constant dense<0xFF800000> : tensor<3xf32>
// CHECK: %[[CMP:.*]] = weft.cmp <eq> %[[REDUCE]], %[[C2]]
// CHECK: %[[C3:.*]] = weft.constant dense<0.000000e+00> : tensor<3xf32>
// CHECK: %[[SELECT:.*]] = weft.select %[[CMP]], %[[C3]], %[[REDUCE]]
// CHECK: %[[BROADCAST:.*]] = weft.broadcast_in_dim %[[SELECT]] dims [0]
// CHECK: %[[SUB:.*]] = weft.sub %[[ADD]], %[[BROADCAST]]
// CHECK: %[[LEAST:.*]] = weft.constant dense<-69.3
// CHECK: %[[VANISHES:.*]] = weft.cmp <lt> %[[SUB]], %[[LEAST]]
// CHECK: %[[HIDDEN:.*]] = weft.constant dense<0xFF800000>
// CHECK: %[[SHIFTED:.*]] = weft.select %[[VANISHES]], %[[HIDDEN]], %[[SUB]]
// CHECK: %[[EXP:.*]] = weft.exp %[[SHIFTED]]
// CHECK: %[[REDUCE2:.*]] = weft.reduce <sum> %[[EXP]] dims [1]
// CHECK: %[[C4:.*]] = weft.constant dense<1.000000e+00> : tensor<3xf32>
// CHECK: %[[SELECT2:.*]] = weft.select %[[CMP]], %[[C4]], %[[REDUCE2]]
// CHECK: %[[BROADCAST2:.*]] = weft.broadcast_in_dim %[[SELECT2]] dims [0]
// CHECK: %[[DIV:.*]] = weft.div %[[EXP]], %[[BROADCAST2]]
// CHECK: %[[CONVERT4:.*]] = weft.convert %[[V]] : tensor<5x4xbf16> -> tensor<5x4xf32>
// CHECK: %[[DOT_GENERAL2:.*]] = weft.dot_general %[[DIV]], %[[CONVERT4]] batch [] x [] contract [1] x [0]
// CHECK: %[[CONVERT5:.*]] = weft.convert %[[DOT_GENERAL2]] : tensor<3x4xf32> -> tensor<3x4xbf16>
// CHECK: return %[[CONVERT5]]
func.func @attention_added_mask(%q: tensor<3x8xbf16>, %k: tensor<5x8xbf16>, %v: tensor<5x4xbf16>,
                                %m: tensor<3x5xbf16>) -> tensor<3x4xbf16> {
  %0 = weft.attention %q, %k, %v mask %m : tensor<3x5xbf16> causal false scale 0.5
    : tensor<3x8xbf16>, tensor<5x8xbf16>, tensor<5x4xbf16> -> tensor<3x4xbf16>
  return %0 : tensor<3x4xbf16>
}

// Enough queries for the kernel that has them in its lanes.
// CHECK-LABEL: @many_queries(
// CHECK-NEXT: weft.attention
func.func @many_queries(%q: tensor<101x8xf32>, %k: tensor<5x8xf32>) -> tensor<101x8xf32> {
  %0 = weft.attention %q, %k, %k causal false scale 0.5
    : tensor<101x8xf32>, tensor<5x8xf32>, tensor<5x8xf32> -> tensor<101x8xf32>
  return %0 : tensor<101x8xf32>
}

// A number in place of hidden scores, and the softmax of what results.
// CHECK-LABEL: @attention_of_hidden_rows(
// CHECK: %[[HIDDEN:.*]] = weft.constant dense<-1.000000e+09>
// CHECK: %[[SCORES:.*]] = weft.select %{{.*}}, %{{.*}}, %[[HIDDEN]]
// CHECK-NEXT: %[[MAX:.*]] = weft.reduce <max> %[[SCORES]] dims [1]
// CHECK-NEXT: %[[SPREAD:.*]] = weft.broadcast_in_dim %[[MAX]] dims [0]
// CHECK-NEXT: weft.sub %[[SCORES]], %[[SPREAD]]
// CHECK: %[[SUM:.*]] = weft.reduce <sum>
// CHECK-NEXT: weft.broadcast_in_dim %[[SUM]] dims [0]
func.func @attention_of_hidden_rows(%q: tensor<3x8xf32>, %k: tensor<5x8xf32>, %m: tensor<3x5xi1>) -> tensor<3x8xf32> {
  %0 = weft.attention %q, %k, %k mask %m : tensor<3x5xi1> causal false scale 0.5 {hiddenScore = -1.0e9 : f64}
    : tensor<3x8xf32>, tensor<5x8xf32>, tensor<5x8xf32> -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

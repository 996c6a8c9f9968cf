// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @softmax_c1(%x: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected dim to be at least 0 and below rank 3, found 3}}
  %0 = weft.softmax %x dim 3 : tensor<2x4x6xf32>
  return
}

// -----

func.func @log_softmax_c1(%x: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected dim to be at least 0 and below rank 3, found 3}}
  %0 = weft.log_softmax %x dim 3 : tensor<2x4x6xf32>
  return
}

// -----

func.func @layer_norm_c1(%x: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected normalizedDims to be at least 1 and at most rank 3, found 0}}
  %0 = weft.layer_norm %x over 0 eps 1.0e-05 : tensor<2x4x6xf32>
  return
}

// -----

func.func @layer_norm_c2(%x: tensor<2x4x6xf32>, %w: tensor<5xf32>) {
  // expected-error @+1 {{expected weight of shape [6], found [5]}}
  %0 = weft.layer_norm %x weight %w : tensor<5xf32> over 1 eps 1.0e-05 : tensor<2x4x6xf32>
  return
}

// -----

func.func @rms_norm_c1(%x: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected normalizedDims to be at least 1 and at most rank 3, found 4}}
  %0 = weft.rms_norm %x over 4 eps 1.0e-05 : tensor<2x4x6xf32>
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<2x4x6xf32>, %w: tensor<5xf32>) {
  // expected-error @+1 {{expected weight of shape [4, 6], found [5]}}
  %0 = weft.rms_norm %x weight %w : tensor<5xf32> over 2 eps 1.0e-05 : tensor<2x4x6xf32>
  return
}

// -----

func.func @group_norm_c1(%w: tensor<5xf32>) {
  // expected-error @+1 {{expected an operand of rank 2 or more, found 1}}
  %0 = weft.group_norm %w groups 1 eps 1.0e-05 : tensor<5xf32>
  return
}

// -----

func.func @group_norm_c2(%x: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected groups to divide the channels (4), found 3}}
  %0 = weft.group_norm %x groups 3 eps 1.0e-05 : tensor<2x4x6xf32>
  return
}

// -----

func.func @group_norm_c3(%x: tensor<2x4x6xf32>, %w: tensor<5xf32>) {
  // expected-error @+1 {{expected bias of shape [4], found [5]}}
  %0 = weft.group_norm %x bias %w : tensor<5xf32> groups 2 eps 1.0e-05 : tensor<2x4x6xf32>
  return
}

// -----

func.func @batch_norm_c1(%w: tensor<5xf32>) {
  // expected-error @+1 {{expected an operand of rank 2 or more, found 1}}
  %0 = weft.batch_norm %w mean %w variance %w : tensor<5xf32>, tensor<5xf32> eps 1.0e-05 : tensor<5xf32>
  return
}

// -----

func.func @batch_norm_c2(%x: tensor<2x4x6xf32>, %m: tensor<4xf32>, %w: tensor<5xf32>) {
  // expected-error @+1 {{expected variance of shape [4], found [5]}}
  %0 = weft.batch_norm %x mean %m variance %w : tensor<4xf32>, tensor<5xf32> eps 1.0e-05 : tensor<2x4x6xf32>
  return
}

// -----

func.func @gelu_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "weft.gelu"(%x) {kind = #weft.gelu_kind<erf>} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @silu_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "weft.silu"(%x) : (tensor<4xf32>) -> tensor<4xf64>
  return
}

// -----

func.func @attention_c1(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf64>, %v: tensor<2x6x5xf32>) {
  // expected-error @+1 {{expected key to have the element type of query ('f32'), found 'f64'}}
  %0 = weft.attention %q, %k, %v causal false scale 0.125 : tensor<2x4x8xf32>, tensor<2x6x8xf64>, tensor<2x6x5xf32> -> tensor<2x4x5xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<2x4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<2x6x5xf32>) {
  // expected-error @+1 {{expected query, key and value of one rank of 2 or more, found 3, 2 and 3}}
  %0 = weft.attention %q, %k, %v causal false scale 0.125 : tensor<2x4x8xf32>, tensor<6x8xf32>, tensor<2x6x5xf32> -> tensor<2x4x5xf32>
  return
}

// -----

func.func @attention_c3(%q: tensor<2x4x8xf32>, %k: tensor<2x6x7xf32>, %v: tensor<2x6x5xf32>) {
  // expected-error @+1 {{expected key of shape [2, 6, 8], found [2, 6, 7]}}
  %0 = weft.attention %q, %k, %v causal false scale 0.125 : tensor<2x4x8xf32>, tensor<2x6x7xf32>, tensor<2x6x5xf32> -> tensor<2x4x5xf32>
  return
}

// -----

func.func @attention_c4(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x7x5xf32>) {
  // expected-error @+1 {{expected value of shape [2, 6, 5], found [2, 7, 5]}}
  %0 = weft.attention %q, %k, %v causal false scale 0.125 : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x7x5xf32> -> tensor<2x4x5xf32>
  return
}

// -----

func.func @attention_c5(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>, %m: tensor<4x6xi1>) {
  // expected-error @+1 {{expected mask of shape [2, 4, 6], found [4, 6]}}
  %0 = weft.attention %q, %k, %v mask %m : tensor<4x6xi1> causal false scale 0.125 : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x5xf32> -> tensor<2x4x5xf32>
  return
}

// -----

func.func @attention_c6(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>, %m: tensor<2x4x6xi32>) {
  // expected-error @+1 {{expected a mask of i1 or a float type, found 'i32'}}
  %0 = weft.attention %q, %k, %v mask %m : tensor<2x4x6xi32> causal false scale 0.125 : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x5xf32> -> tensor<2x4x5xf32>
  return
}

// -----

func.func @attention_c7(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>) {
  // expected-error @+1 {{expected hiddenScore to be negative}}
  %0 = weft.attention %q, %k, %v causal false scale 0.125 {hiddenScore = 0.0 : f64} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x5xf32> -> tensor<2x4x5xf32>
  return
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-choose-layouts | FileCheck %s
// RUN: weft-opt %s -split-input-file -weft-choose-layouts=matrix-unit | FileCheck %s --check-prefix=UNIT

// A transformer block: relayouts at its ends, everything between works in place.
// CHECK-LABEL: func.func @block(
// CHECK-SAME: %[[X:.*]]: tensor<2x128x64xf32>, %[[W:.*]]: tensor<64x64xf32>, %[[B:.*]]: tensor<64xf32>)
func.func @block(%x: tensor<2x128x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<2x128x64xf32> {
  // CHECK-DAG: %[[T:.*]] = weft.relayout %[[X]] : tensor<2x128x64xf32> -> tensor<2x128x64xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
  // CHECK-DAG: %[[N:.*]] = weft.layer_norm %[[X]]
  // CHECK: %[[L:.*]] = weft.relayout %[[N]]
  // CHECK-NOT: weft.relayout
  // CHECK: weft.multi_dot %[[L]] with %[[W]], %[[W]], %[[W]]
  // CHECK: weft.broadcast_in_dim %[[B]] dims [2] : tensor<64xf32> -> tensor<2x128x64xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
  // CHECK: weft.reshape {{.*}} -> tensor<2x128x4x16xf32, #weft.layout<[0, 1, 2, 3], tile 1 by 64>>
  // CHECK: weft.transpose {{.*}} -> tensor<2x4x128x16xf32, #weft.layout<[0, 2, 1, 3], tile 2 by 64>>
  // CHECK: %[[A:.*]] = weft.attention
  // CHECK-SAME: -> tensor<2x4x128x16xf32, #weft.layout<[0, 2, 1, 3], tile 2 by 64>>
  // CHECK: weft.transpose %[[A]] {{.*}} -> tensor<2x128x4x16xf32, #weft.layout<[0, 1, 2, 3], tile 1 by 64>>
  // CHECK: weft.reshape {{.*}} -> tensor<2x128x64xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
  // CHECK: %[[S:.*]] = weft.add %[[T]]
  // CHECK: %[[R:.*]] = weft.relayout %[[S]] : {{.*}} -> tensor<2x128x64xf32>
  // CHECK: return %[[R]]
  %n = weft.layer_norm %x weight %b : tensor<64xf32> over 1 eps 1.0e-5 : tensor<2x128x64xf32>
  %qkv:3 = weft.multi_dot %n with %w, %w, %w contract [2] x [1] : tensor<2x128x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32> -> tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>
  %bias = weft.broadcast_in_dim %b dims [2] : tensor<64xf32> -> tensor<2x128x64xf32>
  %qb = weft.add %qkv#0, %bias : tensor<2x128x64xf32>
  %q0 = weft.reshape %qb : tensor<2x128x64xf32> -> tensor<2x128x4x16xf32>
  %k0 = weft.reshape %qkv#1 : tensor<2x128x64xf32> -> tensor<2x128x4x16xf32>
  %v0 = weft.reshape %qkv#2 : tensor<2x128x64xf32> -> tensor<2x128x4x16xf32>
  %q = weft.transpose %q0 perm [0, 2, 1, 3] : tensor<2x128x4x16xf32> -> tensor<2x4x128x16xf32>
  %k = weft.transpose %k0 perm [0, 2, 1, 3] : tensor<2x128x4x16xf32> -> tensor<2x4x128x16xf32>
  %v = weft.transpose %v0 perm [0, 2, 1, 3] : tensor<2x128x4x16xf32> -> tensor<2x4x128x16xf32>
  %a = weft.attention %q, %k, %v causal true scale 0.25 : tensor<2x4x128x16xf32>, tensor<2x4x128x16xf32>, tensor<2x4x128x16xf32> -> tensor<2x4x128x16xf32>
  %a0 = weft.transpose %a perm [0, 2, 1, 3] : tensor<2x4x128x16xf32> -> tensor<2x128x4x16xf32>
  %a1 = weft.reshape %a0 : tensor<2x128x4x16xf32> -> tensor<2x128x64xf32>
  %s = weft.add %x, %a1 : tensor<2x128x64xf32>
  return %s : tensor<2x128x64xf32>
}

// -----

// The block that wastes least, given that narrow ones reuse each weight less. Fewer tokens
// than lanes, and vectors, stay row-major.
// CHECK-LABEL: func.func @token_blocks(
func.func @token_blocks(%x: tensor<48x8xf32>, %y: tensor<197x8xf32>, %z: tensor<15x8xf32>, %v: tensor<8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<48x8xf32>, tensor<197x8xf32>, tensor<15x8xf32>, tensor<8xf32>) {
  // CHECK: weft.dot_general {{.*}} -> tensor<48x8xf32, #weft.layout<[0, 1], tile 0 by 48>>
  // CHECK: weft.dot_general {{.*}} -> tensor<197x8xf32, #weft.layout<[0, 1], tile 0 by 32>>
  // CHECK: weft.dot_general {{.*}} -> tensor<15x8xf32>
  // CHECK: weft.dot_general {{.*}} -> tensor<8xf32>
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<48x8xf32>, tensor<8x8xf32> -> tensor<48x8xf32>
  %1 = weft.dot_general %y, %w batch [] x [] contract [1] x [1] : tensor<197x8xf32>, tensor<8x8xf32> -> tensor<197x8xf32>
  %2 = weft.dot_general %z, %w batch [] x [] contract [1] x [1] : tensor<15x8xf32>, tensor<8x8xf32> -> tensor<15x8xf32>
  %3 = weft.dot_general %v, %w batch [] x [] contract [0] x [1] : tensor<8xf32>, tensor<8x8xf32> -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<48x8xf32>, tensor<197x8xf32>, tensor<15x8xf32>, tensor<8xf32>
}

// -----

// Of weights as (in, out), columns are read as vectors, beside row-major tokens.
// CHECK-LABEL: func.func @in_by_out(
// CHECK-NOT: weft.relayout
// CHECK: weft.dot_general {{.*}} -> tensor<128x8xf32>
// CHECK-NOT: weft.relayout
func.func @in_by_out(%x: tensor<128x8xf32>, %w: tensor<8x8xf32>) -> tensor<128x8xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [0] : tensor<128x8xf32>, tensor<8x8xf32> -> tensor<128x8xf32>
  return %0 : tensor<128x8xf32>
}

// -----

// Those of bf16 are copied by lines, from which tiles of four registers take most; three where four
// would leave one register over.
// CHECK-LABEL: func.func @bf16_in_by_out(
func.func @bf16_in_by_out(%x: tensor<128x8xbf16>, %y: tensor<144x8xbf16>, %w: tensor<8x8xbf16>)
    -> (tensor<128x8xbf16>, tensor<144x8xbf16>) {
  // CHECK: weft.dot_general {{.*}} -> tensor<128x8xbf16, #weft.layout<[0, 1], tile 0 by 64>>
  // CHECK: weft.dot_general {{.*}} -> tensor<144x8xbf16, #weft.layout<[0, 1], tile 0 by 48>>
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [0] : tensor<128x8xbf16>, tensor<8x8xbf16> -> tensor<128x8xbf16>
  %1 = weft.dot_general %y, %w batch [] x [] contract [1] x [0] : tensor<144x8xbf16>, tensor<8x8xbf16> -> tensor<144x8xbf16>
  return %0, %1 : tensor<128x8xbf16>, tensor<144x8xbf16>
}

// -----

// A weight that is copied as it is converted lies (out, in) then. One that is stored as bf16 is read
// where it lies.
// CHECK-LABEL: func.func @copied(
// CHECK-SAME: tensor<144x1024xbf16>{{.*}}, %{{[^,]*}}: tensor<1024x1024xf32>{{.*}}, %[[S:[^,]*]]: tensor<1024x1024xbf16>
// CHECK: %[[C:.*]] = weft.convert
// CHECK: %[[W:.*]] = weft.relayout %[[C]] : tensor<1024x1024xbf16> -> tensor<1024x1024xbf16, #weft.layout<[1, 0]>>
// CHECK: weft.dot_general %{{.*}}, %[[W]] batch
// CHECK: weft.dot_general %{{.*}}, %[[S]] batch
func.func @copied(%x: tensor<144x1024xbf16> {weft.kind = "input", weft.name = "x"},
                  %w: tensor<1024x1024xf32> {weft.kind = "weight", weft.name = "w"},
                  %s: tensor<1024x1024xbf16> {weft.kind = "weight", weft.name = "s"})
    -> (tensor<144x1024xf32>, tensor<144x1024xf32>) {
  %c = weft.convert %w : tensor<1024x1024xf32> -> tensor<1024x1024xbf16>
  %0 = weft.dot_general %x, %c batch [] x [] contract [1] x [0] : tensor<144x1024xbf16>, tensor<1024x1024xbf16> -> tensor<144x1024xf32>
  %1 = weft.dot_general %x, %s batch [] x [] contract [1] x [0] : tensor<144x1024xbf16>, tensor<1024x1024xbf16> -> tensor<144x1024xf32>
  return %0, %1 : tensor<144x1024xf32>, tensor<144x1024xf32>
}

// -----

// Attention written out: the product of two activations is row-major.
// CHECK-LABEL: func.func @scores(
func.func @scores(%x: tensor<2x32x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x32x32xf32> {
  // CHECK: %[[Q:.*]] = weft.dot_general {{.*}} tile 1 by 32>>
  // CHECK: %[[R:.*]] = weft.relayout %[[Q]] : {{.*}} -> tensor<2x32x8xf32>
  // CHECK: weft.dot_general %[[R]], %{{.*}} batch [0] x [0] {{.*}} -> tensor<2x32x32xf32>
  // CHECK-NOT: weft.relayout
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<2x32x8xf32>, tensor<8x8xf32> -> tensor<2x32x8xf32>
  %1 = weft.dot_general %0, %x batch [0] x [0] contract [2] x [2] : tensor<2x32x8xf32>, tensor<2x32x8xf32> -> tensor<2x32x32xf32>
  %2 = weft.softmax %1 dim 2 : tensor<2x32x32xf32>
  return %2 : tensor<2x32x32xf32>
}

// -----

// What works along tokens, or mixes them with features, shares one relayout back; what
// works along features stays.
// CHECK-LABEL: func.func @along(
func.func @along(%x: tensor<2x32x8xf32>, %w: tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x1x8xf32>, tensor<2x256xf32>, tensor<2x32x1xf32>) {
  // CHECK: %[[D:.*]] = weft.dot_general
  // CHECK: %[[R:.*]] = weft.relayout %[[D]]
  // CHECK: weft.reduce <sum> %[[R]] dims [1]
  // CHECK: weft.slice %[[R]]
  // CHECK: weft.reshape %[[R]] : tensor<2x32x8xf32> -> tensor<2x256xf32>
  // CHECK: %[[F:.*]] = weft.reduce <max> %[[D]] dims [2] {{.*}} -> tensor<2x32xf32, #weft.layout<[0, 1], tile 1 by 32>>
  // CHECK: weft.reshape %[[F]] : {{.*}} -> tensor<2x32x1xf32, #weft.layout<[0, 1, 2], tile 1 by 32>>
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<2x32x8xf32>, tensor<8x8xf32> -> tensor<2x32x8xf32>
  %1 = weft.reduce <sum> %0 dims [1] : tensor<2x32x8xf32> -> tensor<2x8xf32>
  %2 = weft.slice %0 [0, 0, 0] to [2, 1, 8] by [1, 1, 1] : tensor<2x32x8xf32> -> tensor<2x1x8xf32>
  %3 = weft.reshape %0 : tensor<2x32x8xf32> -> tensor<2x256xf32>
  %4 = weft.reduce <max> %0 dims [2] : tensor<2x32x8xf32> -> tensor<2x32xf32>
  %5 = weft.reshape %4 : tensor<2x32xf32> -> tensor<2x32x1xf32>
  return %1, %2, %3, %5 : tensor<2x8xf32>, tensor<2x1x8xf32>, tensor<2x256xf32>, tensor<2x32x1xf32>
}

// -----

// Rotary embedding and repeated heads of grouped-query attention are views and
// elementwise ops on blocks of tokens.
// CHECK-LABEL: func.func @grouped_query(
func.func @grouped_query(%x: tensor<2x64x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8x64x4xf32> {
  // CHECK: weft.dot_general
  // CHECK-NOT: weft.relayout
  // CHECK: weft.concat {{.*}} -> tensor<2x2x64x4xf32, #weft.layout<[0, 2, 1, 3], tile 2 by 64>>
  // CHECK: weft.broadcast_in_dim {{.*}} -> tensor<2x2x4x64x4xf32, #weft.layout<[0, 3, 1, 2, 4], tile 3 by 64>>
  // CHECK: weft.reshape {{.*}} -> tensor<2x8x64x4xf32, #weft.layout<[0, 2, 1, 3], tile 2 by 64>>
  // CHECK: weft.relayout
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<2x64x8xf32>, tensor<8x8xf32> -> tensor<2x64x8xf32>
  %1 = weft.reshape %0 : tensor<2x64x8xf32> -> tensor<2x64x2x4xf32>
  %2 = weft.transpose %1 perm [0, 2, 1, 3] : tensor<2x64x2x4xf32> -> tensor<2x2x64x4xf32>
  %3 = weft.slice %2 [0, 0, 0, 0] to [2, 2, 64, 2] by [1, 1, 1, 1] : tensor<2x2x64x4xf32> -> tensor<2x2x64x2xf32>
  %4 = weft.slice %2 [0, 0, 0, 2] to [2, 2, 64, 4] by [1, 1, 1, 1] : tensor<2x2x64x4xf32> -> tensor<2x2x64x2xf32>
  %5 = weft.neg %4 : tensor<2x2x64x2xf32>
  %6 = weft.concat %5, %3 dim 3 : tensor<2x2x64x2xf32>, tensor<2x2x64x2xf32> -> tensor<2x2x64x4xf32>
  %7 = weft.broadcast_in_dim %6 dims [0, 1, 3, 4] : tensor<2x2x64x4xf32> -> tensor<2x2x4x64x4xf32>
  %8 = weft.reshape %7 : tensor<2x2x4x64x4xf32> -> tensor<2x8x64x4xf32>
  return %8 : tensor<2x8x64x4xf32>
}

// -----

// Tokens of two sequences share a block only when it holds whole tiles.
// CHECK-LABEL: func.func @split_tokens(
func.func @split_tokens(%x: tensor<128x8xf32>, %y: tensor<96x8xf32>, %w: tensor<8x8xf32>) -> (tensor<2x64x8xf32>, tensor<4x24x8xf32>) {
  // CHECK: weft.reshape {{.*}} tile 0 by 64>> -> tensor<2x64x8xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
  // CHECK: weft.reshape {{.*}} : tensor<96x8xf32> -> tensor<4x24x8xf32>
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<128x8xf32>, tensor<8x8xf32> -> tensor<128x8xf32>
  %1 = weft.reshape %0 : tensor<128x8xf32> -> tensor<2x64x8xf32>
  %2 = weft.dot_general %y, %w batch [] x [] contract [1] x [1] : tensor<96x8xf32>, tensor<8x8xf32> -> tensor<96x8xf32>
  %3 = weft.reshape %2 : tensor<96x8xf32> -> tensor<4x24x8xf32>
  return %1, %3 : tensor<2x64x8xf32>, tensor<4x24x8xf32>
}

// -----

// An argument keeps its order; a contraction reads it so, other ops get a copy, a result
// is what the signature says.
// CHECK-LABEL: func.func @given_order(
// CHECK-SAME: %{{.*}}: tensor<32x8xf32>, %[[W:.*]]: tensor<8x8xf32, #weft.layout<[1, 0]>>)
func.func @given_order(%x: tensor<32x8xf32>, %w: tensor<8x8xf32, #weft.layout<[1, 0]>>)
    -> (tensor<32x8xf32>, tensor<8x8xf32, #weft.layout<[1, 0]>>, tensor<8x8xf32, #weft.layout<[1, 0]>>) {
  // CHECK: %[[R:.*]] = weft.relayout %[[W]] : {{.*}} -> tensor<8x8xf32>
  // CHECK: weft.dot_general %{{.*}}, %[[W]]
  // CHECK: %[[S:.*]] = weft.reverse %[[R]] dims [0] : tensor<8x8xf32>
  // CHECK: %[[T:.*]] = weft.relayout %[[S]] : {{.*}} -> tensor<8x8xf32, #weft.layout<[1, 0]>>
  // CHECK: return %{{.*}}, %[[T]], %[[W]]
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<32x8xf32>, tensor<8x8xf32, #weft.layout<[1, 0]>> -> tensor<32x8xf32>
  %1 = weft.reverse %w dims [0] : tensor<8x8xf32, #weft.layout<[1, 0]>>
  return %0, %1, %w : tensor<32x8xf32>, tensor<8x8xf32, #weft.layout<[1, 0]>>, tensor<8x8xf32, #weft.layout<[1, 0]>>
}

// -----

// Small weights are packed in blocks of columns, however they are stored; tokens stay.
// CHECK-LABEL: func.func @mlp(
// CHECK-DAG: %[[W:.*]] = weft.relayout %arg1 : tensor<128x784xf32> -> tensor<128x784xf32, #weft.layout<[0, 1], tile 0 by 64>>
// CHECK-DAG: %[[V:.*]] = weft.relayout %arg2 : tensor<128x10xf32> -> tensor<128x10xf32, #weft.layout<[1, 0], tile 1 by 16>>
// CHECK: %[[H:.*]] = weft.dot_general %arg0, %[[W]] {{.*}} -> tensor<64x128xf32>
// CHECK: %[[R:.*]] = weft.neg %[[H]] : tensor<64x128xf32>
// CHECK: %[[Y:.*]] = weft.dot_general %[[R]], %[[V]] {{.*}} -> tensor<64x10xf32>
// CHECK: return %[[Y]]
func.func @mlp(%x: tensor<64x784xf32> {weft.kind = "input"}, %w: tensor<128x784xf32> {weft.kind = "weight"},
               %v: tensor<128x10xf32> {weft.kind = "weight"}) -> tensor<64x10xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<64x784xf32>, tensor<128x784xf32> -> tensor<64x128xf32>
  %1 = weft.neg %0 : tensor<64x128xf32>
  %2 = weft.dot_general %1, %v batch [] x [] contract [1] x [0] : tensor<64x128xf32>, tensor<128x10xf32> -> tensor<64x10xf32>
  return %2 : tensor<64x10xf32>
}

// -----

// Of a large weight, panels that no L2 keeps would be loaded again and again.
// CHECK-LABEL: func.func @large(
// CHECK: weft.dot_general {{.*}}, %arg1
// CHECK-SAME: tile 0 by 64>>
// CHECK: weft.dot_general {{.*}}, %arg2
func.func @large(%x: tensor<64x784xf32> {weft.kind = "input"}, %w: tensor<1024x784xf32> {weft.kind = "weight"},
                 %v: tensor<10x1024xf32> {weft.kind = "weight"}) -> tensor<64x10xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<64x784xf32>, tensor<1024x784xf32> -> tensor<64x1024xf32>
  %1 = weft.dot_general %0, %v batch [] x [] contract [1] x [1] : tensor<64x1024xf32>, tensor<10x1024xf32> -> tensor<64x10xf32>
  return %1 : tensor<64x10xf32>
}

// -----

// So do few rows,
// CHECK-LABEL: func.func @mlp_of_few_rows(
// CHECK-COUNT-2: weft.relayout %{{.*}} : tensor<{{.*}}> -> tensor<{{.*}}, #weft.layout<[0, 1], tile 0 by
func.func @mlp_of_few_rows(%x: tensor<10x784xf32> {weft.kind = "input"}, %w: tensor<128x784xf32> {weft.kind = "weight"},
                           %v: tensor<64x128xf32> {weft.kind = "weight"}) -> tensor<10x64xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<10x784xf32>, tensor<128x784xf32> -> tensor<10x128xf32>
  %1 = weft.dot_general %0, %v batch [] x [] contract [1] x [1] : tensor<10x128xf32>, tensor<64x128xf32> -> tensor<10x64xf32>
  return %1 : tensor<10x64xf32>
}

// -----

// but not those that wait for weights.
// CHECK-LABEL: func.func @mlp_of_fewer_rows(
// CHECK-NOT: weft.relayout
// CHECK: return
func.func @mlp_of_fewer_rows(%x: tensor<9x784xf32> {weft.kind = "input"}, %w: tensor<128x784xf32> {weft.kind = "weight"},
                             %v: tensor<64x128xf32> {weft.kind = "weight"}) -> tensor<9x64xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<9x784xf32>, tensor<128x784xf32> -> tensor<9x128xf32>
  %1 = weft.dot_general %0, %v batch [] x [] contract [1] x [1] : tensor<9x128xf32>, tensor<64x128xf32> -> tensor<9x64xf32>
  return %1 : tensor<9x64xf32>
}

// -----

// A weight that is read again and again is waited for once.
// CHECK-LABEL: func.func @steps_of_fewer_rows(
// CHECK: %[[W:.*]] = weft.relayout %arg1
// CHECK-COUNT-5: weft.dot_general %{{.*}}, %[[W]]
func.func @steps_of_fewer_rows(%x: tensor<2x64xf32> {weft.kind = "input"}, %w: tensor<64x64xf32> {weft.kind = "weight"}) -> tensor<2x64xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %1 = weft.dot_general %0, %w batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %2 = weft.dot_general %1, %w batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %3 = weft.dot_general %2, %w batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %4 = weft.dot_general %3, %w batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  return %4 : tensor<2x64xf32>
}

// -----

// One layer pays for both relayouts by itself: more than for a larger copy.
// CHECK-LABEL: func.func @alone(
// CHECK: weft.relayout %arg1 : tensor<768x768xf32> -> tensor<768x768xf32, #weft.layout<[0, 1], tile 0 by 64>>
// CHECK-NOT: weft.relayout
// CHECK: return
func.func @alone(%x: tensor<64x768xf32>, %w: tensor<768x768xf32> {weft.kind = "weight"}) -> tensor<64x768xf32> {
  %y = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<64x768xf32>, tensor<768x768xf32> -> tensor<64x768xf32>
  return %y : tensor<64x768xf32>
}

// -----

// Of one that is larger still, tokens that would leave half of a block to padding: dot products.
// CHECK-LABEL: func.func @few_tokens(
// CHECK-NOT: weft.relayout
// CHECK: return
func.func @few_tokens(%x: tensor<17x768xf32>, %w: tensor<1536x768xf32> {weft.kind = "weight"}) -> tensor<17x1536xf32> {
  %y = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<17x768xf32>, tensor<1536x768xf32> -> tensor<17x1536xf32>
  return %y : tensor<17x1536xf32>
}

// -----

// Whole blocks of tokens pay for their relayouts.
// CHECK-LABEL: func.func @whole_blocks(
// CHECK-COUNT-2: weft.relayout
func.func @whole_blocks(%x: tensor<64x768xf32>, %w: tensor<1536x768xf32> {weft.kind = "weight"}) -> tensor<64x1536xf32> {
  %y = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<64x768xf32>, tensor<1536x768xf32> -> tensor<64x1536xf32>
  return %y : tensor<64x1536xf32>
}

// -----

// Two layers share the relayouts at the ends.
// CHECK-LABEL: func.func @two_layers(
// CHECK-COUNT-2: weft.relayout
func.func @two_layers(%x: tensor<34x768xf32>, %w: tensor<768x768xf32> {weft.kind = "weight"},
                      %v: tensor<768x768xf32> {weft.kind = "weight"}) -> tensor<34x768xf32> {
  %y = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<34x768xf32>, tensor<768x768xf32> -> tensor<34x768xf32>
  %z = weft.dot_general %y, %v batch [] x [] contract [1] x [1] : tensor<34x768xf32>, tensor<768x768xf32> -> tensor<34x768xf32>
  return %z : tensor<34x768xf32>
}

// -----

// But not where the second of two registers would be mostly padding.
// CHECK-LABEL: func.func @two_layers_of_few_tokens(
// CHECK-NOT: weft.relayout
// CHECK: return
func.func @two_layers_of_few_tokens(%x: tensor<17x768xf32>, %w: tensor<768x768xf32> {weft.kind = "weight"}) -> tensor<17x768xf32> {
  %y = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<17x768xf32>, tensor<768x768xf32> -> tensor<17x768xf32>
  %z = weft.dot_general %y, %w batch [] x [] contract [1] x [1] : tensor<17x768xf32>, tensor<768x768xf32> -> tensor<17x768xf32>
  return %z : tensor<17x768xf32>
}

// -----

#last = #weft.layout<[0, 2, 3, 1]>

// What an input's order suits works in it, though the program moves it first.
// CHECK-LABEL: func.func @channels_last(
// CHECK-SAME:  %[[X:[^:]*]]:
// CHECK-NEXT:  %[[N:.*]] = weft.group_norm %[[X]]
// CHECK-NEXT:  %[[P:.*]] = weft.reduce_window <max> %[[N]] {{.*}} -> tensor<2x32x4x4xf32, #weft.layout<[0, 2, 3, 1]>>
// CHECK-NOT:   -> tensor<2x32x4x4xf32>
// CHECK:       return
func.func @channels_last(%x: tensor<2x32x8x8xf32, #last>) -> tensor<2x32x4x4xf32, #last> {
  %0 = weft.relayout %x : tensor<2x32x8x8xf32, #last> -> tensor<2x32x8x8xf32>
  %1 = weft.group_norm %0 groups 8 eps 1.0e-05 : tensor<2x32x8x8xf32>
  %2 = weft.reduce_window <max> %1 window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] : tensor<2x32x8x8xf32> -> tensor<2x32x4x4xf32>
  %3 = weft.relayout %2 : tensor<2x32x4x4xf32> -> tensor<2x32x4x4xf32, #last>
  return %3 : tensor<2x32x4x4xf32, #last>
}

// -----

// Attention wants blocks of tokens, but not those of which much is padding: weights are packed,
// and tokens stay, unless that were copies of many weights.
// CHECK-LABEL: func.func @padded_attention(
// CHECK:       weft.relayout %{{.*}} : tensor<384x384xf32> -> tensor<384x384xf32, #weft.layout<[0, 1], tile 0 by
// CHECK:       weft.attention {{.*}} -> tensor<2x50x384xf32>{{$}}
// CHECK-LABEL: func.func @padded_attention_of_many_weights(
// CHECK-NOT:   weft.relayout %arg1
// CHECK:       weft.attention {{.*}} -> tensor<2x50x8192xf32, #weft.layout<[0, 1, 2], tile 1 by
// CHECK-LABEL: func.func @attention_in_blocks(
// CHECK-NOT:   weft.relayout %arg1
// CHECK:       weft.attention {{.*}} -> tensor<2x64x64xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
func.func @padded_attention(%x: tensor<2x50x384xf32> {weft.kind = "input"}, %w: tensor<384x384xf32> {weft.kind = "weight"}) -> tensor<2x50x384xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<2x50x384xf32>, tensor<384x384xf32> -> tensor<2x50x384xf32>
  %1 = weft.attention %0, %0, %0 causal false scale 0.125 : tensor<2x50x384xf32>, tensor<2x50x384xf32>, tensor<2x50x384xf32> -> tensor<2x50x384xf32>
  return %1 : tensor<2x50x384xf32>
}
func.func @padded_attention_of_many_weights(%x: tensor<2x50x8192xf32> {weft.kind = "input"}, %w: tensor<8192x8192xf32> {weft.kind = "weight"}) -> tensor<2x50x8192xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<2x50x8192xf32>, tensor<8192x8192xf32> -> tensor<2x50x8192xf32>
  %1 = weft.attention %0, %0, %0 causal false scale 0.125 : tensor<2x50x8192xf32>, tensor<2x50x8192xf32>, tensor<2x50x8192xf32> -> tensor<2x50x8192xf32>
  return %1 : tensor<2x50x8192xf32>
}
func.func @attention_in_blocks(%x: tensor<2x64x64xf32> {weft.kind = "input"}, %w: tensor<64x64xf32> {weft.kind = "weight"}) -> tensor<2x64x64xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<2x64x64xf32>, tensor<64x64xf32> -> tensor<2x64x64xf32>
  %1 = weft.attention %0, %0, %0 causal false scale 0.125 : tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32> -> tensor<2x64x64xf32>
  return %1 : tensor<2x64x64xf32>
}

// -----

// Short sums along both operands: the right side is turned, so that vectors run along its columns.
// CHECK-LABEL: func.func @scores
// CHECK:         %[[TURNED:.*]] = weft.relayout %{{.*}} : tensor<4x64x32xf32> -> tensor<4x64x32xf32, #weft.layout<[0, 2, 1]>>
// CHECK:         weft.dot_general %{{.*}}, %[[TURNED]]
func.func @scores(%q: tensor<4x64x32xf32>, %k: tensor<4x64x32xf32>) -> tensor<4x64x64xf32> {
  %0 = weft.dot_general %q, %k batch [0] x [0] contract [2] x [2]
      : tensor<4x64x32xf32>, tensor<4x64x32xf32> -> tensor<4x64x64xf32>
  return %0 : tensor<4x64x64xf32>
}

// -----

// Few rows do not pay for that, and what vectors run along already stays.
// CHECK-LABEL: func.func @few_scores
// CHECK-NOT:     weft.relayout
// CHECK:         return
func.func @few_scores(%q: tensor<4x16x32xf32>, %k: tensor<4x64x32xf32>, %t: tensor<4x32x64xf32>)
    -> (tensor<4x16x64xf32>, tensor<4x16x64xf32>) {
  %0 = weft.dot_general %q, %k batch [0] x [0] contract [2] x [2]
      : tensor<4x16x32xf32>, tensor<4x64x32xf32> -> tensor<4x16x64xf32>
  %1 = weft.dot_general %q, %t batch [0] x [0] contract [2] x [1]
      : tensor<4x16x32xf32>, tensor<4x32x64xf32> -> tensor<4x16x64xf32>
  return %0, %1 : tensor<4x16x64xf32>, tensor<4x16x64xf32>
}

// A constant lies as a relayout that was folded into it says; others have it in their own order.
// CHECK-LABEL: func.func @folded_relayout(
// CHECK: weft.constant dense<0.000000e+00> : tensor<2x3xf16, #weft.layout<[1, 0]>>
// CHECK: weft.constant dense<0.000000e+00> : tensor<2x3xf16>
func.func @folded_relayout() -> (tensor<2x3xf16, #weft.layout<[1, 0]>>, tensor<1x3xf16>) attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.constant dense<0.0> : tensor<2x3xf16, #weft.layout<[1, 0]>>
  %1 = weft.constant dense<0.0> : tensor<2x3xf16>
  %2 = weft.slice %1 [0, 0] to [1, 3] by [1, 1] : tensor<2x3xf16> -> tensor<1x3xf16>
  return %0, %2 : tensor<2x3xf16, #weft.layout<[1, 0]>>, tensor<1x3xf16>
}

// -----

// A factor without dims is no linear layer's tokens.
// CHECK-LABEL: func.func @factor
func.func @factor(%x: tensor<f32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: weft.dot_general %{{.*}}, %{{.*}} : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  %0 = weft.dot_general %x, %y batch [] x [] contract [] x [] : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A layer of bf16 apart from others, whose weight lies (in, out), is for the matrix unit as it lies;
// one whose weight lies (out, in) and one that another follows are not.
// CHECK-LABEL: func.func @for_the_unit(
// CHECK-COUNT-3: weft.relayout %arg
// UNIT-LABEL: func.func @for_the_unit(
// UNIT-NOT: weft.relayout %arg0
// UNIT-DAG: weft.relayout %arg2
// UNIT-DAG: weft.relayout %arg3
// UNIT-DAG: weft.dot_general %arg0, %arg1 {{.*}} -> tensor<128x64xbf16>{{$}}
func.func @for_the_unit(%x: tensor<128x64xbf16>, %w: tensor<64x64xbf16>, %y: tensor<128x64xbf16>,
                        %t: tensor<128x64xbf16>)
    -> (tensor<128x64xbf16>, tensor<128x64xbf16>, tensor<128x64xbf16>) {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [0] : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xbf16>
  %1 = weft.dot_general %y, %w batch [] x [] contract [1] x [1] : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xbf16>
  %2 = weft.dot_general %t, %w batch [] x [] contract [1] x [0] : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xbf16>
  %3 = weft.dot_general %2, %w batch [] x [] contract [1] x [0] : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xbf16>
  return %0, %1, %3 : tensor<128x64xbf16>, tensor<128x64xbf16>, tensor<128x64xbf16>
}

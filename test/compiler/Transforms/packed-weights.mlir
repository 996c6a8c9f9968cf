// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-choose-layouts | FileCheck %s --check-prefixes=CHECK,SMALL
// RUN: weft-opt %s -split-input-file -weft-choose-layouts="l2-bytes=4194304" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,LARGE

// Weights are packed where that costs less, on shapes of no model of this repository. A wide layer
// that is the only one: its panels have to stay in the second-level caches.
// CHECK-LABEL: func.func @one_layer(
// SMALL-NOT:     weft.relayout %arg1
// LARGE:         weft.relayout %arg1
// LARGE-NOT:     weft.relayout
// CHECK:         return
func.func @one_layer(%x: tensor<96x1536xf32> {weft.kind = "input"},
                     %w: tensor<1280x1536xf32> {weft.kind = "weight"}) -> tensor<96x1280xf32> {
  %y = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<96x1536xf32>, tensor<1280x1536xf32> -> tensor<96x1280xf32>
  return %y : tensor<96x1280xf32>
}

// -----

// Two layers of 40 features: copies cost nothing beside the relayouts at both ends.
// CHECK-LABEL: func.func @two_layers(
// CHECK-COUNT-2: weft.relayout %arg{{[12]}}
// CHECK-NOT:     weft.relayout
// CHECK:         return
func.func @two_layers(%x: tensor<80x200xf32> {weft.kind = "input"}, %w: tensor<40x200xf32> {weft.kind = "weight"},
                      %v: tensor<24x40xf32> {weft.kind = "weight"}) -> tensor<80x24xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<80x200xf32>, tensor<40x200xf32> -> tensor<80x40xf32>
  %1 = weft.tanh %0 : tensor<80x40xf32>
  %2 = weft.dot_general %1, %v batch [] x [] contract [1] x [1] : tensor<80x40xf32>, tensor<24x40xf32> -> tensor<80x24xf32>
  return %2 : tensor<80x24xf32>
}

// -----

// A small transformer's layer of whole blocks of tokens: its attention wants them.
// CHECK-LABEL: func.func @transformer(
// CHECK-NOT:     weft.relayout %arg{{[12]}}
// CHECK:         weft.attention {{.*}} tile 1 by 64>>
func.func @transformer(%x: tensor<3x192x160xf32> {weft.kind = "input"}, %q: tensor<160x160xf32> {weft.kind = "weight"},
                       %o: tensor<160x160xf32> {weft.kind = "weight"}) -> tensor<3x192x160xf32> {
  %0:3 = weft.multi_dot %x with %q, %q, %q contract [2] x [1] : tensor<3x192x160xf32>, tensor<160x160xf32>, tensor<160x160xf32>, tensor<160x160xf32> -> tensor<3x192x160xf32>, tensor<3x192x160xf32>, tensor<3x192x160xf32>
  %1 = weft.attention %0#0, %0#1, %0#2 causal false scale 0.08 : tensor<3x192x160xf32>, tensor<3x192x160xf32>, tensor<3x192x160xf32> -> tensor<3x192x160xf32>
  %2 = weft.dot_general %1, %o batch [] x [] contract [2] x [1] : tensor<3x192x160xf32>, tensor<160x160xf32> -> tensor<3x192x160xf32>
  return %2 : tensor<3x192x160xf32>
}

// -----

// The same of 70 tokens, of which blocks would be a fifth padding, written out or called.
// CHECK-LABEL: func.func @padded_transformer(
// CHECK-DAG:     weft.relayout %arg1
// CHECK-DAG:     weft.relayout %arg2
// CHECK:         weft.attention {{.*}} -> tensor<3x70x480xf32>{{$}}
func.func @padded_transformer(%x: tensor<3x70x480xf32> {weft.kind = "input"}, %q: tensor<480x480xf32> {weft.kind = "weight"},
                              %o: tensor<480x480xf32> {weft.kind = "weight"}) -> tensor<3x70x480xf32> {
  %0:3 = weft.multi_dot %x with %q, %q, %q contract [2] x [1] : tensor<3x70x480xf32>, tensor<480x480xf32>, tensor<480x480xf32>, tensor<480x480xf32> -> tensor<3x70x480xf32>, tensor<3x70x480xf32>, tensor<3x70x480xf32>
  %1 = weft.attention %0#0, %0#1, %0#2 causal false scale 0.05 : tensor<3x70x480xf32>, tensor<3x70x480xf32>, tensor<3x70x480xf32> -> tensor<3x70x480xf32>
  %2 = weft.dot_general %1, %o batch [] x [] contract [2] x [1] : tensor<3x70x480xf32>, tensor<480x480xf32> -> tensor<3x70x480xf32>
  return %2 : tensor<3x70x480xf32>
}

// -----

// A decoder of so many weights that their copies would be felt.
// CHECK-LABEL: func.func @many_weights(
// CHECK-NOT:     weft.relayout %arg{{[12]}}
// CHECK:         return
func.func @many_weights(%x: tensor<1x70x5120xf32> {weft.kind = "input"}, %w: tensor<5120x5120xf32> {weft.kind = "weight"},
                        %v: tensor<5120x5120xf32> {weft.kind = "weight"}) -> tensor<1x70x5120xf32> {
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1] : tensor<1x70x5120xf32>, tensor<5120x5120xf32> -> tensor<1x70x5120xf32>
  %1 = weft.tanh %0 : tensor<1x70x5120xf32>
  %2 = weft.dot_general %1, %v batch [] x [] contract [2] x [1] : tensor<1x70x5120xf32>, tensor<5120x5120xf32> -> tensor<1x70x5120xf32>
  return %2 : tensor<1x70x5120xf32>
}

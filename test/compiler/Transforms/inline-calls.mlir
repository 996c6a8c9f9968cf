// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-inline-calls -split-input-file -verify-diagnostics | FileCheck %s
// RUN: weft-opt %s -weft-inline-calls=primitives -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=ALL

// Calls within calls, and what only they called is gone.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[E:.*]] = weft.exp %[[X]]
// CHECK-NEXT: %[[S:.*]] = weft.add %[[E]], %[[X]]
// CHECK-NEXT: %[[E2:.*]] = weft.exp %[[S]]
// CHECK-NEXT: %[[S2:.*]] = weft.add %[[E2]], %[[S]]
// CHECK-NEXT: return %[[S2]], %[[X]]
// CHECK-NOT: func.func
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0:2 = call @outer(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1:2 = call @outer(%0#0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %1#0, %x : tensor<4xf32>, tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = weft.add %0, %x : tensor<4xf32>
  return %1, %x : tensor<4xf32>, tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = weft.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Kernels stay, and so do functions that nothing calls.
// CHECK-LABEL: func.func @kept(
// CHECK: call @kernel
// CHECK: func.func private @kernel
// CHECK: func.func @uncalled
func.func @kept(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.kernel = "nest"} {
  return %x : tensor<4xf32>
}
func.func @uncalled(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func private @itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected functions that do not call themselves, found 'itself'}}
  %0 = call @itself(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Primitive functions stay, for fusion, with the calls within them inlined.
// CHECK-LABEL: func.func @units(
// CHECK-NEXT: call @unit
// CHECK-NEXT: return
// CHECK: func.func private @unit
// CHECK-NEXT: weft.exp
// CHECK-NEXT: return
// CHECK-NOT: @part
// ALL-LABEL: func.func @units(
// ALL-NEXT: weft.exp
// ALL-NEXT: return
// ALL-NOT: @unit(
func.func @units(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @unit(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @unit(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.primitive} {
  %0 = call @part(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @part(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.primitive} {
  %0 = weft.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

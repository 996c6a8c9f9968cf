// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-fuse-kernels | FileCheck %s

// Elements are sought among those that are stored: two loops may add in another order.
// CHECK-LABEL: func.func @position
// CHECK-NEXT: %[[P:.*]] = call @[[SOFTMAX:[a-z_0-9]+]](%arg0)
// CHECK-NEXT: %[[POSITION:.*]] = call @[[SEEK:[a-z_0-9]+]](%[[P]])
// CHECK-NEXT: return %[[POSITION]]
// CHECK: func.func private @[[SOFTMAX]](
// CHECK-NOT: weft.reduce <max>
// CHECK: func.func private @[[SEEK]](
// CHECK-NEXT: weft.reduce <max>
func.func @position(%x: tensor<4x32xf32>) -> tensor<4xi32> attributes {weft.entry = #weft.entry<main>} {
  %e = weft.exp %x : tensor<4x32xf32>
  %s = weft.reduce <sum> %e dims [1] : tensor<4x32xf32> -> tensor<4xf32>
  %sb = weft.broadcast_in_dim %s dims [0] : tensor<4xf32> -> tensor<4x32xf32>
  %p = weft.div %e, %sb : tensor<4x32xf32>
  %m = weft.reduce <max> %p dims [1] : tensor<4x32xf32> -> tensor<4xf32>
  %mb = weft.broadcast_in_dim %m dims [0] : tensor<4xf32> -> tensor<4x32xf32>
  %is = weft.cmp <eq> %p, %mb : tensor<4x32xf32> -> tensor<4x32xi1>
  %i = weft.iota 1 : tensor<4x32xi32>
  %none = weft.constant dense<32> : tensor<4x32xi32>
  %at = weft.select %is, %i, %none : tensor<4x32xi1>, tensor<4x32xi32>
  %first = weft.reduce <min> %at dims [1] : tensor<4x32xi32> -> tensor<4xi32>
  return %first : tensor<4xi32>
}

// -----

// What the caller gets twice is of one computation; so is what is compared as a difference.
// CHECK-LABEL: func.func @leaving
// CHECK-NEXT: %[[E:.*]] = call @[[EXP:[a-z_0-9]+]](%arg0) : (tensor<4x32xf32>) -> tensor<4x32xf32>
// CHECK-NEXT: %[[M:.*]]:2 = call @{{[a-z_0-9]+}}(%[[E]])
// CHECK-NEXT: return %[[E]], %[[M]]#{{[01]}}, %[[M]]#{{[01]}}
func.func @leaving(%x: tensor<4x32xf32>) -> (tensor<4x32xf32>, tensor<4xf32>, tensor<4x32xi1>) attributes {weft.entry = #weft.entry<main>} {
  %e = weft.exp %x : tensor<4x32xf32>
  %m = weft.reduce <max> %e dims [1] : tensor<4x32xf32> -> tensor<4xf32>
  %mb = weft.broadcast_in_dim %m dims [0] : tensor<4xf32> -> tensor<4x32xf32>
  %d = weft.sub %e, %mb : tensor<4x32xf32>
  %zero = weft.constant dense<0.0> : tensor<4x32xf32>
  %is = weft.cmp <eq> %d, %zero : tensor<4x32xf32> -> tensor<4x32xi1>
  return %e, %m, %is : tensor<4x32xf32>, tensor<4xf32>, tensor<4x32xi1>
}

// -----

// What rounds once is the same in all loops.
// CHECK-LABEL: func.func @once
// CHECK-NEXT: call
// CHECK-NEXT: return
func.func @once(%x: tensor<4x32xf32>, %y: tensor<4x32xf32>) -> tensor<4x32xi1> attributes {weft.entry = #weft.entry<main>} {
  %s = weft.add %x, %y : tensor<4x32xf32>
  %m = weft.reduce <max> %s dims [1] : tensor<4x32xf32> -> tensor<4xf32>
  %mb = weft.broadcast_in_dim %m dims [0] : tensor<4xf32> -> tensor<4x32xf32>
  %is = weft.cmp <eq> %s, %mb : tensor<4x32xf32> -> tensor<4x32xi1>
  return %is : tensor<4x32xi1>
}

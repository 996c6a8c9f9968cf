// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file --weft-lower-to-linalg | FileCheck %s

// A scatter stays one op: on physical tensors, with indices of i64.
// CHECK-LABEL: func.func private @scatter(
// CHECK-SAME: %[[X:.*]]: tensor<9x4xi8>, %[[U:.*]]: tensor<2x4xi8>, %[[I:.*]]: tensor<2xi8>
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[I]] : tensor<2xi8>)
// CHECK: arith.extui %{{.*}} : i8 to i64
// CHECK: weft.scatter <max> %[[U]] into %[[X]][%[[WIDE]]] dims [0] : tensor<2x4xi8> into tensor<9x4xi8>, tensor<2xi64> -> tensor<9x4xi8>
func.func private @scatter(%x: tensor<9x4xi1>, %u: tensor<2x4xi1>, %i: tensor<2xui8>) -> tensor<9x4xi1>
    attributes {weft.kernel = "scatter"} {
  %0 = weft.scatter <max> %u into %x[%i] dims [0]
    : tensor<2x4xi1> into tensor<9x4xi1>, tensor<2xui8> -> tensor<9x4xi1>
  return %0 : tensor<9x4xi1>
}

// -----

// So does a sort, which is told that what i8 stores are bools.
// CHECK-LABEL: func.func private @sort(
// CHECK: weft.sort %{{.*}} dim 0 descending true count 9 {weft.stored_bools} : tensor<9xi8> -> tensor<9xi8>, tensor<9xi64>
// CHECK-LABEL: func.func private @sort_numbers(
// CHECK-NOT: stored_bools
func.func private @sort(%x: tensor<9xi1>) -> tensor<9xi64> attributes {weft.kernel = "sort"} {
  %0, %1 = weft.sort %x dim 0 descending true count 9 : tensor<9xi1> -> tensor<9xi1>, tensor<9xi64>
  return %1 : tensor<9xi64>
}
func.func private @sort_numbers(%x: tensor<9xi8>) -> tensor<9xi64> attributes {weft.kernel = "sort"} {
  %0, %1 = weft.sort %x dim 0 descending true count 9 : tensor<9xi8> -> tensor<9xi8>, tensor<9xi64>
  return %1 : tensor<9xi64>
}

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

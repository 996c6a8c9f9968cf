// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0" -weft-form-step -canonicalize | FileCheck %s
// RUN: not weft-opt %s -weft-form-step 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: not weft-opt %s -weft-differentiate="wrt=0,1 results=0" -weft-form-step 2>&1 | FileCheck %s --check-prefix=TYPE

// PLAIN: expected a differentiated @main
// TYPE: expected argument 1 of type 'tensor<4xf64>', found 'tensor<4xf32>'

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4xf64> {weft.kind = "input"}, %[[X:[a-z0-9]+]]: tensor<4xf32> {weft.kind = "input"})
// CHECK-SAME: -> (tensor<4xf64>, tensor<4xf64>)
// CHECK: %[[SIN:.*]] = weft.sin %[[P]]
// CHECK: %[[COS:.*]] = weft.cos %[[P]]
// CHECK: %[[NEW:.*]] = weft.sub %[[P]], %[[COS]]
// CHECK: return %[[SIN]], %[[NEW]]
func.func @main(%p: tensor<4xf64> {weft.kind = "parameter"}, %x: tensor<4xf32>, %d: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
    attributes {weft.entry = #weft.entry<main>} {
  %new = weft.sub %p, %d : tensor<4xf64>
  %0 = weft.sin %p : tensor<4xf64>
  return %0, %new : tensor<4xf64>, tensor<4xf64>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0" | FileCheck %s
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0" -weft-partition="half=forward" | FileCheck %s --check-prefix=FORWARD

// PyTorch differentiates what it runs: another op of its own, of the operands and the cotangents,
// which is no part of the forward.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf32>
// CHECK: %[[VALUE:.*]] = weft.torch_fallback "aten.hypot.default"(%[[X]], %[[Y]])
// CHECK: %[[GRADIENT:.*]] = weft.torch_fallback "aten.hypot.default"(%[[X]], %[[Y]], %[[G]])
// CHECK-SAME: {\22gradients\22: [{\22tensor\22: 0}, {\22tensor\22: 1}], \22operands\22: 2, \22given\22: [0], \22wanted\22: [0]}
// CHECK: return %[[VALUE]], %[[GRADIENT]]

// FORWARD: weft.torch_fallback "aten.hypot.default"
// FORWARD-NOT: weft.torch_fallback
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.torch_fallback "aten.hypot.default"(%x, %y) "[{\"tensor\": 0}, {\"tensor\": 1}]" : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0 alone" | FileCheck %s
// RUN: weft-opt %s -weft-differentiate="wrt=0 results=0 alone" -weft-differentiate="wrt=0,1 results=0" -canonicalize | FileCheck %s --check-prefix=TWICE

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32> {weft.kind = "input"}, %[[G:[a-z0-9]+]]: tensor<4xf32>
// CHECK-SAME: -> tensor<4xf32>
// CHECK-NOT: weft.joint_inputs
// CHECK: %[[COS:.*]] = weft.cos %[[X]]
// CHECK: %[[GRADIENT:.*]] = weft.mul %[[G]], %[[COS]]
// CHECK: return %[[GRADIENT]] : tensor<4xf32>

// TWICE-LABEL: func.func @main(
// TWICE-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32>{{.*}}, %[[G:[a-z0-9]+]]: tensor<4xf32>{{.*}}, %[[H:[a-z0-9]+]]: tensor<4xf32>
// TWICE-SAME: weft.joint_inputs = 2
// TWICE-DAG: weft.sin %[[X]]
// TWICE-DAG: weft.mul %[[H]], %[[G]]
// TWICE: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
func.func @main(%x: tensor<4xf32> {weft.kind = "parameter"}) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.sin %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

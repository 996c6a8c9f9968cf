// RUN: weft-opt %s -split-input-file -verify-diagnostics -weft-differentiate="wrt=0,1 results=0" -weft-partition | FileCheck %s

// A kernel of tensor expressions has a gradient of its own, which the backward alone calls; a
// tensor that is given twice gets the sum.
// CHECK-LABEL: func.func @forward
// CHECK:         weft.torch_fallback "weft_te.k.default"
// CHECK-NOT:     _gradient
// CHECK-LABEL: func.func @backward
// CHECK-NOT:     "weft_te.k.default"
// CHECK:         %[[OF:.*]]:3 = weft.torch_fallback "weft_te.k_gradient.default"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) "[{\22tensor\22: 0}, {\22tensor\22: 1}, {\22tensor\22: 2}, {\22tensor\22: 3}]" : (tensor<3xf32>, tensor<4xf32>, tensor<3xf32>, tensor<5xf32>) -> (tensor<3xf32>, tensor<4xf32>, tensor<3xf32>)
// CHECK:         %[[SUM:.*]] = weft.add %[[OF]]#0, %[[OF]]#2
// CHECK:         return %[[SUM]], %[[OF]]#1
func.func @main(%x: tensor<3xf32> {weft.kind = "input", weft.name = "x"}, %y: tensor<4xf32> {weft.kind = "input", weft.name = "y"}) -> tensor<5xf32> attributes {weft.entry} {
  %0 = weft.torch_fallback "weft_te.k.default"(%x, %y) "[{\22tensor\22: 0}, {\22tensor\22: 1}, {\22tensor\22: 0}]" : (tensor<3xf32>, tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @main(%x: tensor<3xf32> {weft.kind = "input", weft.name = "x"}, %y: tensor<3xf32> {weft.kind = "input", weft.name = "y"}) -> tensor<3xf32> attributes {weft.entry} {
  // expected-error @below {{aten.foo.default has no derivative}}
  %0 = weft.torch_fallback "aten.foo.default"(%x, %y) "[{\22tensor\22: 0}, {\22tensor\22: 1}]" : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

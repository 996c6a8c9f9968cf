// RUN: weft-opt %s -split-input-file -weft-fuse-kernels -weft-dedupe-kernels -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Layers of one shape call one kernel, each from its own line.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[A:.*]] = call @[[KERNEL:[a-z_0-9]+]](%[[X]], %{{.*}} loc({{.*}}"first"
// CHECK: %[[B:.*]] = call @[[KERNEL]](%[[A]], %{{.*}} loc({{.*}}"second"
// CHECK: return %[[B]]
// CHECK: func.func private @[[KERNEL]](
// CHECK-NOT: func.func
func.func @layers(%x: tensor<128x128xf32>, %w0: tensor<128x128xf32>, %w1: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {weft.entry} {
  %0 = weft.dot_general %x, %w0 batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32> loc("first")
  %1 = weft.tanh %0 : tensor<128x128xf32> loc("first")
  %2 = weft.dot_general %1, %w1 batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32> loc("second")
  %3 = weft.tanh %2 : tensor<128x128xf32> loc("second")
  return %3 : tensor<128x128xf32>
}

// -----

// Another attribute or another wiring is another kernel.
// CHECK-LABEL: func.func @different
// CHECK: call @[[A:[a-z_0-9]+]](
// CHECK: call @[[B:[a-z_0-9]+]](
// CHECK: call @[[C:[a-z_0-9]+]](
// CHECK-DAG: func.func private @[[A]](
// CHECK-DAG: func.func private @[[B]](
// CHECK-DAG: func.func private @[[C]](
func.func @different(%x: tensor<128x128xf32>, %y: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>) attributes {weft.entry} {
  %0 = weft.dot_general %x, %y batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
  %1 = weft.dot_general %x, %y batch [] x [] contract [1] x [1] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
  %2 = weft.dot_general %x, %x batch [] x [] contract [1] x [0] : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
  return %0, %1, %2 : tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>
}

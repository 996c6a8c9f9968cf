// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-lower-precision | FileCheck %s
// RUN: weft-opt %s -split-input-file -weft-optimize=bf16=true | FileCheck %s --check-prefix=PIPELINE
// RUN: weft-opt %s -split-input-file --weft-to=optimized --weft-precision=bf16 | FileCheck %s --check-prefix=PIPELINE
// RUN: weft-opt %s -split-input-file --weft-to=optimized | FileCheck %s --check-prefix=OFF

// OFF-NOT: f32> -> tensor<{{.*}}bf16>

// The operands are rounded and the sums are not. In the pipeline, @bind rounds the weight.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x4x8xf32> {weft.kind = "input"}, %[[W:[^:]*]]: tensor<24x8xf32>
// CHECK-DAG: %[[X1:.*]] = weft.convert %[[X]] : tensor<1x4x8xf32> -> tensor<1x4x8xbf16>
// CHECK-DAG: %[[W1:.*]] = weft.convert %[[W]] : tensor<24x8xf32> -> tensor<24x8xbf16>
// CHECK: %[[Y:.*]] = weft.dot_general %[[X1]], %[[W1]] {{.*}} -> tensor<1x4x24xf32>
// CHECK: weft.exp %[[Y]] : tensor<1x4x24xf32>
// PIPELINE-LABEL: func.func @main(
// PIPELINE-SAME: %[[P:[^:]*]]: tensor<24x8xbf16> {weft.kind = "bound"
// PIPELINE: weft.dot_general %{{.*}}, %[[P]]
// PIPELINE: func.func @bind(
// PIPELINE: weft.convert
func.func @main(%x: tensor<1x4x8xf32> {weft.kind = "input"}, %w: tensor<24x8xf32> {weft.kind = "weight"})
    -> tensor<1x4x24xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.dot_general %x, %w batch [] x [] contract [2] x [1]
    : tensor<1x4x8xf32>, tensor<24x8xf32> -> tensor<1x4x24xf32>
  %1 = weft.exp %0 : tensor<1x4x24xf32>
  return %1 : tensor<1x4x24xf32>
}

// -----

// One conversion serves all that read a value: here an activation and a weight.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-3: weft.convert
// CHECK-NOT: weft.convert
// CHECK: %{{.*}}:2 = weft.multi_dot %[[X1:.*]] with %[[W1:.*]], %[[V1:.*]] contract [1] x [1] : tensor<4x8xbf16>, tensor<16x8xbf16>, tensor<16x8xbf16> -> tensor<4x16xf32>, tensor<4x16xf32>
// CHECK: weft.dot_general %[[X1]], %[[W1]]
// PIPELINE-LABEL: func.func @main(
// PIPELINE-SAME: tensor<16x8xbf16> {weft.kind = "bound", weft.name = "bound.0"}, %{{.*}}: tensor<16x8xbf16> {weft.kind = "bound", weft.name = "bound.1"})
func.func @main(%x: tensor<4x8xf32> {weft.kind = "input"}, %w: tensor<16x8xf32> {weft.kind = "weight"},
                %v: tensor<16x8xf32> {weft.kind = "weight"})
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0:2 = weft.multi_dot %x with %w, %v contract [1] x [1]
    : tensor<4x8xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  %1 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
    : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
  return %0#0, %0#1, %1 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// A batch norm has gone into the weight, in f64, before that is rounded.
// PIPELINE-LABEL: func.func @main(
// PIPELINE: weft.conv %{{.*}} : tensor<1x3x8x8xbf16{{.*}}>, tensor<4x3x3x3xbf16{{.*}}> -> tensor<1x4x6x6xf32
// PIPELINE: func.func @bind(
// PIPELINE: %[[SCALED:.*]] = weft.mul {{.*}} : tensor<4x3x3x3xf64>
// PIPELINE: %[[ONCE:.*]] = weft.convert %[[SCALED]] : tensor<4x3x3x3xf64> -> tensor<4x3x3x3xf32>
// PIPELINE: weft.convert %[[ONCE]] : tensor<4x3x3x3xf32> -> tensor<4x3x3x3xbf16>
func.func @main(%x: tensor<1x3x8x8xf32> {weft.kind = "input"}, %w: tensor<4x3x3x3xf32> {weft.kind = "weight"},
                %m: tensor<4xf32> {weft.kind = "buffer"}, %v: tensor<4xf32> {weft.kind = "buffer"})
    -> tensor<1x4x6x6xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %1 = weft.batch_norm %0 mean %m variance %v : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}

// -----

// Widened for the user's float32 product: what is stored is read.
// PIPELINE-LABEL: func.func @main(
// PIPELINE-SAME: %[[W:[^:]*]]: tensor<24x8xbf16> {weft.kind = "weight"})
// PIPELINE: weft.dot_general %{{.*}}, %[[W]]
// PIPELINE-NOT: @bind
func.func @main(%x: tensor<4x8xf32> {weft.kind = "input"}, %w: tensor<24x8xbf16> {weft.kind = "weight"})
    -> tensor<4x24xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.convert %w : tensor<24x8xbf16> -> tensor<24x8xf32>
  %1 = weft.dot_general %x, %0 batch [] x [] contract [1] x [1]
    : tensor<4x8xf32>, tensor<24x8xf32> -> tensor<4x24xf32>
  return %1 : tensor<4x24xf32>
}

// -----

// Declined: float64, integers, half precision and attention.
// PIPELINE-LABEL: func.func @declined(
// CHECK-LABEL: func.func @declined(
// CHECK-NOT: weft.convert
// CHECK: return
func.func @declined(%a: tensor<4x8xf64>, %b: tensor<4x8xi64>, %c: tensor<4x8xbf16>, %d: tensor<4x8xf16>,
                %q: tensor<1x2x16x8xf32>)
    -> (tensor<4x4xf64>, tensor<4x4xi64>, tensor<4x4xbf16>, tensor<4x4xf16>, tensor<1x2x16x8xf32>) {
  %0 = weft.dot_general %a, %a batch [] x [] contract [1] x [1] : tensor<4x8xf64>, tensor<4x8xf64> -> tensor<4x4xf64>
  %1 = weft.dot_general %b, %b batch [] x [] contract [1] x [1] : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x4xi64>
  %2 = weft.dot_general %c, %c batch [] x [] contract [1] x [1] : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x4xbf16>
  %3 = weft.dot_general %d, %d batch [] x [] contract [1] x [1] : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x4xf16>
  %4 = weft.attention %q, %q, %q causal false scale 1.0 : tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32> -> tensor<1x2x16x8xf32>
  return %0, %1, %2, %3, %4 : tensor<4x4xf64>, tensor<4x4xi64>, tensor<4x4xbf16>, tensor<4x4xf16>, tensor<1x2x16x8xf32>
}

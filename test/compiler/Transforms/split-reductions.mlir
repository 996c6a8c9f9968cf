// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-split-reductions | FileCheck %s

// CHECK-LABEL: @rows
// CHECK-NEXT: %[[P:.*]] = weft.reduce <max> %arg0 dims [1] : tensor<1024x512xf32> -> tensor<1024xf32>
// CHECK-NEXT: weft.reduce <max> %[[P]] dims [0] : tensor<1024xf32> -> tensor<f32>
func.func @rows(%x: tensor<1024x512xf32>) -> tensor<f32> {
  %0 = weft.reduce <max> %x dims [0, 1] : tensor<1024x512xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @one_dim
// CHECK-NEXT: %[[C:.*]] = weft.reshape %arg0 : tensor<100000xf32> -> tensor<50x2000xf32>
// CHECK-NEXT: %[[P:.*]] = weft.reduce <sum> %[[C]] dims [1] : tensor<50x2000xf32> -> tensor<50xf32>
// CHECK-NEXT: weft.reduce <sum> %[[P]] dims [0] : tensor<50xf32> -> tensor<f32>
func.func @one_dim(%x: tensor<100000xf32>) -> tensor<f32> {
  %0 = weft.reduce <sum> %x dims [0] : tensor<100000xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// The channels stay between the images and their rows.
// CHECK-LABEL: @channels
// CHECK-NEXT: %[[P:.*]] = weft.reduce <sum> %arg0 dims [0, 3] : {{.*}} -> tensor<3x224xf32>
// CHECK-NEXT: weft.reduce <sum> %[[P]] dims [1] : tensor<3x224xf32> -> tensor<3xf32>
func.func @channels(%x: tensor<8x3x224x224xf32>) -> tensor<3xf32> {
  %0 = weft.reduce <sum> %x dims [0, 2, 3] : tensor<8x3x224x224xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: @stay
// CHECK-COUNT-4: weft.reduce
// CHECK-NOT: weft.reduce
func.func @stay(%prime: tensor<100003xf32>, %small: tensor<1000xf32>, %half: tensor<1024x512xbf16>,
    %many: tensor<1024x512xf32>) -> (tensor<f32>, tensor<f32>, tensor<bf16>, tensor<1024xf32>) {
  %0 = weft.reduce <sum> %prime dims [0] : tensor<100003xf32> -> tensor<f32>
  %1 = weft.reduce <sum> %small dims [0] : tensor<1000xf32> -> tensor<f32>
  %2 = weft.reduce <sum> %half dims [0, 1] : tensor<1024x512xbf16> -> tensor<bf16>
  %3 = weft.reduce <sum> %many dims [1] : tensor<1024x512xf32> -> tensor<1024xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<bf16>, tensor<1024xf32>
}

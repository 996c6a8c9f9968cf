// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @there_and_back
// CHECK-SAME: %[[H:[^:]*]]: tensor<4xbf16>, %[[B:[^:]*]]: tensor<4xi1>, %[[I:[^:]*]]: tensor<4xi8>
// CHECK-NEXT: return %[[H]], %[[B]], %[[I]], %[[I]]
func.func @there_and_back(%h: tensor<4xbf16>, %b: tensor<4xi1>, %i: tensor<4xi8>)
    -> (tensor<4xbf16>, tensor<4xi1>, tensor<4xi8>, tensor<4xi8>) {
  %0 = weft.convert %h : tensor<4xbf16> -> tensor<4xf32>
  %1 = weft.convert %0 : tensor<4xf32> -> tensor<4xbf16>
  %2 = weft.convert %b : tensor<4xi1> -> tensor<4xi64>
  %3 = weft.convert %2 : tensor<4xi64> -> tensor<4xi1>
  %4 = weft.convert %i : tensor<4xi8> -> tensor<4xf32>
  %5 = weft.convert %4 : tensor<4xf32> -> tensor<4xi8>
  %6 = weft.convert %i : tensor<4xi8> -> tensor<4xi8>
  return %1, %3, %5, %6 : tensor<4xbf16>, tensor<4xi1>, tensor<4xi8>, tensor<4xi8>
}

// CHECK-LABEL: @loses
// CHECK-COUNT-6: weft.convert
func.func @loses(%x: tensor<4xf32>, %i: tensor<4xi32>, %j: tensor<4xi8>)
    -> (tensor<4xf32>, tensor<4xi32>, tensor<4xi8>) {
  %0 = weft.convert %x : tensor<4xf32> -> tensor<4xbf16>
  %1 = weft.convert %0 : tensor<4xbf16> -> tensor<4xf32>
  %2 = weft.convert %i : tensor<4xi32> -> tensor<4xf32>
  %3 = weft.convert %2 : tensor<4xf32> -> tensor<4xi32>
  %4 = weft.convert %j : tensor<4xi8> -> tensor<4xi1>
  %5 = weft.convert %4 : tensor<4xi1> -> tensor<4xi8>
  return %1, %3, %5 : tensor<4xf32>, tensor<4xi32>, tensor<4xi8>
}

// CHECK-LABEL: @constants
// CHECK-DAG: %[[TRUNC:.*]] = weft.constant dense<[-1, 2]> : tensor<2xi32>
// CHECK-DAG: %[[BOOL:.*]] = weft.constant dense<true> : tensor<2xi1>
// CHECK-DAG: %[[ONE:.*]] = weft.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-DAG: %[[BYTE:.*]] = weft.constant dense<255> : tensor<2xui8>
// CHECK-DAG: %[[WIDE:.*]] = weft.constant dense<255> : tensor<2xi64>
// CHECK-DAG: %[[HALF:.*]] = weft.constant dense<[-1.500000e+00, 2.687500e+00]> : tensor<2xbf16>
// CHECK: return %[[TRUNC]], %[[BOOL]], %[[ONE]], %[[BYTE]], %[[WIDE]], %[[HALF]]
func.func @constants()
    -> (tensor<2xi32>, tensor<2xi1>, tensor<2xf32>, tensor<2xui8>, tensor<2xi64>, tensor<2xbf16>) {
  %x = weft.constant dense<[-1.5, 2.69]> : tensor<2xf32>
  %minus_one = weft.constant dense<-1> : tensor<2xi64>
  %true = weft.constant dense<true> : tensor<2xi1>
  %0 = weft.convert %x : tensor<2xf32> -> tensor<2xi32>
  %1 = weft.convert %x : tensor<2xf32> -> tensor<2xi1>
  %2 = weft.convert %true : tensor<2xi1> -> tensor<2xf32>
  %3 = weft.convert %minus_one : tensor<2xi64> -> tensor<2xui8>
  %4 = weft.convert %3 : tensor<2xui8> -> tensor<2xi64>
  %5 = weft.convert %x : tensor<2xf32> -> tensor<2xbf16>
  return %0, %1, %2, %3, %4, %5
    : tensor<2xi32>, tensor<2xi1>, tensor<2xf32>, tensor<2xui8>, tensor<2xi64>, tensor<2xbf16>
}

// What a float out of range becomes is the machine's business.
// CHECK-LABEL: @out_of_range
// CHECK-COUNT-2: weft.convert
func.func @out_of_range() -> (tensor<2xi8>, tensor<2xi32>) {
  %x = weft.constant dense<300.0> : tensor<2xf32>
  %nan = weft.constant dense<0x7FC00000> : tensor<2xf32>
  %0 = weft.convert %x : tensor<2xf32> -> tensor<2xi8>
  %1 = weft.convert %nan : tensor<2xf32> -> tensor<2xi32>
  return %0, %1 : tensor<2xi8>, tensor<2xi32>
}

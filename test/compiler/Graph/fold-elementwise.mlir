// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @neutral_elements
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>, %[[I:[^:]*]]: tensor<4xi32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[I]], %[[I]], %[[I]], %[[I]]
func.func @neutral_elements(%x: tensor<4xf32>, %i: tensor<4xi32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  %minus_zero = weft.constant dense<-0.0> : tensor<4xf32>
  %zero = weft.constant dense<0.0> : tensor<4xf32>
  %one = weft.constant dense<1.0> : tensor<4xf32>
  %i0 = weft.constant dense<0> : tensor<4xi32>
  %i1 = weft.constant dense<1> : tensor<4xi32>
  %0 = weft.add %minus_zero, %x : tensor<4xf32>
  %1 = weft.sub %x, %zero : tensor<4xf32>
  %2 = weft.mul %one, %x : tensor<4xf32>
  %3 = weft.div %x, %one : tensor<4xf32>
  %4 = weft.add %i, %i0 : tensor<4xi32>
  %5 = weft.sub %i, %i0 : tensor<4xi32>
  %6 = weft.mul %i, %i1 : tensor<4xi32>
  %7 = weft.div %i, %i1 : tensor<4xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}

// -0.0 + 0.0 is 0.0, x - -0.0 turns -0.0 into 0.0, inf * 0.0 and inf - inf are NaN.
// CHECK-LABEL: @not_exact
// CHECK: weft.add
// CHECK: weft.sub
// CHECK: weft.mul
// CHECK: weft.sub
func.func @not_exact(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = weft.constant dense<0.0> : tensor<4xf32>
  %minus_zero = weft.constant dense<-0.0> : tensor<4xf32>
  %0 = weft.add %x, %zero : tensor<4xf32>
  %1 = weft.sub %x, %minus_zero : tensor<4xf32>
  %2 = weft.mul %x, %zero : tensor<4xf32>
  %3 = weft.sub %x, %x : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @involutions
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>, %[[C:[^:]*]]: tensor<4xi1>
// CHECK-NEXT: return %[[X]], %[[C]]
func.func @involutions(%x: tensor<4xf32>, %c: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xi1>) {
  %0 = weft.neg %x : tensor<4xf32>
  %1 = weft.neg %0 : tensor<4xf32>
  %2 = weft.not %c : tensor<4xi1>
  %3 = weft.not %2 : tensor<4xi1>
  return %1, %3 : tensor<4xf32>, tensor<4xi1>
}

// CHECK-LABEL: @logic
// CHECK-SAME: %[[C:[^:]*]]: tensor<4xi1>
// CHECK-DAG: %[[TRUE:.*]] = weft.constant dense<true>
// CHECK-DAG: %[[FALSE:.*]] = weft.constant dense<false>
// CHECK: return %[[C]], %[[FALSE]], %[[C]], %[[TRUE]], %[[C]], %[[C]]
func.func @logic(%c: tensor<4xi1>)
    -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %t = weft.constant dense<true> : tensor<4xi1>
  %f = weft.constant dense<false> : tensor<4xi1>
  %0 = weft.and %t, %c : tensor<4xi1>
  %1 = weft.and %c, %f : tensor<4xi1>
  %2 = weft.or %c, %f : tensor<4xi1>
  %3 = weft.or %t, %c : tensor<4xi1>
  %4 = weft.and %c, %c : tensor<4xi1>
  %5 = weft.xor %c, %f : tensor<4xi1>
  return %0, %1, %2, %3, %4, %5 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}

// CHECK-LABEL: @constants
// CHECK-DAG: %[[SUM:.*]] = weft.constant dense<[4.000000e+00, 5.000000e+00]> : tensor<2xf32>
// CHECK-DAG: %[[WRAP:.*]] = weft.constant dense<-128> : tensor<2xi8>
// CHECK-DAG: %[[BYTES:.*]] = weft.constant dense<127> : tensor<2xui8>
// CHECK-DAG: %[[MAX:.*]] = weft.constant dense<0x7FC00000> : tensor<2xf32>
// CHECK: return %[[SUM]], %[[WRAP]], %[[BYTES]], %[[MAX]]
func.func @constants() -> (tensor<2xf32>, tensor<2xi8>, tensor<2xui8>, tensor<2xf32>) {
  %a = weft.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = weft.constant dense<3.0> : tensor<2xf32>
  %nan = weft.constant dense<0x7FC00000> : tensor<2xf32>
  %0 = weft.add %a, %b : tensor<2xf32>
  %i = weft.constant dense<127> : tensor<2xi8>
  %j = weft.constant dense<1> : tensor<2xi8>
  %1 = weft.add %i, %j : tensor<2xi8>
  %u = weft.constant dense<254> : tensor<2xui8>
  %v = weft.constant dense<2> : tensor<2xui8>
  %2 = weft.div %u, %v : tensor<2xui8>
  %3 = weft.max %b, %nan : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xi8>, tensor<2xui8>, tensor<2xf32>
}

// CHECK-LABEL: @division_by_zero
// CHECK: weft.div
func.func @division_by_zero() -> tensor<2xi32> {
  %a = weft.constant dense<1> : tensor<2xi32>
  %b = weft.constant dense<[1, 0]> : tensor<2xi32>
  %0 = weft.div %a, %b : tensor<2xi32>
  return %0 : tensor<2xi32>
}

// CHECK-LABEL: @compare
// CHECK-DAG: %[[LT:.*]] = weft.constant dense<[true, false]>
// CHECK-DAG: %[[NE:.*]] = weft.constant dense<true>
// CHECK: return %[[LT]], %[[NE]]
func.func @compare() -> (tensor<2xi1>, tensor<2xi1>) {
  %a = weft.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = weft.constant dense<2.0> : tensor<2xf32>
  %nan = weft.constant dense<0x7FC00000> : tensor<2xf32>
  %0 = weft.cmp <lt> %a, %b : tensor<2xf32> -> tensor<2xi1>
  %1 = weft.cmp <ne> %nan, %nan : tensor<2xf32> -> tensor<2xi1>
  return %0, %1 : tensor<2xi1>, tensor<2xi1>
}

// CHECK-LABEL: @compare_by_range
// CHECK-DAG: %[[TRUE:.*]] = weft.constant dense<true>
// CHECK-DAG: %[[FALSE:.*]] = weft.constant dense<false>
// CHECK: return %[[TRUE]], %[[FALSE]], %[[TRUE]]
func.func @compare_by_range() -> (tensor<8xi1>, tensor<8xi1>, tensor<8xi1>) {
  %i = weft.iota 0 : tensor<8xi64>
  %zero = weft.constant dense<0> : tensor<8xi64>
  %three = weft.constant dense<3> : tensor<8xi64>
  %limit = weft.constant dense<24> : tensor<8xi64>
  %0 = weft.cmp <ge> %i, %zero : tensor<8xi64> -> tensor<8xi1>
  %1 = weft.mul %i, %three : tensor<8xi64>
  %2 = weft.add %1, %three : tensor<8xi64>
  %3 = weft.cmp <gt> %2, %limit : tensor<8xi64> -> tensor<8xi1>
  %4 = weft.cmp <lt> %1, %limit : tensor<8xi64> -> tensor<8xi1>
  return %0, %3, %4 : tensor<8xi1>, tensor<8xi1>, tensor<8xi1>
}

// CHECK-LABEL: @compare_undecided
// CHECK: weft.cmp <lt>
// CHECK: weft.cmp <ge>
func.func @compare_undecided(%x: tensor<200xi8>) -> (tensor<8xi1>, tensor<200xi1>) {
  %i = weft.iota 0 : tensor<8xi64>
  %three = weft.constant dense<3> : tensor<8xi64>
  %0 = weft.cmp <lt> %i, %three : tensor<8xi64> -> tensor<8xi1>
  // An index of 8 bits wraps.
  %j = weft.iota 0 : tensor<200xi8>
  %zero = weft.constant dense<0> : tensor<200xi8>
  %1 = weft.cmp <ge> %j, %zero : tensor<200xi8> -> tensor<200xi1>
  return %0, %1 : tensor<8xi1>, tensor<200xi1>
}

// CHECK-LABEL: @select
// CHECK-SAME: %[[C:[^:]*]]: tensor<4xi1>, %[[X:[^:]*]]: tensor<4xf32>, %[[Y:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: return %[[X]], %[[Y]], %[[X]], %[[C]]
func.func @select(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %t = weft.constant dense<true> : tensor<4xi1>
  %f = weft.constant dense<false> : tensor<4xi1>
  %0 = weft.select %t, %x, %y : tensor<4xi1>, tensor<4xf32>
  %1 = weft.select %f, %x, %y : tensor<4xi1>, tensor<4xf32>
  %2 = weft.select %c, %x, %x : tensor<4xi1>, tensor<4xf32>
  %3 = weft.select %c, %t, %f : tensor<4xi1>, tensor<4xi1>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}

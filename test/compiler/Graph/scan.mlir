// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s | FileCheck %s --check-prefix=PRINTED
// RUN: weft-opt %s -canonicalize | FileCheck %s

// PRINTED-LABEL: @round_trip
// PRINTED: %{{.*}}:2 = weft.scan 100 reverse carry(%[[H:.*]] = %{{.*}} : tensor<4x8xf32>) over(%[[X:.*]] = %{{.*}} : tensor<100x4x8xf32>) with(%[[B:.*]] = %{{.*}} : tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<100x4x8xf32>) {
// PRINTED: weft.add %[[H]], %[[X]]
// PRINTED: weft.yield %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32>
// PRINTED: weft.scan 3 -> (tensor<3x2xi64>) {
// PRINTED: weft.loop @step 100 reverse false carry(%{{.*}}) over() with() : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @round_trip(%h: tensor<4x8xf32>, %xs: tensor<100x4x8xf32>, %b: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<100x4x8xf32>, tensor<3x2xi64>, tensor<4x8xf32>) {
  %0:2 = weft.scan 100 reverse carry(%s = %h : tensor<4x8xf32>) over(%x = %xs : tensor<100x4x8xf32>)
      with(%c = %b : tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<100x4x8xf32>) {
    %1 = weft.add %s, %x : tensor<4x8xf32>
    %2 = weft.add %1, %c : tensor<4x8xf32>
    weft.yield %2, %1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  %3 = weft.scan 3 -> (tensor<3x2xi64>) {
    %4 = weft.constant dense<1> : tensor<2xi64>
    weft.yield %4 : tensor<2xi64>
  }
  %5 = weft.loop @step 100 reverse false carry(%h) over() with() : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0#0, %0#1, %3, %5 : tensor<4x8xf32>, tensor<100x4x8xf32>, tensor<3x2xi64>, tensor<4x8xf32>
}
func.func private @step(%h: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {weft.step} {
  return %h : tensor<4x8xf32>
}

// A state that no step changes is an invariant, and its last value the first.
// CHECK-LABEL: @unchanged
// CHECK-SAME: %[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK: %[[R:.*]] = weft.scan 9 carry(%[[S:.*]] = %[[A]] : tensor<8xf32>) with(%[[I:.*]] = %[[B]] : tensor<8xf32>)
// CHECK: weft.add %[[S]], %[[I]]
// CHECK: return %[[R]], %[[B]]
func.func @unchanged(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = weft.scan 9 carry(%s = %a : tensor<8xf32>, %i = %b : tensor<8xf32>)
      -> (tensor<8xf32>, tensor<8xf32>) {
    %1 = weft.add %s, %i : tensor<8xf32>
    weft.yield %1, %i : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// Neither the second state nor the output is read: with them goes what only they need. One value
// given twice is given once.
// CHECK-LABEL: @dead
// CHECK-SAME: %[[A:.*]]: tensor<8xf32>, %[[XS:.*]]: tensor<9x8xf32>)
// CHECK: %[[R:.*]] = weft.scan 9 carry(%[[S:.*]] = %[[A]] : tensor<8xf32>) over(%[[X:.*]] = %[[XS]] : tensor<9x8xf32>) -> (tensor<8xf32>) {
// CHECK-NEXT: %[[M:.*]] = weft.mul %[[X]], %[[X]]
// CHECK-NEXT: %[[N:.*]] = weft.add %[[S]], %[[M]]
// CHECK-NEXT: weft.yield %[[N]] : tensor<8xf32>
func.func @dead(%a: tensor<8xf32>, %xs: tensor<9x8xf32>) -> tensor<8xf32> {
  %0:3 = weft.scan 9 carry(%s = %a : tensor<8xf32>, %t = %a : tensor<8xf32>)
      over(%x = %xs : tensor<9x8xf32>, %y = %xs : tensor<9x8xf32>) with(%u = %a : tensor<8xf32>)
      -> (tensor<8xf32>, tensor<8xf32>, tensor<9x8xf32>) {
    %1 = weft.mul %x, %y : tensor<8xf32>
    %2 = weft.add %s, %1 : tensor<8xf32>
    %3 = weft.sub %t, %u : tensor<8xf32>
    weft.yield %2, %3, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  return %0#0 : tensor<8xf32>
}

// Of a value that is given twice the first may be read by nothing that is live.
// CHECK-LABEL: @dead_twin
// CHECK: weft.scan 9 carry({{.*}}) over(%[[X:.*]] = %{{.*}} : tensor<9x8xf32>) -> (tensor<8xf32>) {
// CHECK-NEXT: weft.add %{{.*}}, %[[X]]
func.func @dead_twin(%a: tensor<8xf32>, %xs: tensor<9x8xf32>) -> tensor<8xf32> {
  %0:2 = weft.scan 9 carry(%s = %a : tensor<8xf32>)
      over(%x = %xs : tensor<9x8xf32>, %y = %xs : tensor<9x8xf32>)
      -> (tensor<8xf32>, tensor<9x8xf32>) {
    %1 = weft.mul %x, %x : tensor<8xf32>
    %2 = weft.add %s, %y : tensor<8xf32>
    weft.yield %2, %1 : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0 : tensor<8xf32>
}

// A sequence that is read from behind; the output is turned again, the other reader sees it turned.
// CHECK-LABEL: @turned
// CHECK-SAME: %[[A:.*]]: tensor<8xf32>, %[[XS:.*]]: tensor<9x8xf32>)
// CHECK: %[[R:.*]]:2 = weft.scan 9 reverse carry(%{{.*}} = %[[A]] : tensor<8xf32>) over(%{{.*}} = %[[XS]] : tensor<9x8xf32>)
// CHECK: %[[T:.*]] = weft.reverse %[[R]]#1 dims [0]
// CHECK: %[[E:.*]] = weft.exp %[[T]]
// CHECK: return %[[R]]#0, %[[R]]#1, %[[E]]
func.func @turned(%a: tensor<8xf32>, %xs: tensor<9x8xf32>)
    -> (tensor<8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) {
  %0 = weft.reverse %xs dims [0] : tensor<9x8xf32>
  %1:2 = weft.scan 9 carry(%s = %a : tensor<8xf32>) over(%x = %0 : tensor<9x8xf32>)
      -> (tensor<8xf32>, tensor<9x8xf32>) {
    %2 = weft.add %s, %x : tensor<8xf32>
    weft.yield %2, %2 : tensor<8xf32>, tensor<8xf32>
  }
  %3 = weft.reverse %1#1 dims [0] : tensor<9x8xf32>
  %4 = weft.exp %1#1 : tensor<9x8xf32>
  return %1#0, %3, %4 : tensor<8xf32>, tensor<9x8xf32>, tensor<9x8xf32>
}

// CHECK-LABEL: @one_step
// CHECK-NOT: weft.scan
// CHECK: %[[X:.*]] = weft.reshape %{{.*}} : tensor<1x8xf32> -> tensor<8xf32>
// CHECK: %[[N:.*]] = weft.add %{{.*}}, %[[X]]
// CHECK: %[[Y:.*]] = weft.reshape %[[N]] : tensor<8xf32> -> tensor<1x8xf32>
// CHECK: return %[[N]], %[[Y]]
func.func @one_step(%a: tensor<8xf32>, %xs: tensor<1x8xf32>) -> (tensor<8xf32>, tensor<1x8xf32>) {
  %0:2 = weft.scan 1 carry(%s = %a : tensor<8xf32>) over(%x = %xs : tensor<1x8xf32>)
      -> (tensor<8xf32>, tensor<1x8xf32>) {
    %1 = weft.add %s, %x : tensor<8xf32>
    weft.yield %1, %1 : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<1x8xf32>
}

// CHECK-LABEL: @no_step
// CHECK-SAME: %[[A:.*]]: tensor<8xf32>,
// CHECK: %[[NONE:.*]] = weft.constant
// CHECK: return %[[A]], %[[NONE]]
func.func @no_step(%a: tensor<8xf32>, %xs: tensor<0x8xf32>) -> (tensor<8xf32>, tensor<0x8xf32>) {
  %0:2 = weft.scan 0 carry(%s = %a : tensor<8xf32>) over(%x = %xs : tensor<0x8xf32>)
      -> (tensor<8xf32>, tensor<0x8xf32>) {
    %1 = weft.add %s, %x : tensor<8xf32>
    weft.yield %1, %1 : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<0x8xf32>
}

// CHECK-LABEL: @one_output
// CHECK: weft.scan 9 carry({{.*}}) over({{.*}}) -> (tensor<8xf32>, tensor<9x8xf32>)
// CHECK: return %{{.*}}#1, %{{.*}}#1
func.func @one_output(%a: tensor<8xf32>, %xs: tensor<9x8xf32>) -> (tensor<9x8xf32>, tensor<9x8xf32>) {
  %0:3 = weft.scan 9 carry(%s = %a : tensor<8xf32>) over(%x = %xs : tensor<9x8xf32>)
      -> (tensor<8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) {
    %1 = weft.add %s, %x : tensor<8xf32>
    weft.yield %1, %1, %1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  return %0#1, %0#2 : tensor<9x8xf32>, tensor<9x8xf32>
}

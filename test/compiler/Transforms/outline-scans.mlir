// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-outline-scans | FileCheck %s

// A scan within a scan: the inner one is a loop of the outer step.
// CHECK-LABEL: func.func @main(
// CHECK: weft.loop @[[OUTER:.*]] 4 reverse true carry(%{{.*}}) over() with(%{{.*}})
// CHECK: func.func private @[[INNER:.*]](%{{.*}}: tensor<8xf32> {weft.kind = "input"}) -> tensor<8xf32> attributes {weft.step}
// CHECK: func.func private @[[OUTER]](%{{.*}}: tensor<8xf32> {weft.kind = "input"}, %{{.*}}: tensor<8xf32> {weft.kind = "constant"})
// CHECK: weft.loop @[[INNER]] 3 reverse false
// CHECK: return
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.scan 4 reverse carry(%s = %a : tensor<8xf32>) with(%c = %b : tensor<8xf32>) -> (tensor<8xf32>) {
    %1 = weft.add %s, %c : tensor<8xf32>
    %2 = weft.scan 3 carry(%t = %1 : tensor<8xf32>) -> (tensor<8xf32>) {
      %3 = weft.exp %t : tensor<8xf32>
      weft.yield %3 : tensor<8xf32>
    }
    weft.yield %2 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @without_scans(
// CHECK-NEXT: weft.exp
// CHECK-NEXT: return
func.func @without_scans(%a: tensor<8xf32>) -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.exp %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// How many steps count is known of the loop, too.
// CHECK-LABEL: func.func @counted(
// CHECK: weft.loop @{{.*}} 4 reverse false {{.*}} {weft.counting_steps = array<i64: 1, 0>}
func.func @counted(%a: tensor<8xf32>, %n: tensor<1xi64> {weft.bounds = array<i64: 4>})
    -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.scan 4 carry(%s = %a : tensor<8xf32>)
      {weft.counting_steps = array<i64: 1, 0>} -> (tensor<8xf32>) {
    %1 = weft.exp %s : tensor<8xf32>
    weft.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-segment-backward="groups=0,1,1 wrt=1,0,2 segment=0" | FileCheck %s --check-prefix=FIRST
// RUN: weft-opt %s -weft-segment-backward="groups=0,1,1 wrt=1,0,2 segment=1" | FileCheck %s --check-prefix=SECOND
// RUN: not weft-opt %s -weft-segment-backward="groups=0,1,1 wrt=1,0" 2>&1 | FileCheck %s --check-prefix=WRONG

// Input 1 may change once its gradient is there: nothing reads it later.
// FIRST-LABEL: func.func @main(
// FIRST-DAG: %[[PASSED:.*]] = weft.mul
// FIRST-DAG: %[[OWN:.*]] = weft.exp
// FIRST: return %[[OWN]], %[[PASSED]]
// SECOND-LABEL: func.func @main(
// SECOND-NOT: input 1
// SECOND-NOT: weft.mul
// SECOND: weft.exp %[[CARRIED:[a-z0-9]*]]
// SECOND: return
// WRONG: expected a @main of 3 results
func.func @main(%w: tensor<4xf32> {weft.kind = "input", weft.name = "input 1"}, %g: tensor<4xf32> {weft.kind = "input", weft.name = "gradient 0"}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.mul %g, %w : tensor<4xf32>
  %1 = weft.exp %g : tensor<4xf32>
  %2 = weft.exp %0 : tensor<4xf32>
  return %1, %2, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

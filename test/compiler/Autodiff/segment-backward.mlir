// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-segment-backward="groups=0,1,1 segment=0" | FileCheck %s --check-prefix=FIRST
// RUN: weft-opt %s -split-input-file -weft-segment-backward="groups=0,1,1 segment=1" | FileCheck %s --check-prefix=SECOND
// RUN: not weft-opt %s -split-input-file -weft-segment-backward="groups=0,1" 2>&1 | FileCheck %s --check-prefix=WRONG

// The first gradient needs no more than %0; the third is there already, and is carried.
// FIRST-LABEL: func.func @main(
// FIRST-SAME: weft.name = "input 0"
// FIRST-SAME: weft.name = "gradient 0"
// FIRST: %[[ONE:.*]] = weft.constant
// FIRST: %[[FIRST:.*]] = weft.mul
// FIRST: %[[SUM:.*]] = weft.add %[[FIRST]], %[[ONE]]
// FIRST: return %[[SUM]], %[[FIRST]] : tensor<4xf32>, tensor<4xf32>
// SECOND-LABEL: func.func @main(
// SECOND-SAME: %[[SAVED:[a-z0-9]*]]: tensor<4xf32> {weft.kind = "input", weft.name = "saved 0"}
// SECOND-SAME: %[[CARRIED:[a-z0-9]*]]: tensor<4xf32> {weft.kind = "input", weft.name = "carried 0"}
// SECOND-NOT: weft.mul
// SECOND: %[[ONE:.*]] = weft.constant
// SECOND: %[[EXP:.*]] = weft.exp %[[CARRIED]]
// SECOND: %[[SUM:.*]] = weft.sub %[[EXP]], %[[SAVED]]
// SECOND: %[[SECOND:.*]] = weft.add %[[SUM]], %[[ONE]]
// SECOND: return %[[SECOND]], %[[CARRIED]]
// WRONG: expected a @main of 2 results
func.func @main(%w: tensor<4xf32> {weft.kind = "input", weft.name = "input 0"}, %s: tensor<4xf32> {weft.kind = "input", weft.name = "saved 0"}, %g: tensor<4xf32> {weft.kind = "input", weft.name = "gradient 0"}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {weft.entry = #weft.entry<main>} {
  %one = weft.constant dense<1.0> : tensor<4xf32>
  %0 = weft.mul %g, %w : tensor<4xf32>
  %1 = weft.add %0, %one : tensor<4xf32>
  %2 = weft.exp %0 : tensor<4xf32>
  %3 = weft.sub %2, %s : tensor<4xf32>
  %4 = weft.add %3, %one : tensor<4xf32>
  return %1, %4, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

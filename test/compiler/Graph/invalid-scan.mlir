// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @scan_c1(%h: tensor<8xf32>, %xs: tensor<9x8xf32>) {
  // expected-error @+1 {{expected sequences and stacked outputs to be row-major, with 10 as their first dim, found 'tensor<9x8xf32>'}}
  %0 = weft.scan 10 carry(%s = %h : tensor<8xf32>) over(%x = %xs : tensor<9x8xf32>) -> (tensor<8xf32>) {
    weft.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @scan_c2(%h: tensor<8xf32>) {
  // expected-error @+1 {{expected the step to take ('tensor<8xf32>'), found ('tensor<4xf32>')}}
  %0 = "weft.scan"(%h) <{length = 10 : i64, reverse = false, operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%s: tensor<4xf32>):
    %1 = weft.constant dense<0.0> : tensor<8xf32>
    weft.yield %1 : tensor<8xf32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @scan_c3(%h: tensor<8xf32>) {
  // expected-error @+1 {{expected the step to yield ('tensor<8xf32>', 'tensor<f32>'), found ('tensor<8xf32>')}}
  %0:2 = weft.scan 10 carry(%s = %h : tensor<8xf32>) -> (tensor<8xf32>, tensor<10xf32>) {
    weft.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @scan_c3_state(%h: tensor<8xf32>) {
  // expected-error @+1 {{expected state 0 to keep its type 'tensor<8xf32>', found 'tensor<4xf32>'}}
  %0 = weft.scan 10 carry(%s = %h : tensor<8xf32>) -> (tensor<4xf32>) {
    weft.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @scan_c4(%h: tensor<1xi1>) {
  %0 = weft.scan 10 carry(%s = %h : tensor<1xi1>) -> (tensor<1xi1>) {
    // expected-error @+1 {{expected ops without effects in the body of a scan}}
    weft.assert %s, "no" : tensor<1xi1>
    weft.yield %s : tensor<1xi1>
  }
  return
}

// -----

func.func private @step(%h: tensor<8xf32>) -> tensor<8xf32>
func.func @loop_c1(%h: tensor<8xf32>) {
  // expected-error @+1 {{expected 'step' to be a function marked 'weft.step'}}
  %0 = weft.loop @step 10 reverse false carry(%h) over() with() : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func private @step(%h: tensor<4xf32>) -> tensor<8xf32> attributes {weft.step}
func.func @loop_c2(%h: tensor<8xf32>) {
  // expected-error @+1 {{expected the step to take ('tensor<8xf32>'), found ('tensor<4xf32>')}}
  %0 = weft.loop @step 10 reverse false carry(%h) over() with() : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func private @step(%h: tensor<8xf32>) attributes {weft.step}
func.func @loop_c3(%h: tensor<8xf32>) {
  // expected-error @+1 {{expected the step to return ('tensor<8xf32>'), found ()}}
  %0 = weft.loop @step 10 reverse false carry(%h) over() with() : (tensor<8xf32>) -> tensor<8xf32>
  return
}

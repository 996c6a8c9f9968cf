// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels="isa=avx512 threads=2" \
// RUN:   --remarks-filter=".*" --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels="isa=avx512 threads=2" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=QUIET

// QUIET-NOT: remark

// 130 rows are ten tiles of 13 rows, whether 14 fit or not. Two threads divide them.
// CHECK: remark:
// CHECK-SAME: "wide: contraction rows=13 groups=2 26557 cycles; over rows=14 groups=2 26557 cycles, rows=12 groups=2 27040 cycles, {{.*}}, rows=5 groups=3 {{[0-9]+}} cycles{{.*}}"
#x = affine_map<(n, i, k) -> (n, k)>
#w = affine_map<(n, i, k) -> (k, i)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @wide(%x: tensor<130x70xf32>, %w: tensor<70x150xf32>) -> tensor<130x150xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<130x150xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<130x150xf32>) -> tensor<130x150xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<130x70xf32>, tensor<70x150xf32>) outs(%init : tensor<130x150xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<130x150xf32>
  return %dot : tensor<130x150xf32>
}

// -----

// Numbers that are given are compared with the others all the same. One thread runs it.
// CHECK: "given: contraction rows=2 groups=1 {{[0-9]+}} cycles; over rows=8 groups=1 {{[0-9]+}} cycles
#x = affine_map<(n, i, k) -> (n, k)>
#w = affine_map<(n, i, k) -> (k, i)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @given(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32>
    attributes {weft.kernel = "contraction",
                weft.schedule = #weft.schedule<contraction {rows = 2 : i64}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<8x16xf32>
  return %dot : tensor<8x16xf32>
}

// -----

// Vectors along the reduction.
// CHECK: "dots: row_dot rows=2 columns=8 {{[0-9]+}} cycles; over rows=2 columns=4 {{[0-9]+}} cycles
#x = affine_map<(n, i, k) -> (n, k)>
#w = affine_map<(n, i, k) -> (i, k)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @dots(%x: tensor<2x64xf32>, %w: tensor<32x64xf32>) -> tensor<2x32xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x32xf32>) -> tensor<2x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x64xf32>, tensor<32x64xf32>) outs(%init : tensor<2x32xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x32xf32>
  return %dot : tensor<2x32xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: env WEFT_CPU_CACHES=48K,2M weft-opt %s --split-input-file --weft-schedule-kernels=isa=amx --weft-emit-kernels=isa=amx | FileCheck %s
// RUN: env WEFT_CPU_CACHES=48K,2M weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s --check-prefix=VECTORS
// RUN: env WEFT_CPU_CACHES=48K,2M weft-opt %s --split-input-file --weft-schedule-kernels=isa=native --weft-emit-kernels=isa=native | FileCheck %s --check-prefix=VECTORS

// Both operands are split, the rows of the next stage between the products of this one; what
// the parts do not hold is left to the vector units.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    matrix_unit = 1 : i64, {{.*}}panels = 4 : i64
// CHECK:         "llvm.x86.ldtilecfg"
// CHECK:         "llvm.x86.tilezero"
// CHECK-COUNT-4: "llvm.x86.tileloadd64"
// CHECK:         "llvm.x86.tdpbf16ps"
// CHECK:         vector.shuffle
// CHECK-COUNT-4: "llvm.x86.tilestored64"
// CHECK:         vector.fma
// CHECK:         "llvm.x86.tilerelease"
// VECTORS-LABEL: func.func private @linear
// VECTORS-SAME:    matrix_unit = 0 : i64
// VECTORS-NOT:     llvm.x86
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @linear(%x: tensor<2x768x64xf32>, %w: tensor<768x768xf32>)
    -> tensor<2x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x768x64xf32>) -> tensor<2x768x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x768x64xf32>, tensor<768x768xf32>) outs(%init : tensor<2x768x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x768x64xf32>
  return %dot : tensor<2x768x64xf32>
}

// -----

// Few tokens do not pay for splitting the weight.
// CHECK-LABEL: func.func private @few_tokens
// CHECK-SAME:    matrix_unit = 0 : i64
// CHECK-NOT:     llvm.x86
#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @few_tokens(%x: tensor<768x16xf32>, %w: tensor<32x768xf32>) -> tensor<32x16xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x16xf32>) -> tensor<32x16xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<768x16xf32>, tensor<32x768xf32>) outs(%init : tensor<32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x16xf32>
  return %dot : tensor<32x16xf32>
}

// -----

// bfloat16 is what the unit takes: rows whose steps lie side by side, in whole blocks, are loaded
// where they lie, 1536 bytes apart, and the next ones only fetched. The second stage of the 24 steps
// goes on with the first one's sums, 128 bytes a row.
// CHECK-LABEL: func.func private @in_place
// CHECK:         "llvm.x86.tilezero"
// CHECK:         } else {
// CHECK-COUNT-4: "llvm.x86.tileloadd64"({{.*}}, %c128_i64
// CHECK:         memref.extract_aligned_pointer_as_index %[[ROWS:.*]] : memref<589824xbf16>
// CHECK:         "llvm.x86.tileloadd64"({{.*}}, %c1536_i64)
// CHECK:         "llvm.x86.tdpbf16ps"
// CHECK:         memref.prefetch %[[ROWS]]
// CHECK:         "llvm.x86.tilerelease"
// VECTORS-LABEL: func.func private @in_place
#xb = affine_map<(t, n, i, k) -> (t, k, i)>
#wb = affine_map<(t, n, i, k) -> (n, k)>
#yb = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @in_place(%x: tensor<2x768x64xbf16>, %w: tensor<768x768xbf16>)
    -> tensor<2x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x768x64xf32>) -> tensor<2x768x64xf32>
  %dot = linalg.generic {indexing_maps = [#xb, #wb, #yb],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x768x64xbf16>, tensor<768x768xbf16>) outs(%init : tensor<2x768x64xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %wide_a = arith.extf %a : bf16 to f32
    %wide_c = arith.extf %c : bf16 to f32
    %product = arith.mulf %wide_a, %wide_c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x768x64xf32>
  return %dot : tensor<2x768x64xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-schedule-kernels=isa=avx2 -weft-emit-kernels=isa=avx2 -split-input-file | FileCheck %s
// RUN: weft-opt %s -weft-schedule-kernels=isa=avx512 -weft-emit-kernels=isa=avx512 -split-input-file \
// RUN:   | FileCheck %s --check-prefix=AVX512

#id = affine_map<(i) -> (i)>

// The result is scaled by 2^n in two steps, so that denormals round once.
// Far below, the scale is zero: nothing vanishes in a product.
// CHECK-LABEL: func.func private @exp
// CHECK:         arith.constant dense<-1.760550e+02> : vector<8xf32>
// CHECK-DAG:     %[[SHIFT:.*]] = arith.constant dense<0x4B4000FE> : vector<8xf32>
// CHECK-DAG:     %[[LOG2E:.*]] = arith.constant dense<1.44269502> : vector<8xf32>
// CHECK:         %[[SHIFTED:.*]] = math.fma %{{.*}}, %[[LOG2E]], %[[SHIFT]] : vector<8xf32>
// CHECK:         arith.subf %[[SHIFTED]], %[[SHIFT]]
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[SHIFTED]] : vector<8xf32> to vector<8xi32>
// CHECK:         %[[HALF:.*]] = arith.shrsi %[[BITS]]
// CHECK:         %[[REST:.*]] = arith.subi %[[BITS]], %[[HALF]]
// CHECK:         %[[FIRST:.*]] = arith.mulf
// CHECK:         arith.mulf %[[FIRST]]
// CHECK-NOT:     math.exp
// AVX512-LABEL:  func.func private @exp
// AVX512:        %[[SCALED:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// AVX512:        arith.select %{{.*}}, %{{.*}}, %[[SCALED]]
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func private @every_function
// CHECK-NOT:     math.{{exp|log|tanh|erfc?|a?sinh?|a?cosh?|a?tanh?|pow}}
// CHECK:         return
func.func private @every_function(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    %1 = math.expm1 %0 : f32
    %2 = math.log %1 : f32
    %3 = math.log1p %2 : f32
    %4 = math.tanh %3 : f32
    %5 = math.erf %4 : f32
    %6 = math.sinh %5 : f32
    %7 = math.cosh %6 : f32
    %8 = math.asin %7 : f32
    %9 = math.acos %8 : f32
    %10 = math.atan %9 : f32
    %11 = math.atan2 %10, %0 : f32
    %12 = math.powf %11, %1 : f32
    %13 = math.asinh %12 : f32
    %14 = math.acosh %13 : f32
    %15 = math.atanh %14 : f32
    %16 = math.erfc %15 : f32
    linalg.yield %16 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// 1 + erf(x) is made at once: one power of two whose exponent is a polynomial of |x|, or one of
// sixteen polynomials, which each lane picks; NaN goes through it.
// CHECK-LABEL: func.func private @one_plus_erf
// CHECK:         arith.constant dense<7.052000e+00> : vector<8xf32>
// CHECK:         %[[REST:.*]] = arith.mulf
// CHECK:         %[[BELOW:.*]] = arith.cmpf olt
// CHECK:         %[[ABOVE:.*]] = arith.subf %{{.*}}, %[[REST]]
// CHECK:         arith.select %[[BELOW]], %[[REST]], %[[ABOVE]]
// CHECK-NOT:     math.erf
// CHECK:         return
// AVX512-LABEL:  func.func private @one_plus_erf
// AVX512:        %[[INDEX:.*]] = arith.bitcast %{{.*}} : vector<16xf32> to vector<16xi32>
// AVX512:        %[[SUM:.*]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%{{.*}}, %[[INDEX]])
// AVX512:        %[[NEXT:.*]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// AVX512:        math.fma %[[SUM]], %[[R:.*]], %[[NEXT]]
// AVX512-COUNT-4: math.fma %{{.*}}, %[[R]],
// AVX512:        arith.cmpf ult
// AVX512:        %[[REST:.*]] = arith.select
// AVX512:        arith.subf %{{.*}}, %[[REST]]
// AVX512-NOT:    math.erf
// AVX512:        return
func.func private @one_plus_erf(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %0 = math.erf %a : f32
    %1 = arith.addf %one, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// So is a product with the argument: twice its positive part less a product with the rest.
// CHECK-LABEL: func.func private @gelu
// CHECK:         arith.constant dense<7.052000e+00> : vector<8xf32>
// AVX512-LABEL:  func.func private @gelu
// AVX512:        %[[HALF:.*]] = arith.mulf %[[X:.*]], %{{.*}} : vector<16xf32>
// AVX512:        %[[MAGNITUDE:.*]] = math.absf %[[HALF]]
// AVX512:        %[[TWICE:.*]] = arith.addf %[[HALF]], %[[MAGNITUDE]]
// AVX512-COUNT-6: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// AVX512:        %[[LESS:.*]] = math.fma %{{.*}}, %{{.*}}, %[[TWICE]]
// AVX512:        %[[Y:.*]] = arith.select %{{.*}}, %[[LESS]], %[[TWICE]]
// AVX512:        math.copysign %[[Y]], %[[HALF]]
// AVX512-NOT:    math.erf
// AVX512:        return
func.func private @gelu(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %root = arith.constant 0.707106769 : f32
    %0 = arith.mulf %a, %root : f32
    %1 = math.erf %0 : f32
    %2 = arith.addf %1, %one : f32
    %3 = arith.mulf %a, %half : f32
    %4 = arith.mulf %3, %2 : f32
    linalg.yield %4 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// 1 + tanh(x) is made at once, too: a power of two and a quotient, without what tanh does around
// zero.
// CHECK-LABEL: func.func private @one_plus_tanh
// CHECK:         arith.constant dense<2.000000e+00> : vector<8xf32>
// CHECK-NOT:     arith.select
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK:         arith.divf %{{.*}}, %[[SUM]]
// CHECK-NOT:     copysign
// CHECK:         return
func.func private @one_plus_tanh(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %0 = math.tanh %a : f32
    %1 = arith.addf %0, %one : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// A tanh that is needed besides is made, and one added to it.
// CHECK-LABEL: func.func private @one_plus_tanh_and_tanh
// CHECK:         %[[TANH:.*]] = math.copysign
// CHECK:         arith.addf %[[TANH]]
// CHECK:         return
func.func private @one_plus_tanh_and_tanh(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %0 = math.tanh %a : f32
    %1 = arith.addf %0, %one : f32
    %2 = arith.mulf %0, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// A single f32 is what it would be as one of a vector.
// CHECK-LABEL: func.func private @scalar
// CHECK:         vector.broadcast %{{.*}} : f32 to vector<1xf32>
// CHECK-NOT:     math.tanh
// AVX512-LABEL:  func.func private @scalar
// AVX512:        vector.broadcast %{{.*}} : f32 to vector<16xf32>
// AVX512-NOT:    math.tanh
// AVX512:        vector.extract %{{.*}}[0] : f32 from vector<16xf32>
func.func private @scalar(%x: tensor<f32>) -> tensor<f32> attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<f32>
  %y = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>],
                       iterator_types = []}
      ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %r = math.tanh %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// -----

#id = affine_map<(i) -> (i)>

// Angles of a vector that are all short are reduced to a quarter turn; others go to the library.
// CHECK-LABEL: func.func private @sin
// CHECK:         %[[SHORT:.*]] = arith.cmpf olt, %{{.*}} : vector<8xf32>
// CHECK:         %[[ALL:.*]] = vector.reduction <and>, %[[SHORT]]
// CHECK:         scf.if %[[ALL]] -> (vector<8xf32>)
// CHECK-NOT:       math.sin
// CHECK:         } else {
// CHECK-NEXT:      math.sin %{{.*}} : vector<8xf32>
func.func private @sin(%x: tensor<64xf32>) -> tensor<64xf32> attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %r = math.sin %a : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// With AVX-512, denormals and infinities need no care in a logarithm, and a root is what an
// approximation lacks; that of zero is left to the instruction.
// AVX512-LABEL:  func.func private @without_care
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.getmant.ps.512"
// AVX512-COUNT-3: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// AVX512-NOT:    arith.select
// AVX512:        scf.if
// AVX512:          llvm.call_intrinsic "llvm.x86.avx512.rsqrt14.ps.512"
// AVX512:        else
// AVX512:          math.sqrt
// CHECK-LABEL:   func.func private @without_care
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         math.sqrt
func.func private @without_care(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.log %a : f32
    %1 = math.sqrt %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Of f64, too, in vectors of half as many lanes; what the first product of a quotient loses is
// kept. Nothing is left to the library.
// CHECK-LABEL: func.func private @double_log
// CHECK:         %[[TWO:.*]] = arith.constant dense<2.000000e+00> : vector<4xf64>
// CHECK:         %[[DIVISOR:.*]] = arith.addf %[[TWO]]
// CHECK:         %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[DIVISOR]]
// CHECK:         %[[QUOTIENT:.*]] = arith.mulf %{{.*}}, %[[INVERSE]]
// CHECK:         %[[NEGATED:.*]] = arith.negf %[[QUOTIENT]]
// CHECK:         math.fma %[[NEGATED]], %[[DIVISOR]]
// CHECK-NOT:     math.log
// CHECK:         return
// AVX512-LABEL:  func.func private @double_log
// AVX512:        arith.divf %{{.*}} : vector<8xf64>
func.func private @double_log(%x: tensor<64xf64>) -> tensor<64xf64>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf64>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf64>) outs(%e : tensor<64xf64>) {
  ^bb0(%a: f64, %out: f64):
    %r = math.log %a : f64
    linalg.yield %r : f64
  } -> tensor<64xf64>
  return %y : tensor<64xf64>
}

// -----

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func private @every_double_function
// CHECK-NOT:     math.{{exp|log|tanh|erfc?|a?sinh?|a?cosh?|a?tanh?|pow}}
// CHECK:         return
func.func private @every_double_function(%x: tensor<64xf64>) -> tensor<64xf64>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<64xf64>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf64>) outs(%e : tensor<64xf64>) {
  ^bb0(%a: f64, %out: f64):
    %0 = math.exp %a : f64
    %1 = math.expm1 %0 : f64
    %2 = math.log %1 : f64
    %3 = math.log1p %2 : f64
    %4 = math.tanh %3 : f64
    %5 = math.erf %4 : f64
    %6 = math.sinh %5 : f64
    %7 = math.cosh %6 : f64
    %8 = math.asin %7 : f64
    %9 = math.acos %8 : f64
    %10 = math.atan %9 : f64
    %11 = math.atan2 %10, %0 : f64
    %12 = math.powf %11, %1 : f64
    %13 = math.exp2 %12 : f64
    %14 = math.log2 %13 : f64
    %15 = math.log10 %14 : f64
    %16 = math.asinh %15 : f64
    %17 = math.acosh %16 : f64
    %18 = math.atanh %17 : f64
    %19 = math.erfc %18 : f64
    linalg.yield %19 : f64
  } -> tensor<64xf64>
  return %y : tensor<64xf64>
}

// -----

#id = affine_map<(i) -> (i)>

// A single f64 is the only lane of a vector: its value is that of any lane.
// CHECK-LABEL: func.func private @single_double
// CHECK:         vector.broadcast %{{.*}} : f64 to vector<1xf64>
// CHECK:         vector.extract %{{.*}}[0] : f64 from vector<1xf64>
// CHECK-NOT:     math.log
// CHECK:         return
func.func private @single_double(%x: tensor<1xf64>) -> tensor<1xf64>
    attributes {weft.kernel = "nest"} {
  %e = tensor.empty() : tensor<1xf64>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<1xf64>) outs(%e : tensor<1xf64>) {
  ^bb0(%a: f64, %out: f64):
    %r = math.log %a : f64
    linalg.yield %r : f64
  } -> tensor<1xf64>
  return %y : tensor<1xf64>
}

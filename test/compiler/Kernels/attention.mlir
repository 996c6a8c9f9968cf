// RUN: weft-opt %s --split-input-file --weft-emit-kernels=isa=avx512 | FileCheck %s
// REQUIRES: avx512

// Queries in the lanes, keys broadcast four at a time, exponentials in scratch.
// CHECK-LABEL: func.func private @attention
// CHECK-SAME:    memref<32768xi8>
// CHECK-SAME:    weft.schedule = {groups = 4 : i64, lanes = 16 : i64, rows = 4 : i64}
// CHECK:         vector.fma
// CHECK:         arith.maximumf
// CHECK-NOT:     math.exp
// CHECK:         vector.fma
#heads = #weft.layout<[0, 2, 1, 3], tile 2 by 64>
!logical = tensor<1x12x128x64xf32, #heads>
!physical = tensor<1x2x12x64x64xf32>
func.func private @attention(%q: !physical, %k: !physical, %v: !physical) -> !physical
    attributes {weft.kernel = "attention"} {
  %query = builtin.unrealized_conversion_cast %q : !physical to !logical
  %key = builtin.unrealized_conversion_cast %k : !physical to !logical
  %value = builtin.unrealized_conversion_cast %v : !physical to !logical
  %out = weft.attention %query, %key, %value causal false scale 0.125 : !logical, !logical, !logical -> !logical
  %result = builtin.unrealized_conversion_cast %out : !logical to !physical
  return %result : !physical
}

// -----

// Causal: the loop over keys ends with the block of queries, and inside it later keys are
// compared away. Row-major queries are packed first.
// CHECK-LABEL: func.func private @causal
// CHECK:         arith.minui
// CHECK:         arith.cmpi ule
func.func private @causal(%q: tensor<2x70x24xf32>, %k: tensor<2x70x24xf32>, %v: tensor<2x70x24xf32>)
    -> tensor<2x70x24xf32> attributes {weft.kernel = "attention"} {
  %out = weft.attention %q, %k, %v causal true scale 0.2 : tensor<2x70x24xf32>, tensor<2x70x24xf32>, tensor<2x70x24xf32> -> tensor<2x70x24xf32>
  return %out : tensor<2x70x24xf32>
}

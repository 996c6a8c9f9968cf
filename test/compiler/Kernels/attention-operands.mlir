// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-schedule-kernels=isa=avx2 --weft-emit-kernels=isa=avx2 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

#read = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#write = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// Attention reads the arguments where they lie: heads are a transpose of a view, which is no
// op any more.
// CHECK-LABEL: func.func private @heads(
// CHECK-SAME: %{{.*}}: memref<1x4x16xf32>, %{{.*}}: memref<1x4x16xf32>
// CHECK-NOT: linalg.generic
// CHECK: vector.store
// CHECK: return
func.func private @heads(%x: tensor<1x4x16xf32>, %y: tensor<1x4x16xf32>)
    -> tensor<1x2x4x8xf32> attributes {weft.kernel = "attention"} {
  %q = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [1, 4, 2, 8]
    : tensor<1x4x16xf32> into tensor<1x4x2x8xf32>
  %k = tensor.expand_shape %y [[0], [1], [2, 3]] output_shape [1, 4, 2, 8]
    : tensor<1x4x16xf32> into tensor<1x4x2x8xf32>
  %empty = tensor.empty() : tensor<1x2x4x8xf32>
  %queries = linalg.generic {indexing_maps = [#read, #write],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q : tensor<1x4x2x8xf32>) outs(%empty : tensor<1x2x4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x2x4x8xf32>
  %keys = linalg.generic {indexing_maps = [#read, #write],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<1x4x2x8xf32>) outs(%empty : tensor<1x2x4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x2x4x8xf32>
  %0 = weft.attention %queries, %keys, %keys causal false scale 1.0
    : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  return %0 : tensor<1x2x4x8xf32>
}

// Lanes behind the one query would fall on other heads where the dims are merged; the result
// itself is stored too.
// CHECK-LABEL: func.func private @merged(
// CHECK-COUNT-2: vector.maskedstore
// CHECK: return
func.func private @merged(%q: tensor<1x2x1x8xf32>, %k: tensor<1x2x4x8xf32>)
    -> (tensor<1x2x1x8xf32>, tensor<1x16xf32>) attributes {weft.kernel = "attention"} {
  %0 = weft.attention %q, %k, %k causal false scale 1.0
    : tensor<1x2x1x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x1x8xf32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2, 3]] : tensor<1x2x1x8xf32> into tensor<1x16xf32>
  return %0, %1 : tensor<1x2x1x8xf32>, tensor<1x16xf32>
}

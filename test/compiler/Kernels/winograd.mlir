// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s

// 49 tiles of 4x4 pixels become 16 numbers for each of 64 channels; the next panel is fetched
// while one is multiplied; tiles that are not finite are summed from the weight; the rectifier
// runs on what is stored.
// CHECK-LABEL: func.func private @image
// CHECK-SAME:    rows = 14 : i64, {{.*}}summands = 64 : i64, tiles = 49 : i64
// CHECK:         scf.for
// CHECK-COUNT-16:  vector.load %{{.*}} : memref<16384xf32>, vector<16xf32>
// CHECK-COUNT-16:  vector.store %{{.*}}, vector<16xf32>
// CHECK-COUNT-8:   memref.prefetch %{{.*}} : memref<65536xf32>
// CHECK-NOT:       memref.prefetch
// CHECK-COUNT-28:  vector.fma
// CHECK:           vector.reduction <maxui>
// CHECK:           scf.if
// CHECK:             vector.load %{{.*}} : memref<36864xf32>, vector<16xf32>
// CHECK:           arith.maximumf
// CHECK:           vector.store %{{.*}} : memref<12544xf32>, vector<16xf32>
#images = #weft.layout<[0, 2, 3, 1]>
#zeros = affine_map<(n, h, w, o) -> (n, h, w, o)>
func.func private @image(%x: tensor<1x16x16x64xf32>, %u: tensor<2x16x64x32xf32>,
    %w: tensor<2x3x3x64x32xf32>) -> tensor<1x14x14x64xf32> attributes {weft.kernel = "contraction"} {
  %input = builtin.unrealized_conversion_cast %x
      : tensor<1x16x16x64xf32> to tensor<1x64x16x16xf32, #images>
  %transformed = builtin.unrealized_conversion_cast %u
      : tensor<2x16x64x32xf32> to tensor<16x64x64xf32, #weft.layout<[2, 0, 1], tile 2 by 32>>
  %weight = builtin.unrealized_conversion_cast %w
      : tensor<2x3x3x64x32xf32> to tensor<64x64x3x3xf32, #weft.layout<[0, 2, 3, 1], tile 0 by 32>>
  %conv = weft.winograd_conv %input, %transformed, %weight : tensor<1x64x16x16xf32, #images>,
      tensor<16x64x64xf32, #weft.layout<[2, 0, 1], tile 2 by 32>>,
      tensor<64x64x3x3xf32, #weft.layout<[0, 2, 3, 1], tile 0 by 32>>
      -> tensor<1x64x14x14xf32, #images>
  %stored = builtin.unrealized_conversion_cast %conv
      : tensor<1x64x14x14xf32, #images> to tensor<1x14x14x64xf32>
  %empty = tensor.empty() : tensor<1x14x14x64xf32>
  %zero = arith.constant 0.0 : f32
  %relu = linalg.generic {indexing_maps = [#zeros, #zeros],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%stored : tensor<1x14x14x64xf32>) outs(%empty : tensor<1x14x14x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %most = arith.maximumf %a, %zero : f32
    linalg.yield %most : f32
  } -> tensor<1x14x14x64xf32>
  return %relu : tensor<1x14x14x64xf32>
}

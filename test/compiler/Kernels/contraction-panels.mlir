// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s

// A weight stored (in, out): the scalars of a row lie a page apart. Three lines of it at a time
// are copied into a strip for each part of a chunk of the sum, while the next are on their way.
// CHECK-LABEL: func.func private @in_out
// CHECK-SAME:    memref<24576xi8>
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 384 : i64, {{.*}}copied_steps = 0 : i64, groups = 4 : i64
// CHECK-SAME:    rows = 6 : i64, segment = 128 : i64, {{.*}}steps_ahead = 0 : i64, strided_prefetch = 0 : i64, strip = 48 : i64, {{.*}}strip_steps = 128 : i64
// CHECK:           scf.for
// CHECK:             vector.load %{{.*}} : memref<786432xf32>, vector<16xf32>
// CHECK:             vector.store %{{.*}} : memref<6144xf32>, vector<16xf32>
// CHECK:             vector.load %{{.*}} : memref<786432xf32>, vector<16xf32>
// CHECK:             vector.store %{{.*}} : memref<6144xf32>, vector<16xf32>
// CHECK:             vector.load %{{.*}} : memref<786432xf32>, vector<16xf32>
// CHECK:             vector.store %{{.*}} : memref<6144xf32>, vector<16xf32>
// CHECK:         memref.prefetch %{{.*}} read, locality<2>
#xt = affine_map<(t, n, i, k) -> (t, k, i)>
#wt = affine_map<(t, n, i, k) -> (k, n)>
#yt = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @in_out(%x: tensor<2x768x64xf32>, %w: tensor<768x1024xf32>)
    -> tensor<2x1024x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x1024x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x1024x64xf32>) -> tensor<2x1024x64xf32>
  %dot = linalg.generic {indexing_maps = [#xt, #wt, #yt],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x768x64xf32>, tensor<768x1024xf32>) outs(%init : tensor<2x1024x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x1024x64xf32>
  return %dot : tensor<2x1024x64xf32>
}

// -----

// Packed panels of 64 KiB, one after the other: each of a thread's 4 passes over rows fetches
// 8 of the 32 lines that 16 steps of the next panel are.
// CHECK-LABEL: func.func private @packed
// CHECK-SAME:    panel_prefetch = 8 : i64
// CHECK-SAME:    rows = 13 : i64
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16
// CHECK-COUNT-8:   memref.prefetch %{{.*}} read, locality<2>
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.for %{{.*}} = %{{.*}} to %c16
#x = affine_map<(p, t, l, k) -> (t, k)>
#w = affine_map<(p, t, l, k) -> (p, k, l)>
#y = affine_map<(p, t, l, k) -> (t, p, l)>
func.func private @packed(%x: tensor<49x512xf32>, %w: tensor<64x512x32xf32>)
    -> tensor<49x64x32xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<49x64x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<49x64x32xf32>) -> tensor<49x64x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<49x512xf32>, tensor<64x512x32xf32>)
      outs(%init : tensor<49x64x32xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<49x64x32xf32>
  return %dot : tensor<49x64x32xf32>
}

// -----

// A window over deep images: its panel does not fit beside the next, so that each row of the
// window is a chunk, whose sums wait in the result.
// CHECK-LABEL: func.func private @window
// CHECK-SAME:    outer_chunks = 1 : i64
// CHECK:         vector.store %{{.*}} : memref<25088xf32>
// CHECK:         %[[BEFORE:.*]] = vector.load %{{.*}} : memref<25088xf32>
// CHECK:         arith.addf %[[BEFORE]]
#x = affine_map<(h, w, p, l, r, k) -> (h + r, w * 512 + k)>
#w = affine_map<(h, w, p, l, r, k) -> (p, r, k, l)>
#y = affine_map<(h, w, p, l, r, k) -> (h, w, p, l)>
func.func private @window(%x: tensor<9x4608xf32>, %w: tensor<16x3x1536x32xf32>)
    -> tensor<7x7x16x32xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<7x7x16x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<7x7x16x32xf32>)
      -> tensor<7x7x16x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<9x4608xf32>, tensor<16x3x1536x32xf32>)
      outs(%init : tensor<7x7x16x32xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<7x7x16x32xf32>
  return %dot : tensor<7x7x16x32xf32>
}

// -----

// Of an image that strides leave three quarters of out, what is read stays in the second-level
// cache: one panel at a time.
// CHECK-LABEL: func.func private @strided
// CHECK-SAME:    panels = 1 : i64
#x = affine_map<(i, j, b, l, k) -> (2 * i, 2 * j, k)>
#w = affine_map<(i, j, b, l, k) -> (b, k, l)>
#y = affine_map<(i, j, b, l, k) -> (i, j, b, l)>
func.func private @strided(%x: tensor<28x28x512xf32>, %w: tensor<32x512x32xf32>) -> tensor<14x14x32x32xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<14x14x32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<14x14x32x32xf32>) -> tensor<14x14x32x32xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<28x28x512xf32>, tensor<32x512x32xf32>) outs(%init : tensor<14x14x32x32xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<14x14x32x32xf32>
  return %dot : tensor<14x14x32x32xf32>
}

// -----

// Blocks of two panels: a panel's passes over rows fetch the one that takes its place in the next block.
// CHECK-LABEL: func.func private @next_block
// CHECK-SAME:    panel_prefetch = 1 : i64
// CHECK-SAME:    panels = 2 : i64
// CHECK:         %[[TWO_PANELS:.*]] = arith.constant 98304 : index
// CHECK:         arith.addi %{{.*}}, %[[TWO_PANELS]] : index
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @next_block(%x: tensor<16x768x64xf32>, %w: tensor<768x768xf32>)
    -> tensor<16x768x64xf32> attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x768x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x768x64xf32>) -> tensor<16x768x64xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x768x64xf32>, tensor<768x768xf32>) outs(%init : tensor<16x768x64xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x768x64xf32>
  return %dot : tensor<16x768x64xf32>
}

// -----

// No other block: nothing comes next.
// CHECK-LABEL: func.func private @one_block
// CHECK-SAME:    panel_prefetch = 0 : i64
// CHECK-SAME:    panels = 2 : i64
#x = affine_map<(t, n, i, k) -> (t, k, i)>
#w = affine_map<(t, n, i, k) -> (n, k)>
#y = affine_map<(t, n, i, k) -> (t, n, i)>
func.func private @one_block(%x: tensor<2x768x64xf32>, %w: tensor<768x768xf32>)
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

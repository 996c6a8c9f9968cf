// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=rows=3,groups=2,chunk=48,panels=2" --weft-emit-kernels=isa=avx2 | FileCheck %s
// RUN: weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=panels=1,rows=1" --weft-emit-kernels=isa=avx2 | FileCheck %s --check-prefix=SOME
// RUN: weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=rows=2,panels=1;linear:rows=1;other:rows=9" --weft-emit-kernels=isa=avx2 | FileCheck %s --check-prefix=SOME
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=panels=1;linear:rows=11,groups=1" --weft-emit-kernels=isa=avx2 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=rows=6,groups=4" --weft-emit-kernels=isa=avx2 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=rows=11,groups=1" --weft-emit-kernels=isa=avx2 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=rows=1,groups=6" --weft-emit-kernels=isa=avx2 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=chunk=50" --weft-emit-kernels=isa=avx2 2>&1 | FileCheck %s --check-prefix=CHUNK
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=rows=3,groups=2,panels=4" --weft-emit-kernels=isa=avx2 2>&1 | FileCheck %s --check-prefix=PANELS
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=speed=3" --weft-emit-kernels=isa=avx2 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not weft-opt %s --weft-schedule-kernels="isa=avx2 schedule=rows=none" --weft-lower-to-loops=isa=avx2 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not weft-opt %s --weft-from=linalg --weft-to=loops --weft-schedule=rows=0 2>&1 | FileCheck %s --check-prefix=ZERO

// Five vectors of lanes in panels of two; ten rows in tiles of three, and one left over.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    weft.schedule = #weft.schedule<contraction{{.*}} chunk = 48 : i64, {{.*}}copied_steps = 0 : i64, groups = 2 : i64, lanes = 8 : i64,
// CHECK-SAME:      panels = 2 : i64
// CHECK-SAME:      rows = 3 : i64
// SOME-LABEL:  func.func private @linear
// SOME-SAME:     weft.schedule = #weft.schedule<contraction{{.*}} chunk = 96 : i64
// SOME-SAME:       rows = 1 : i64

// REGISTERS: error: schedule: expected rows * groups + groups + 1 of at most 16 registers, found 29
// ROWS: error: schedule: expected rows of at most 10, found 11
// GROUPS: error: schedule: expected groups of at most 5, found 6
// CHUNK: error: schedule: expected chunk to divide 96, found 50
// PANELS: error: schedule: expected panels of at most 3, found 4
// NAME: error: schedule: expected rows, groups, chunk or panels, found 'speed'
// NUMBER: error: schedule: expected rows to be a positive number, found 'none'
// ZERO: error: schedule: expected rows to be a positive number, found '0'
#x = affine_map<(n, i, k) -> (k, i)>
#w = affine_map<(n, i, k) -> (n, k)>
#y = affine_map<(n, i, k) -> (n, i)>
func.func private @linear(%x: tensor<96x37xf32>, %w: tensor<10x96xf32>) -> tensor<10x37xf32>
    attributes {weft.kernel = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<10x37xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x37xf32>) -> tensor<10x37xf32>
  %dot = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<96x37xf32>, tensor<10x96xf32>) outs(%init : tensor<10x37xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %product = arith.mulf %a, %c : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<10x37xf32>
  return %dot : tensor<10x37xf32>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-to=kernels | FileCheck %s
// RUN: weft-opt %s --weft-to=graph | FileCheck %s --check-prefix=GRAPH
// RUN: not weft-opt %s --weft-to=kernel 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not weft-opt %s --weft-from=kernels --weft-to=graph 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not weft-opt %s --weft-to=kernels --weft-isa=mmx 2>&1 | FileCheck %s --check-prefix=ISA

// UNKNOWN: expected stage to be one of: graph, optimized, kernels, {{.*}}; found 'kernel'
// ORDER: expected a stage not before 'kernels', found 'graph'
// ISA: expected isa to be one of: native{{.*}}; found 'mmx'

// CHECK: func.func @main
// CHECK: call @[[KERNEL:.*]](%{{.*}})
// CHECK: func.func private @[[KERNEL]]
// CHECK-SAME: weft.kernel = "nest"

// GRAPH: func.func @main
// GRAPH-NEXT: weft.exp
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

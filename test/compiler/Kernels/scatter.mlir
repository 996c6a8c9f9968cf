// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-schedule-kernels=isa=avx512 --weft-emit-kernels=isa=avx512 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

// Rows are added as vectors; threads own columns, in blocks of 64, and see every index.
// CHECK-LABEL: func.func private @rows
// CHECK-NOT:     weft.serial
// CHECK:         %[[LOW:.*]] = arith.divui
// CHECK:         %[[HIGH:.*]] = arith.divui
// CHECK:         scf.for %{{.*}} = %[[LOW]] to %[[HIGH]]
// CHECK:           vector.store
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c900
// CHECK:           arith.cmpi ult, %{{.*}}, %c300
// CHECK:           scf.if
// CHECK:             scf.for %{{.*}} = %[[LOW]] to %[[HIGH]]
// CHECK:               arith.addf {{.*}} : vector<16xf32>
func.func private @rows(%x: tensor<300x512xf32>, %u: tensor<900x512xf32>, %i: tensor<900xi64>)
    -> tensor<300x512xf32> attributes {weft.kernel = "scatter"} {
  %0 = weft.scatter <sum> %u into %x[%i] dims [0]
    : tensor<900x512xf32> into tensor<300x512xf32>, tensor<900xi64> -> tensor<300x512xf32>
  return %0 : tensor<300x512xf32>
}

// -----

// Narrow rows: threads own rows, and the comparison with their range checks the bounds.
// CHECK-LABEL: func.func private @narrow_rows
// CHECK:         %[[LOW:.*]] = arith.divui
// CHECK:         %[[HIGH:.*]] = arith.divui
// CHECK:         scf.for %{{.*}} = %[[LOW]] to %[[HIGH]]
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c900
// CHECK:           %[[OFFSET:.*]] = arith.subi %{{.*}}, %[[LOW]] : index
// CHECK:           %[[OWNED:.*]] = arith.subi %[[HIGH]], %[[LOW]] : index
// CHECK:           arith.cmpi ult, %[[OFFSET]], %[[OWNED]]
func.func private @narrow_rows(%x: tensor<300x64xf32>, %u: tensor<900x64xf32>, %i: tensor<900xi64>)
    -> tensor<300x64xf32> attributes {weft.kernel = "scatter"} {
  %0 = weft.scatter <sum> %u into %x[%i] dims [0]
    : tensor<900x64xf32> into tensor<300x64xf32>, tensor<900xi64> -> tensor<300x64xf32>
  return %0 : tensor<300x64xf32>
}

// -----

// Indices that repeat a loop divide that loop, and need no check.
// CHECK-LABEL: func.func private @along_rows
// CHECK:         %[[LOW:.*]] = arith.divui
// CHECK:         %[[HIGH:.*]] = arith.divui
// CHECK:         %[[END:.*]] = arith.minsi %{{.*}}, %[[HIGH]]
// CHECK:         scf.for %{{.*}} = %[[LOW]] to %[[END]]
// CHECK:           arith.cmpi ult
// CHECK-NOT:       arith.cmpi
// CHECK:           memref.store
func.func private @along_rows(%x: tensor<300x64xf32>, %u: tensor<300x64xf32>, %i: tensor<300x64xi64>)
    -> tensor<300x64xf32> attributes {weft.kernel = "scatter"} {
  %empty = tensor.empty() : tensor<300x64xi64>
  %rows = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<300x64xi64>) {
  ^bb0(%unused: i64):
    %row = linalg.index 0 : index
    %wide = arith.index_cast %row : index to i64
    linalg.yield %wide : i64
  } -> tensor<300x64xi64>
  %0 = weft.scatter <set> %u into %x[%rows, %i] dims [0, 1]
    : tensor<300x64xf32> into tensor<300x64xf32>, tensor<300x64xi64>, tensor<300x64xi64> -> tensor<300x64xf32>
  return %0 : tensor<300x64xf32>
}

// -----

// Updates land along the lines: each line comes with all of its updates, not each update with a
// column of all lines.
// CHECK-LABEL: func.func private @line_by_line
// CHECK:         vector.store
// CHECK:         scf.for %[[LINE:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           scf.for %[[UPDATE:.*]] = %c0{{.*}} to %c32
// CHECK:             memref.load %{{.*}}[%[[UPDATE]]] : memref<32xi64>
// CHECK:             memref.store
func.func private @line_by_line(%x: tensor<400x64xf32>, %u: tensor<400x32xf32>, %i: tensor<32xi64>)
    -> tensor<400x64xf32> attributes {weft.kernel = "scatter"} {
  %empty = tensor.empty() : tensor<32x400xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%u : tensor<400x32xf32>) outs(%empty : tensor<32x400xf32>) {
  ^bb0(%a: f32, %unused: f32):
    linalg.yield %a : f32
  } -> tensor<32x400xf32>
  %0 = weft.scatter <sum> %t into %x[%i] dims [1]
    : tensor<32x400xf32> into tensor<400x64xf32>, tensor<32xi64> -> tensor<400x64xf32>
  return %0 : tensor<400x64xf32>
}

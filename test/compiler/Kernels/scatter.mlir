// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --split-input-file --weft-emit-kernels=isa=avx512 | FileCheck %s

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-fill=grouped.2=0:25 --weft-fill=rows.2=-1:9 | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-fill=grouped.2=0:25 --weft-fill=rows.2=-1:9 --weft-set=sort_0.method=radix --weft-set=sort_1.method=list --weft-set=attention_0.rows=2 --weft-set=attention_0.groups=1 --weft-set=grouped_dot_0.chunk=8 --weft-seed=1 | FileCheck %s
// RUN: weft-check-kernels %s --weft-fill=grouped.2=0:25 --weft-fill=rows.2=-1:9 --weft-seed=3 | FileCheck %s

// Ops that their emitters read whole, against their definitions.
// CHECK-DAG: attention
// CHECK-DAG: grouped_matmul
// CHECK-DAG: scatter
// CHECK-DAG: sort
// CHECK-DAG: attended: result 0: 1184 elements of f32
// CHECK-DAG: causal: result 0: 1184 elements of bf16
// CHECK-DAG: masked: result 0: 1184 elements of f32
// CHECK-DAG: grouped: result 0: 1250 elements of f32
// CHECK-DAG: rows: result 0: 333 elements of f32
// CHECK-DAG: set: result 0: 9 elements of i64
// CHECK-DAG: sorted: result 0: 444 elements of f32
// CHECK-DAG: sorted: result 1: 444 elements of i64
// CHECK-DAG: top: result 0: 20 elements of bf16
// CHECK: on 2 threads
func.func @attended(%q: tensor<2x37x16xf32>, %k: tensor<2x45x16xf32>, %v: tensor<2x45x16xf32>) -> tensor<2x37x16xf32> {
  %0 = weft.attention %q, %k, %v causal false scale 0.25
    : tensor<2x37x16xf32>, tensor<2x45x16xf32>, tensor<2x45x16xf32> -> tensor<2x37x16xf32>
  return %0 : tensor<2x37x16xf32>
}
func.func @causal(%q: tensor<2x37x16xbf16>, %k: tensor<2x37x16xbf16>, %v: tensor<2x37x16xbf16>) -> tensor<2x37x16xbf16> {
  %0 = weft.attention %q, %k, %v causal true scale 0.25
    : tensor<2x37x16xbf16>, tensor<2x37x16xbf16>, tensor<2x37x16xbf16> -> tensor<2x37x16xbf16>
  return %0 : tensor<2x37x16xbf16>
}
func.func @masked(%q: tensor<2x37x16xf32>, %k: tensor<2x45x16xf32>, %v: tensor<2x45x16xf32>, %m: tensor<2x37x45xi1>) -> tensor<2x37x16xf32> {
  %0 = weft.attention %q, %k, %v mask %m : tensor<2x37x45xi1> causal false scale 0.25
    : tensor<2x37x16xf32>, tensor<2x45x16xf32>, tensor<2x45x16xf32> -> tensor<2x37x16xf32>
  return %0 : tensor<2x37x16xf32>
}
func.func @grouped(%x: tensor<25x19xf32>, %w: tensor<4x50x19xf32>, %e: tensor<4xi32>) -> tensor<25x50xf32> {
  %0 = weft.grouped_dot %x, %w, %e
    : tensor<25x19xf32>, tensor<4x50x19xf32>, tensor<4xi32> -> tensor<25x50xf32>
  return %0 : tensor<25x50xf32>
}
func.func @rows(%x: tensor<9x37xf32>, %u: tensor<21x37xf32>, %i: tensor<21xi64>) -> tensor<9x37xf32> {
  %0 = weft.scatter <sum> %u into %x[%i] dims [0]
    : tensor<21x37xf32> into tensor<9x37xf32>, tensor<21xi64> -> tensor<9x37xf32>
  return %0 : tensor<9x37xf32>
}
func.func @set(%x: tensor<9xi64>, %u: tensor<13xi64>, %i: tensor<13xi32>) -> tensor<9xi64> {
  %0 = weft.scatter <set> %u into %x[%i] dims [0]
    : tensor<13xi64> into tensor<9xi64>, tensor<13xi32> -> tensor<9xi64>
  return %0 : tensor<9xi64>
}
func.func @sorted(%x: tensor<4x111xf32>) -> (tensor<4x111xf32>, tensor<4x111xi64>) {
  %0, %1 = weft.sort %x dim 1 descending false count 111
    : tensor<4x111xf32> -> tensor<4x111xf32>, tensor<4x111xi64>
  return %0, %1 : tensor<4x111xf32>, tensor<4x111xi64>
}
func.func @top(%x: tensor<4x111xbf16>) -> (tensor<4x5xbf16>, tensor<4x5xi64>) {
  %0, %1 = weft.sort %x dim 1 descending true count 5
    : tensor<4x111xbf16> -> tensor<4x5xbf16>, tensor<4x5xi64>
  return %0, %1 : tensor<4x5xbf16>, tensor<4x5xi64>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-fill=bytes.1=1:20 | FileCheck %s
// RUN: weft-check-kernels %s --weft-fill=bytes.1=1:20 | FileCheck %s

// Every element type, in vectors with tails; transposes in registers and in memory.
// CHECK-DAG: loop_nest
// CHECK-DAG: doubles: result 0: 37 elements of f64
// CHECK-DAG: halves: result 0: 259 elements of f16
// CHECK-DAG: bfloats: result 0: 259 elements of bf16
// CHECK-DAG: integers: result 0: 37 elements of i64
// CHECK-DAG: bytes: result 0: 37 elements of i8
// CHECK-DAG: shorts: result 0: 37 elements of i16
// CHECK-DAG: bools: result 0: 37 elements of i8
// CHECK-DAG: converted: result 0: 37 elements of i32
// CHECK-DAG: transposed: result 0: 1147 elements of f32
// CHECK-DAG: picked: result 0: 90 elements of f32
// CHECK-DAG: around: result 0: 195 elements of f32
// CHECK: on 2 threads
func.func @doubles(%x: tensor<37xf64>, %y: tensor<37xf64>) -> tensor<37xf64> {
  %0 = weft.exp %x : tensor<37xf64>
  %1 = weft.sin %y : tensor<37xf64>
  %2 = weft.div %0, %1 : tensor<37xf64>
  return %2 : tensor<37xf64>
}
func.func @halves(%x: tensor<7x37xf16>, %y: tensor<7x37xf16>) -> tensor<7x37xf16> {
  %0 = weft.mul %x, %y : tensor<7x37xf16>
  %1 = weft.sigmoid %0 : tensor<7x37xf16>
  return %1 : tensor<7x37xf16>
}
func.func @bfloats(%x: tensor<7x37xbf16>, %y: tensor<7x37xbf16>) -> tensor<7x37xbf16> {
  %0 = weft.sub %x, %y : tensor<7x37xbf16>
  %1 = weft.gelu <erf> %0 : tensor<7x37xbf16>
  return %1 : tensor<7x37xbf16>
}
func.func @integers(%x: tensor<37xi64>, %y: tensor<37xi64>) -> tensor<37xi64> {
  %0 = weft.mul %x, %y : tensor<37xi64>
  %1 = weft.sub %0, %y : tensor<37xi64>
  %2 = weft.abs %1 : tensor<37xi64>
  return %2 : tensor<37xi64>
}
func.func @bytes(%x: tensor<37xui8>, %y: tensor<37xui8>) -> tensor<37xui8> {
  %0 = weft.mul %x, %y : tensor<37xui8>
  %1 = weft.div %0, %y : tensor<37xui8>
  return %1 : tensor<37xui8>
}
func.func @shorts(%x: tensor<37xi16>, %y: tensor<37xi8>) -> tensor<37xi16> {
  %0 = weft.convert %y : tensor<37xi8> -> tensor<37xi16>
  %1 = weft.max %x, %0 : tensor<37xi16>
  return %1 : tensor<37xi16>
}
func.func @bools(%x: tensor<37xf32>, %y: tensor<37xf32>, %z: tensor<37xi1>) -> tensor<37xi1> {
  %0 = weft.cmp <lt> %x, %y : tensor<37xf32> -> tensor<37xi1>
  %1 = weft.xor %0, %z : tensor<37xi1>
  return %1 : tensor<37xi1>
}
func.func @converted(%x: tensor<37xf32>, %z: tensor<37xi1>, %y: tensor<37xi32>) -> tensor<37xi32> {
  %0 = weft.convert %x : tensor<37xf32> -> tensor<37xi32>
  %1 = weft.select %z, %0, %y : tensor<37xi1>, tensor<37xi32>
  return %1 : tensor<37xi32>
}
func.func @transposed(%x: tensor<31x37xf32>) -> tensor<37x31xf32> {
  %0 = weft.transpose %x perm [1, 0] : tensor<31x37xf32> -> tensor<37x31xf32>
  %1 = weft.neg %0 : tensor<37x31xf32>
  return %1 : tensor<37x31xf32>
}
func.func @picked(%t: tensor<9x15xf32>, %i: tensor<6xi64>) -> tensor<6x15xf32> {
  %0 = weft.gather %t[%i] dims [0] : tensor<9x15xf32>, tensor<6xi64> -> tensor<6x15xf32>
  return %0 : tensor<6x15xf32>
}
func.func @around(%x: tensor<9x13xf32>, %y: tensor<2x13xf32>) -> tensor<15x13xf32> {
  %0 = weft.reverse %x dims [0] : tensor<9x13xf32>
  %1 = weft.concat %0, %y dim 0 : tensor<9x13xf32>, tensor<2x13xf32> -> tensor<11x13xf32>
  %2 = weft.slice %1 [1, 0] to [11, 13] by [1, 1] : tensor<11x13xf32> -> tensor<10x13xf32>
  %3 = weft.constant dense<2.0> : tensor<f32>
  %4 = weft.pad %2, %3 low [2, 0] high [3, 0] : tensor<10x13xf32>, tensor<f32> -> tensor<15x13xf32>
  return %4 : tensor<15x13xf32>
}

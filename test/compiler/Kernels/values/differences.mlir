// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: sed -e 's/weft.mul/weft.add/' %s > %t.mlir
// RUN: not weft-check-kernels %s --weft-reference=%t.mlir | FileCheck %s
// RUN: weft-check-kernels %s --weft-isa=avx2 --weft-set=elementwise_0.groups=1 --weft-set=elementwise_0.lanes=4 | FileCheck %s --check-prefix=RIGHT
// RUN: not weft-check-kernels %s --weft-set=elementwise_0.lanes=0 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not weft-check-kernels %s --weft-fill=z=0:1 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not weft-check-kernels %s --weft-set=elementwise_9.lanes=4 2>&1 | FileCheck %s --check-prefix=NAME

// What differs from the reference is told with the place and the numbers. Fields of schedules may
// be set by hand.
// CHECK: floats: result 0 at [0, 0]: expected -0.667456412 within 3.2e-07, found -0.00881600194
// CHECK: integers: result 0 at [0]: expected -8, found 7
// RIGHT: floats: result 0: 259 elements
// RIGHT: integers: result 0: 37 elements
// RANGE: schedule_c2: expected "lanes" to be at least 1, found 0
// INPUT: expected a range of one of: floats.0, floats.1, integers.0, integers.1; found 'z'
// NAME: expected kernel.field=value of a kernel with a schedule, found 'elementwise_9.lanes=4'
func.func @floats(%x: tensor<7x37xf32>, %y: tensor<7x37xf32>) -> tensor<7x37xf32> {
  %0 = weft.mul %x, %y : tensor<7x37xf32>
  return %0 : tensor<7x37xf32>
}
func.func @integers(%x: tensor<37xi64>, %y: tensor<37xi64>) -> tensor<37xi64> {
  %0 = weft.mul %x, %y : tensor<37xi64>
  return %0 : tensor<37xi64>
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-schedule-kernels -weft-lower-to-loops | FileCheck %s

// A state that is stacked lives in the rows of the output: the step reads the row before. Its last
// value, which the caller wants, too, is copied once.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[H:.*]]: memref<8xf32>{{.*}}, %[[XS:.*]]: memref<9x8xf32>{{.*}}, %[[LAST:.*]]: memref<8xf32>{{.*}}, %[[ALL:.*]]: memref<9x8xf32>
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[S:.*]] = %[[H]])
// CHECK: %[[ROW:.*]] = arith.subi %{{.*}}, %[[T]]
// CHECK: %[[XBYTES:.*]] = builtin.unrealized_conversion_cast %[[XS]]
// CHECK: %[[XAT:.*]] = arith.muli %[[ROW]], %{{.*}}
// CHECK: %[[X:.*]] = memref.view %[[XBYTES]][%[[XAT]]]
// CHECK: %[[Y:.*]] = memref.view
// CHECK: func.call @k(%[[S]], %[[X]], %[[Y]],
// CHECK: scf.yield %[[Y]]
// CHECK: %[[END:.*]] = memref.view
// CHECK: call @weft_copy(%[[END]], %[[LAST]])
// CHECK-NOT: func.func private @step
func.func @main(%h: tensor<8xf32>, %xs: tensor<9x8xf32>) -> (tensor<8xf32>, tensor<9x8xf32>)
    attributes {weft.entry = #weft.entry<main>} {
  %0:2 = weft.loop @step 9 reverse true carry(%h) over(%xs) with()
    : (tensor<8xf32>, tensor<9x8xf32>) -> (tensor<8xf32>, tensor<9x8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<9x8xf32>
}
func.func private @step(%h: tensor<8xf32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    attributes {weft.step} {
  %0 = call @k(%h, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0, %0 : tensor<8xf32>, tensor<8xf32>
}
func.func private @k(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {weft.kernel = "nest"}

// -----

// Others have two buffers, of which the last of nine steps writes the caller's. A state that is
// the one of the step before is copied, as its memory is written next.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[H:.*]]: memref<8xf32>{{.*}}, %[[LAST:.*]]: memref<8xf32>{{.*}}, %[[LATE:.*]]: memref<8xf32>
// CHECK: %[[OTHER:.*]] = memref.alloc() : memref<8xf32>
// CHECK: %[[LATER:.*]] = memref.alloc() : memref<8xf32>
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[S:.*]] = %[[H]], %[[D:.*]] = %[[H]])
// CHECK: %[[PARITY:.*]] = arith.remui %[[T]]
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[PARITY]], %{{.*}}
// CHECK: %[[NEXT:.*]] = arith.select %[[IS]], %[[LAST]], %[[OTHER]]
// CHECK: %[[DELAYED:.*]] = arith.select %{{.*}}, %[[LATE]], %[[LATER]]
// CHECK: func.call @k(%[[S]], %[[D]], %[[NEXT]],
// CHECK: func.call @weft_copy(%[[S]], %[[DELAYED]])
// CHECK: scf.yield %[[NEXT]], %[[DELAYED]]
func.func @main(%h: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0:2 = weft.loop @step 9 reverse false carry(%h, %h) over() with()
    : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @step(%h: tensor<8xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    attributes {weft.step} {
  %0 = call @k(%h, %d) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0, %h : tensor<8xf32>, tensor<8xf32>
}
func.func private @k(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {weft.kernel = "nest"}

// -----

// A program for a range of sizes runs the steps that count: the size and one more, from the last of
// them on in reverse. Which buffer the last one writes depends on their number.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[H:.*]]: memref<8xf32>{{.*}}, %[[XS:.*]]: memref<9x8xf32>{{.*}}, %[[SIZES:.*]]: memref<1xi64>{{.*}}, %[[LAST:[^ ]*]]: memref<8xf32>
// CHECK: %[[OTHER:.*]] = memref.alloc() : memref<8xf32>
// CHECK: %[[SIZE:.*]] = memref.load %[[SIZES]]
// CHECK: %[[CAST:.*]] = arith.index_cast %[[SIZE]]
// CHECK: %[[TIMES:.*]] = arith.muli %[[CAST]]
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %[[TIMES]]
// CHECK: %[[SOME:.*]] = arith.maxsi %[[SUM]], %c1
// CHECK: %[[STEPS:.*]] = arith.minsi %[[SOME]], %c9
// CHECK: %[[END:.*]] = arith.subi %[[STEPS]], %c1
// CHECK: %[[PARITY:.*]] = arith.remui %[[END]], %c2
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %[[STEPS]] step %{{.*}} iter_args(%[[S:.*]] = %[[H]])
// CHECK: arith.subi %[[END]], %[[T]]
// CHECK: %[[OWN:.*]] = arith.remui %[[T]], %c2
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[OWN]], %[[PARITY]]
// CHECK: arith.select %[[IS]], %[[LAST]], %[[OTHER]]
func.func @main(%h: tensor<8xf32>, %xs: tensor<9x8xf32>,
                %sizes: tensor<1xi64> {weft.bounds = array<i64: 8>}) -> tensor<8xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @step 9 reverse true carry(%h) over(%xs) with()
    {weft.counting_steps = array<i64: 1, 1>} : (tensor<8xf32>, tensor<9x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @step(%h: tensor<8xf32>, %x: tensor<8xf32>) -> tensor<8xf32>
    attributes {weft.step} {
  %0 = call @k(%h, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @k(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {weft.kernel = "nest"}

// -----

// Unrolled by three, seven steps are two iterations and one step. What the second iteration wrote
// is where the step begins, whose last of three iterations in all writes the caller's buffer.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[H:.*]]: memref<8xf32>{{.*}}, %[[XS:.*]]: memref<7x8xf32>{{.*}}, %[[LAST:[^ ]*]]: memref<8xf32>
// CHECK: %[[OTHER:.*]] = memref.alloc() : memref<8xf32>
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2{{.*}} step %{{.*}} iter_args(%[[S:.*]] = %[[H]])
// CHECK: %[[FIRST:.*]] = arith.muli %[[I]], %c3
// CHECK: arith.addi %[[FIRST]], %c1
// CHECK: arith.addi %[[FIRST]], %c2
// CHECK: func.call @three(%[[S]], %{{.*}}, %{{.*}}, %{{.*}},
// CHECK: %[[BEGIN:.*]] = arith.select %{{.*}}, %[[LAST]], %[[OTHER]]
// CHECK: scf.for %[[J:.*]] = %c2{{.*}} to %c3{{.*}} step %{{.*}} iter_args(%[[R:.*]] = %[[BEGIN]])
// CHECK: arith.addi %[[J]], %c4
// CHECK: func.call @one(%[[R]], %{{.*}},
func.func @main(%h: tensor<8xf32>, %xs: tensor<7x8xf32>) -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.loop @steps 7 by 3 reverse false carry(%h) over(%xs) with() rest @step with()
    : (tensor<8xf32>, tensor<7x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @steps(%h: tensor<8xf32>, %x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>) -> tensor<8xf32>
    attributes {weft.step} {
  %0 = call @three(%h, %x, %y, %z) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @step(%h: tensor<8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> attributes {weft.step} {
  %0 = call @one(%h, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @three(tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {weft.kernel = "nest"}
func.func private @one(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {weft.kernel = "nest"}

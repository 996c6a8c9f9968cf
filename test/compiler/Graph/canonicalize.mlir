// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -canonicalize | FileCheck %s

#columns = #weft.layout<[1, 0]>
#blocks = #weft.layout<[0, 1], tile 0 by 4>

// CHECK-LABEL: @chains
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x4xf32>
// CHECK: %[[T:.*]] = weft.transpose %[[X]] perm [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
// CHECK: %[[R:.*]] = weft.reshape %[[X]] : tensor<2x3x4xf32> -> tensor<4x6xf32>
// CHECK: %[[B:.*]] = weft.broadcast_in_dim %[[X]] dims [1, 2, 4] : tensor<2x3x4xf32> -> tensor<7x2x3x5x4xf32>
// CHECK: return %[[T]], %[[R]], %[[B]], %[[X]]
func.func @chains(%x: tensor<2x3x4xf32>)
    -> (tensor<4x3x2xf32>, tensor<4x6xf32>, tensor<7x2x3x5x4xf32>, tensor<2x3x4xf32>) {
  %0 = weft.transpose %x perm [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = weft.transpose %0 perm [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
  %2 = weft.reshape %x : tensor<2x3x4xf32> -> tensor<24xf32>
  %3 = weft.reshape %2 : tensor<24xf32> -> tensor<4x6xf32>
  %4 = weft.broadcast_in_dim %x dims [0, 1, 3] : tensor<2x3x4xf32> -> tensor<2x3x5x4xf32>
  %5 = weft.broadcast_in_dim %4 dims [1, 2, 3, 4] : tensor<2x3x5x4xf32> -> tensor<7x2x3x5x4xf32>
  %6 = weft.transpose %x perm [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %7 = weft.transpose %6 perm [1, 2, 0] : tensor<4x2x3xf32> -> tensor<2x3x4xf32>
  return %1, %3, %5, %7 : tensor<4x3x2xf32>, tensor<4x6xf32>, tensor<7x2x3x5x4xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: @slices
// CHECK-SAME: %[[X:[^:]*]]: tensor<20x9xf32>
// CHECK: %[[S:.*]] = weft.slice %[[X]] [7, 2] to [14, 8] by [6, 1] : tensor<20x9xf32> -> tensor<2x6xf32>
// CHECK: %[[E:.*]] = weft.slice %[[X]] [7, 1] to [7, 9] by [6, 1] : tensor<20x9xf32> -> tensor<0x8xf32>
// CHECK: return %[[S]], %[[E]]
func.func @slices(%x: tensor<20x9xf32>) -> (tensor<2x6xf32>, tensor<0x8xf32>) {
  %0 = weft.slice %x [1, 1] to [20, 9] by [2, 1] : tensor<20x9xf32> -> tensor<10x8xf32>
  %1 = weft.slice %0 [3, 1] to [8, 7] by [3, 1] : tensor<10x8xf32> -> tensor<2x6xf32>
  %2 = weft.slice %0 [3, 0] to [3, 8] by [3, 1] : tensor<10x8xf32> -> tensor<0x8xf32>
  return %1, %2 : tensor<2x6xf32>, tensor<0x8xf32>
}

// CHECK-LABEL: @relayouts
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x3xf32>
// CHECK: %[[L:.*]] = weft.relayout %[[X]] : tensor<8x3xf32> -> tensor<8x3xf32, #weft.layout<[0, 1], tile 0 by 4>>
// CHECK: return %[[L]], %[[X]]
func.func @relayouts(%x: tensor<8x3xf32>) -> (tensor<8x3xf32, #blocks>, tensor<8x3xf32>) {
  %0 = weft.relayout %x : tensor<8x3xf32> -> tensor<8x3xf32, #columns>
  %1 = weft.relayout %0 : tensor<8x3xf32, #columns> -> tensor<8x3xf32, #blocks>
  %2 = weft.relayout %1 : tensor<8x3xf32, #blocks> -> tensor<8x3xf32>
  return %1, %2 : tensor<8x3xf32, #blocks>, tensor<8x3xf32>
}

// CHECK-LABEL: @iotas
// CHECK: %[[B:.*]] = weft.iota 3 : tensor<2x1x5x8xi64>
// CHECK: %[[R:.*]] = weft.iota 2 : tensor<1x1x8x1xi64>
// CHECK: return %[[B]], %[[R]]
func.func @iotas() -> (tensor<2x1x5x8xi64>, tensor<1x1x8x1xi64>) {
  %i = weft.iota 0 : tensor<8xi64>
  %0 = weft.broadcast_in_dim %i dims [3] : tensor<8xi64> -> tensor<2x1x5x8xi64>
  %1 = weft.reshape %i : tensor<8xi64> -> tensor<1x1x8x1xi64>
  return %0, %1 : tensor<2x1x5x8xi64>, tensor<1x1x8x1xi64>
}

// CHECK-LABEL: @iota_is_split
// CHECK: weft.reshape
func.func @iota_is_split() -> tensor<2x4xi64> {
  %i = weft.iota 0 : tensor<8xi64>
  %0 = weft.reshape %i : tensor<8xi64> -> tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}

// CHECK-LABEL: @gather_by_iotas
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x8xf32>, %[[ROW:[^:]*]]: tensor<1x8xf32>, %[[I:[^:]*]]:
// CHECK: %[[B:.*]] = weft.broadcast_in_dim %[[X]] dims [0, 2] : tensor<2x8xf32> -> tensor<2x5x8xf32>
// CHECK: %[[R:.*]] = weft.reshape %[[ROW]] : tensor<1x8xf32> -> tensor<8xf32>
// CHECK: %[[U:.*]] = weft.broadcast_in_dim %[[R]] dims [2] : tensor<8xf32> -> tensor<2x5x8xf32>
// CHECK: %[[K:.*]] = weft.broadcast_in_dim %[[X]] dims [1, 2] : tensor<2x8xf32> -> tensor<5x2x8xf32>
// CHECK: return %[[B]], %[[U]], %[[K]]
func.func @gather_by_iotas(%x: tensor<2x8xf32>, %row: tensor<1x8xf32>, %any: tensor<2x5x8xi64>)
    -> (tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<5x2x8xf32>) {
  %b = weft.iota 0 : tensor<2x5x8xi64>
  %s = weft.iota 2 : tensor<2x5x8xi64>
  %0 = weft.gather %x[%b, %s] dims [0, 1] : tensor<2x8xf32>, tensor<2x5x8xi64>, tensor<2x5x8xi64> -> tensor<2x5x8xf32>
  %1 = weft.gather %row[%any, %s] dims [0, 1] : tensor<1x8xf32>, tensor<2x5x8xi64>, tensor<2x5x8xi64> -> tensor<2x5x8xf32>
  %i = weft.iota 1 : tensor<5x2xi64>
  %2 = weft.gather %x[%i] dims [0] : tensor<2x8xf32>, tensor<5x2xi64> -> tensor<5x2x8xf32>
  return %0, %1, %2 : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<5x2x8xf32>
}

// CHECK-LABEL: @gather_stays
// CHECK: weft.gather
// CHECK: weft.gather
func.func @gather_stays(%x: tensor<8x8xf32>, %table: tensor<16x4xf32>) -> (tensor<8xf32>, tensor<8x4xf32>) {
  %i = weft.iota 0 : tensor<8xi64>
  // The diagonal.
  %0 = weft.gather %x[%i, %i] dims [0, 1] : tensor<8x8xf32>, tensor<8xi64>, tensor<8xi64> -> tensor<8xf32>
  // The first half.
  %1 = weft.gather %table[%i] dims [0] : tensor<16x4xf32>, tensor<8xi64> -> tensor<8x4xf32>
  return %0, %1 : tensor<8xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: @ahead_of_broadcast
// CHECK-SAME: %[[A:[^:]*]]: tensor<4xf32>, %[[B:[^:]*]]: tensor<4xf32>
// CHECK: %[[ZERO:.*]] = weft.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[SUM:.*]] = weft.add %[[A]], %[[B]] : tensor<4xf32>
// CHECK: %[[CMP:.*]] = weft.cmp <gt> %[[SUM]], %[[ZERO]] : tensor<4xf32> -> tensor<4xi1>
// CHECK: %[[SELECT:.*]] = weft.select %[[CMP]], %[[A]], %[[ZERO]] : tensor<4xi1>, tensor<4xf32>
// CHECK: %[[ALL:.*]] = weft.broadcast_in_dim %[[SELECT]] dims [1] : tensor<4xf32> -> tensor<3x4xf32>
// CHECK: return %[[ALL]]
func.func @ahead_of_broadcast(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %zero = weft.constant dense<0.0> : tensor<3x4xf32>
  %0 = weft.broadcast_in_dim %a dims [1] : tensor<4xf32> -> tensor<3x4xf32>
  %1 = weft.broadcast_in_dim %b dims [1] : tensor<4xf32> -> tensor<3x4xf32>
  %2 = weft.add %0, %1 : tensor<3x4xf32>
  %3 = weft.cmp <gt> %2, %zero : tensor<3x4xf32> -> tensor<3x4xi1>
  %4 = weft.select %3, %0, %zero : tensor<3x4xi1>, tensor<3x4xf32>
  return %4 : tensor<3x4xf32>
}

// CHECK-LABEL: @behind_broadcast
// CHECK: weft.broadcast_in_dim
// CHECK: weft.broadcast_in_dim
// CHECK: weft.add
// CHECK: weft.mul
func.func @behind_broadcast(%a: tensor<4xf32>, %b: tensor<4xf32>, %x: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = weft.broadcast_in_dim %a dims [0] : tensor<4xf32> -> tensor<4x4xf32>
  %1 = weft.broadcast_in_dim %b dims [1] : tensor<4xf32> -> tensor<4x4xf32>
  // Along different dims.
  %2 = weft.add %0, %1 : tensor<4x4xf32>
  // Not all are broadcasts.
  %3 = weft.mul %0, %x : tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}

// The mask of a padded batch as transformers writes it: index grids, wrapped indices, a
// gather of the keys' mask, a select of what is added to the scores.
// CHECK-LABEL: @attention_mask
// CHECK-SAME: %[[KEYS:[^:]*]]: tensor<2x8xi1>
// CHECK-DAG: %[[HIDDEN:.*]] = weft.constant dense<0xFF800000> : tensor<2x8xf32>
// CHECK-DAG: %[[SEEN:.*]] = weft.constant dense<0.000000e+00> : tensor<2x8xf32>
// CHECK: %[[ADDED:.*]] = weft.select %[[KEYS]], %[[SEEN]], %[[HIDDEN]] : tensor<2x8xi1>, tensor<2x8xf32>
// CHECK: %[[MASK:.*]] = weft.broadcast_in_dim %[[ADDED]] dims [0, 3] : tensor<2x8xf32> -> tensor<2x1x8x8xf32>
// CHECK: return %[[MASK]]
func.func @attention_mask(%keys: tensor<2x8xi1>) -> tensor<2x1x8x8xf32> {
  %rows = weft.iota 0 : tensor<2xi64>
  %columns = weft.iota 0 : tensor<8xi64>
  %0 = weft.reshape %rows : tensor<2xi64> -> tensor<2x1x1x1xi64>
  %1 = weft.reshape %columns : tensor<8xi64> -> tensor<1x1x1x8xi64>
  %2 = weft.broadcast_in_dim %0 dims [0, 1, 2, 3] : tensor<2x1x1x1xi64> -> tensor<2x1x8x8xi64>
  %3 = weft.broadcast_in_dim %1 dims [0, 1, 2, 3] : tensor<1x1x1x8xi64> -> tensor<2x1x8x8xi64>
  %zero = weft.constant dense<0> : tensor<2x1x8x8xi64>
  %size = weft.constant dense<8> : tensor<2x1x8x8xi64>
  %4 = weft.cmp <lt> %3, %zero : tensor<2x1x8x8xi64> -> tensor<2x1x8x8xi1>
  %5 = weft.add %3, %size : tensor<2x1x8x8xi64>
  %6 = weft.select %4, %5, %3 : tensor<2x1x8x8xi1>, tensor<2x1x8x8xi64>
  %7 = weft.gather %keys[%2, %6] dims [0, 1] : tensor<2x8xi1>, tensor<2x1x8x8xi64>, tensor<2x1x8x8xi64> -> tensor<2x1x8x8xi1>
  %8 = weft.cmp <ge> %3, %zero : tensor<2x1x8x8xi64> -> tensor<2x1x8x8xi1>
  %9 = weft.and %8, %7 : tensor<2x1x8x8xi1>
  %seen = weft.constant dense<0.0> : tensor<2x1x8x8xf32>
  %hidden = weft.constant dense<0xFF800000> : tensor<2x1x8x8xf32>
  %10 = weft.select %9, %seen, %hidden : tensor<2x1x8x8xi1>, tensor<2x1x8x8xf32>
  return %10 : tensor<2x1x8x8xf32>
}

// An expanded index writes slices.
// CHECK-LABEL: @scatter_by_slices
// CHECK-SAME: %[[X:.*]]: tensor<9x4xf32>, %[[U:.*]]: tensor<3x4xf32>, %[[I:.*]]: tensor<3xi64>
// CHECK-NEXT: %[[S:.*]] = weft.scatter <sum> %[[U]] into %[[X]][%[[I]]] dims [0] : tensor<3x4xf32> into tensor<9x4xf32>, tensor<3xi64> -> tensor<9x4xf32>
// CHECK-NEXT: return %[[S]]
func.func @scatter_by_slices(%x: tensor<9x4xf32>, %u: tensor<3x4xf32>, %i: tensor<3xi64>) -> tensor<9x4xf32> {
  %column = weft.reshape %i : tensor<3xi64> -> tensor<3x1xi64>
  %row = weft.broadcast_in_dim %column dims [0, 1] : tensor<3x1xi64> -> tensor<3x4xi64>
  %along = weft.iota 1 : tensor<3x4xi64>
  %0 = weft.scatter <sum> %u into %x[%row, %along] dims [0, 1]
    : tensor<3x4xf32> into tensor<9x4xf32>, tensor<3x4xi64>, tensor<3x4xi64> -> tensor<9x4xf32>
  return %0 : tensor<9x4xf32>
}

// Not where only part of the dim is counted, nor where the other index changes too.
// CHECK-LABEL: @scatter_parts
// CHECK: weft.scatter <set> %{{.*}} dims [0, 1]
// CHECK: weft.scatter <set> %{{.*}} dims [0, 1]
func.func @scatter_parts(%x: tensor<9x4xf32>, %u: tensor<3x2xf32>, %v: tensor<3x4xf32>, %i: tensor<3xi64>,
                         %j: tensor<3x4xi64>) -> (tensor<9x4xf32>, tensor<9x4xf32>) {
  %row = weft.broadcast_in_dim %i dims [0] : tensor<3xi64> -> tensor<3x2xi64>
  %short = weft.iota 1 : tensor<3x2xi64>
  %0 = weft.scatter <set> %u into %x[%row, %short] dims [0, 1]
    : tensor<3x2xf32> into tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xi64> -> tensor<9x4xf32>
  %along = weft.iota 1 : tensor<3x4xi64>
  %1 = weft.scatter <set> %v into %x[%j, %along] dims [0, 1]
    : tensor<3x4xf32> into tensor<9x4xf32>, tensor<3x4xi64>, tensor<3x4xi64> -> tensor<9x4xf32>
  return %0, %1 : tensor<9x4xf32>, tensor<9x4xf32>
}

// Slices of several dims are rows, unless their elements lie in another order.
// CHECK-LABEL: @scatter_by_rows
// CHECK-SAME: %[[X:.*]]: tensor<9x2x4x5xf32>, %[[U:.*]]: tensor<3x2x4x5xf32>, %[[I:.*]]: tensor<3xi64>
// CHECK-DAG: %[[T:.*]] = weft.reshape %[[X]] : tensor<9x2x4x5xf32> -> tensor<9x40xf32>
// CHECK-DAG: %[[R:.*]] = weft.reshape %[[U]] : tensor<3x2x4x5xf32> -> tensor<3x40xf32>
// CHECK: %[[S:.*]] = weft.scatter <sum> %[[R]] into %[[T]][%[[I]]] dims [0]
// CHECK: weft.reshape %[[S]] : tensor<9x40xf32> -> tensor<9x2x4x5xf32>
// CHECK: weft.scatter <set> %{{.*}} dims [1] : tensor<3x9xf32> into tensor<9x7xf32>
func.func @scatter_by_rows(%x: tensor<9x2x4x5xf32>, %u: tensor<3x2x4x5xf32>, %i: tensor<3xi64>, %y: tensor<9x7xf32>,
                           %v: tensor<3x9xf32>) -> (tensor<9x2x4x5xf32>, tensor<9x7xf32>) {
  %0 = weft.scatter <sum> %u into %x[%i] dims [0]
    : tensor<3x2x4x5xf32> into tensor<9x2x4x5xf32>, tensor<3xi64> -> tensor<9x2x4x5xf32>
  %1 = weft.scatter <set> %v into %y[%i] dims [1] : tensor<3x9xf32> into tensor<9x7xf32>, tensor<3xi64> -> tensor<9x7xf32>
  return %0, %1 : tensor<9x2x4x5xf32>, tensor<9x7xf32>
}

// -----

// Where only dims of one element change their places, nothing moves.
// CHECK-LABEL: func.func @transpose_of_unit_dims
// CHECK-NEXT: return %arg0
func.func @transpose_of_unit_dims(%x: tensor<1x49x96xf32>) -> tensor<1x49x96xf32> {
  %windows = weft.reshape %x : tensor<1x49x96xf32> -> tensor<1x1x7x1x7x96xf32>
  %t = weft.transpose %windows perm [0, 1, 3, 2, 4, 5] : tensor<1x1x7x1x7x96xf32> -> tensor<1x1x1x7x7x96xf32>
  %y = weft.reshape %t : tensor<1x1x1x7x7x96xf32> -> tensor<1x49x96xf32>
  return %y : tensor<1x49x96xf32>
}

// A choice of numbers, compared with one: the condition, its complement, or always the same.
// CHECK-LABEL: @compare_choice
// CHECK-SAME: %[[C:[^:]*]]: tensor<4xi1>
// CHECK-DAG: %[[NOT:.*]] = weft.not %[[C]]
// CHECK-DAG: %[[NEVER:.*]] = weft.constant dense<false>
// CHECK: return %[[C]], %[[NOT]], %[[NEVER]]
func.func @compare_choice(%c: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %one = weft.constant dense<1.0> : tensor<4xf32>
  %zero = weft.constant dense<0.0> : tensor<4xf32>
  %two = weft.constant dense<2.0> : tensor<4xf32>
  %x = weft.select %c, %one, %zero : tensor<4xi1>, tensor<4xf32>
  %0 = weft.cmp <gt> %x, %zero : tensor<4xf32> -> tensor<4xi1>
  %1 = weft.cmp <eq> %x, %zero : tensor<4xf32> -> tensor<4xi1>
  %2 = weft.cmp <eq> %x, %two : tensor<4xf32> -> tensor<4xi1>
  return %0, %1, %2 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}

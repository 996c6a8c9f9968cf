// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics -weft-schedule-kernels="threads=4" -weft-lower-to-loops="threads=4" | FileCheck %s

// The last kernel writes into the caller's result; what lies between gets memory.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x8xf32> {weft.kind = "input", weft.name = "x", weft.type = tensor<2x8xf32>}
// CHECK-SAME: %[[R:[a-z0-9]+]]: memref<2x8xf32> {weft.kind = "result", weft.type = tensor<2x8xf32>}
// CHECK-SAME: %[[THREAD:[a-z0-9]+]]: index, %[[THREADS:[a-z0-9]+]]: index) attributes {weft.entry = #weft.entry<main>, weft.max_threads = 4
// CHECK: %[[T:.*]] = memref.alloc() : memref<2x8xf32>
// CHECK: %[[ALL:.*]] = memref.alloc() : memref<512xi8>
// CHECK: %[[SIZE:.*]] = arith.constant 128 : index
// CHECK: %[[OFFSET:.*]] = arith.muli %[[THREAD]], %[[SIZE]]
// CHECK: %[[SCRATCH:.*]] = memref.view %[[ALL]][%[[OFFSET]]][] : memref<512xi8> to memref<100xi8>
// CHECK: call @k(%[[X]], %[[T]], %[[SCRATCH]], %[[THREAD]], %[[THREADS]])
// CHECK: call @k(%[[T]], %[[R]]
// CHECK: return{{$}}
func.func private @k(tensor<2x8xf32>) -> tensor<2x8xf32>
    attributes {weft.kernel = "nest", weft.scratch_bytes = 100 : i64}
func.func @main(%x: tensor<2x8xf32> {weft.name = "x", weft.kind = "input"}) -> tensor<2x8xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0 = call @k(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = call @k(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// -----

// An operand that is advanced is a view.
// CHECK-LABEL: func.func @main(
// CHECK: %[[T:.*]] = memref.alloc() : memref<2x8xf32>
// CHECK: call @k(%{{.*}}, %[[T]]
// CHECK: %[[BYTES:.*]] = builtin.unrealized_conversion_cast %[[T]] : memref<2x8xf32> to memref<64xi8>
// CHECK: %[[START:.*]] = arith.constant 32 : index
// CHECK: %[[ROW:.*]] = memref.view %[[BYTES]][%[[START]]][] : memref<64xi8> to memref<2x8xf32>
// CHECK: %[[U:.*]] = memref.alloc() : memref<2x8xf32>
// CHECK: call @k(%[[T]], %[[U]]
// CHECK: %[[V:.*]] = memref.alloc() : memref<2x8xf32>
// CHECK: call @k(%[[ROW]], %[[V]]
// CHECK: call @add(%[[U]], %[[V]],
func.func private @k(tensor<2x8xf32>) -> tensor<2x8xf32> attributes {weft.kernel = "nest"}
func.func private @add(tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32> attributes {weft.kernel = "nest"}
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @k(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %row = weft.advance %0 by 8 : tensor<2x8xf32>
  %1 = call @k(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = call @k(%row) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = call @add(%1, %2) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// -----

// Arguments and repeated results are aliases; a prepared tensor is copied.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: weft.kind = "result", weft.type = tensor<4xf32>}
// CHECK-SAME: weft.alias_argument = 0 : i64
// CHECK-SAME: weft.alias_result = 0 : i64
// CHECK-SAME: %[[COPY:[a-z0-9]+]]: memref<4xf32> {weft.kind = "result", weft.type = tensor<4xf32>}, %{{.*}}: index
// CHECK-SAME: weft.max_threads = 1
// CHECK: call @weft_copy(%{{.*}}, %[[COPY]])
// CHECK: func.func private @weft_copy(memref<4xf32>, memref<4xf32>) attributes {weft.num_inputs = 1 : i64, weft.service = "copy"}
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {weft.kernel = "nest", weft.serial}
func.func @main(%x: tensor<4xf32>, %p: tensor<4xf32> {weft.kind = "bound"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {weft.entry = #weft.entry<main>} {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %x, %0, %p : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Fallbacks and asserts are services; what storage forgets of a type is kept.
// CHECK-LABEL: func.func @main(
// CHECK: call @weft_fallback(%{{.*}}, %[[R:[a-z0-9]+]]) : (memref<3xi8>, memref<3xi8>) -> ()
// CHECK: func.func private @weft_fallback(memref<3xi8> {weft.type = tensor<3xi1>}, memref<3xi8> {weft.type = tensor<3xui8>})
// CHECK-SAME: weft.arguments = "[]", weft.num_inputs = 1 : i64, weft.service = "fallback", weft.target = "aten.foo.default"
func.func @main(%x: tensor<3xi8>) -> tensor<3xi8> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.torch_fallback "aten.foo.default"(%x) "[]" {operand_dtypes = [i1], result_dtypes = [ui8]} : (tensor<3xi8>) -> tensor<3xi8>
  return %0 : tensor<3xi8>
}

// -----

func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> attributes {weft.entry = #weft.entry<main>} {
  // expected-error @+1 {{expected only calls, loops, fallbacks, asserts and advances in an entry}}
  %0 = arith.negf %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// Kernels whose threads claim parts get sets of counters in turn.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: weft.max_threads = 64
// CHECK: %[[CLAIMS:.*]] = memref.alloc() {weft.persistent} : memref<65536xi8>
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[FIRST:.*]] = memref.view %[[CLAIMS]][%[[ZERO]]][] : memref<65536xi8> to memref<1x64x8xi64>
// CHECK: call @double(%{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST]], %{{.*}}, %{{.*}})
// CHECK: %[[NEXT:.*]] = arith.constant 4096 : index
// CHECK: %[[SECOND:.*]] = memref.view %[[CLAIMS]][%[[NEXT]]][]
// CHECK: call @double(%{{.*}}, %{{.*}}, %{{.*}}, %[[SECOND]], %{{.*}}, %{{.*}})
#map = affine_map<(i, j) -> (i, j)>
func.func private @double(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<1024x1024xf32>) outs(%empty : tensor<1024x1024xf32>) {
  ^bb0(%a: f32, %old: f32):
    %sum = arith.addf %a, %a : f32
    linalg.yield %sum : f32
  } -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @double(%x) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = call @double(%0) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}

// -----

// A result takes the place of an operand that nobody reads behind the call: %3 that of %1, for
// %0 is wanted later. Results of the entry are the caller's, as are arguments.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<64xf32> {{{.*}}}, %[[R:[a-z0-9]+]]: memref<64xf32> {weft.kind = "result"
// CHECK:       call @add(%[[X]], %[[X]], %[[A:[a-z0-9_]+]],
// CHECK:       %[[B:.*]] = memref.alloc() : memref<64xf32>
// CHECK:       call @add(%[[X]], %[[A]], %[[B]],
// CHECK:       call @add(%[[A]], %[[B]], %[[B]],
// CHECK:       %[[C:.*]] = memref.alloc() : memref<64xf32>
// CHECK:       call @add(%[[B]], %[[B]], %[[C]],
// CHECK:       call @add(%[[A]], %[[C]], %[[R]],
#id = affine_map<(i) -> (i)>
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32>
    attributes {weft.kernel = "nest"} {
  %empty = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @add(%x, %x) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = call @add(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = call @add(%0, %1) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = call @add(%3, %3) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %5 = call @add(%0, %4) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %5 : tensor<64xf32>
}

// -----

// A kernel whose loops the module has: they get its name and what is known of it.
// CHECK-LABEL: func.func private @k(
// CHECK-SAME: memref<4xf32>, %{{[a-z0-9]+}}: memref<4xf32>, %{{[a-z0-9]+}}: memref<64xi8>, %{{[a-z0-9]+}}: index, %{{[a-z0-9]+}}: index)
// CHECK-SAME: weft.kernel = "te", weft.num_inputs = 1 : i64, weft.scratch_bytes = 64 : i64, weft.serial
// CHECK-NOT: math.exp
// CHECK: call @k(%{{.*}}) : (memref<4xf32>, memref<4xf32>, memref<64xi8>, index, index) -> ()
func.func private @k(tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.kernel = "te", weft.loops = @k.loops, weft.scratch_bytes = 64 : i64, weft.serial}
func.func private @k.loops(%x: memref<4xf32>, %r: memref<4xf32>, %scratch: memref<64xi8>, %thread: index, %threads: index) {
  %zero = arith.constant 0 : index
  %0 = vector.load %x[%zero] : memref<4xf32>, vector<4xf32>
  %1 = math.exp %0 : vector<4xf32>
  vector.store %1, %r[%zero] : memref<4xf32>, vector<4xf32>
  return
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected a function 'missing' with its loops}}
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {weft.kernel = "te", weft.loops = @missing}

// -----

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {weft.kernel = "te", weft.loops = @k.loops}
// expected-error @+1 {{expected the type '(memref<4xf32>, memref<4xf32>, memref<0xi8>, index, index) -> ()', found '(memref<4xf32>) -> ()'}}
func.func private @k.loops(%x: memref<4xf32>) {
  return
}

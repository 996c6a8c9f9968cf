// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected 'weft.entry' to be a #weft.entry, found "main"}}
func.func @valued() attributes {weft.entry = "main"} { return }

// -----

// expected-error @+2 {{expected ::weft::EntryRole to be one of: main, bind, forward, backward}}
// expected-error @+1 {{failed to parse Weft_EntryRoleAttr parameter 'value'}}
func.func @role() attributes {weft.entry = #weft.entry<aside>} { return }

// -----

// expected-error @+1 {{unknown attribute 'weft.entri'}}
func.func @misspelt() attributes {weft.entri} { return }

// -----

// expected-error @+1 {{expected 'weft.kernel' to be one of: nest, contraction, te, or an op that is emitted whole, found unit}}
func.func private @nameless() attributes {weft.kernel}

// -----

// expected-error @+1 {{expected 'weft.service' to be one of: barrier, verdict, stage, fallback, assert, copy, found "party"}}
func.func private @unheard() attributes {weft.service = "party"}

// -----

// expected-error @+1 {{expected 'weft.scratch_bytes' to be an i64 of at least 0, found -1 : i64}}
func.func private @negative() attributes {weft.scratch_bytes = -1 : i64}

// -----

// expected-error @+1 {{expected 'weft.max_threads' to be an i64 of at least 1, found 2 : i32}}
func.func private @narrow() attributes {weft.max_threads = 2 : i32}

// -----

// expected-error @+1 {{expected 'weft.schedule' to be a #weft.schedule, found "rows=6"}}
func.func private @schedule() attributes {weft.schedule = "rows=6"}

// -----

// expected-error @+1 {{expected 'weft.kind' to be one of: input, weight, parameter, buffer, constant, bound, result, found "guest"}}
func.func private @kind(tensor<2xf32> {weft.kind = "guest"})

// -----

// expected-error @+1 {{expected 'weft.type' to be a type, found "f32"}}
func.func private @type() -> (tensor<2xf32> {weft.type = "f32"})

// -----

// expected-error @+1 {{expected 'weft.serial' on a function, found it on an argument}}
func.func private @place(tensor<2xf32> {weft.serial})

// -----

// expected-error @+1 {{expected 'weft.alias_result' on an argument, found it on a result}}
func.func private @alias() -> (tensor<2xf32> {weft.alias_result = 0 : i64})

// -----

// expected-error @+1 {{expected 'weft.cpu_features' to be an array of strings, found [1]}}
module attributes {weft.cpu_features = [1]} {}

// -----

// expected-error @+1 {{expected 'weft.cpu_features' on a module, found it on a function}}
func.func private @features() attributes {weft.cpu_features = ["avx2"]}

// -----

func.func @memory() {
  // expected-error @+1 {{expected 'weft.in_place' on an argument, found it on an op}}
  %0 = memref.alloc() {weft.in_place = array<i64: 0>} : memref<2xf32>
  return
}

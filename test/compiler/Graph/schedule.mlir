// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: weft.schedule = #weft.schedule<loop_nest serial {grid = array<i64: 0, 2>, lanes = 16 : i64}>
func.func private @whole() attributes {weft.schedule = #weft.schedule<loop_nest serial {lanes = 16 : i64, grid = array<i64: 0, 2>}>}

// -----

// CHECK: weft.schedule = #weft.schedule<row_dot {rows = 2 : i64}, {rows = 3 : i64}>
func.func private @two() attributes {weft.schedule = #weft.schedule<row_dot {rows = 2 : i64}, {rows = 3 : i64}>}

// -----

// CHECK: weft.schedule = #weft.schedule<winograd>
func.func private @emitter() attributes {weft.schedule = #weft.schedule<winograd>}

// -----

// expected-error @+1 {{schedule_c1: unknown emitter 'magic'}}
func.func private @unknown() attributes {weft.schedule = #weft.schedule<magic>}

// -----

// expected-error @+1 {{schedule_c1: expected a field of scatter (lanes, groups, owned), found "speed"}}
func.func private @field() attributes {weft.schedule = #weft.schedule<scatter {speed = 3 : i64}>}

// -----

// expected-error @+1 {{schedule_c2: expected "rows" to be at least 1, found 0}}
func.func private @least() attributes {weft.schedule = #weft.schedule<contraction {rows = 0 : i64}>}

// -----

// expected-error @+1 {{schedule_c2: expected "paired" to be at most 1, found 2}}
func.func private @most() attributes {weft.schedule = #weft.schedule<contraction {paired = 2 : i64}>}

// -----

// expected-error @+1 {{schedule_c2: expected "rows" to be an i64, found 6.000000e+00 : f32}}
func.func private @number() attributes {weft.schedule = #weft.schedule<contraction {rows = 6.0 : f32}>}

// -----

// expected-error @+1 {{schedule_c2: expected "split" to be one of: batches, rows, panels, blocks; found "lanes"}}
func.func private @name() attributes {weft.schedule = #weft.schedule<contraction {split = "lanes"}>}

// -----

// expected-error @+1 {{schedule_c2: expected "grid" to be an array of i64, found 3 : i64}}
func.func private @list() attributes {weft.schedule = #weft.schedule<loop_nest {grid = 3 : i64}>}

// -----

// expected-error @+1 {{schedule_c2: expected "loops" to be at least 1, found 0}}
func.func private @of_list() attributes {weft.schedule = #weft.schedule<loop_nest {loops = array<i64: 4, 0>}>}

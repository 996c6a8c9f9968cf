// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-lower-entries -split-input-file -verify-diagnostics

// Callers find an entry by its role, not by the function's name.
// expected-note @+1 {{the first one}}
func.func @first(%arena: memref<0xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 0 : i64, weft.max_threads = 1 : i64} {
  return
}
// expected-error @+1 {{expected one entry of role main, found another}}
func.func @second(%arena: memref<0xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 0 : i64, weft.max_threads = 1 : i64} {
  return
}

// -----

// expected-error @+1 {{expected an entry with a memory plan}}
func.func @unplanned(%thread: index, %threads: index) attributes {weft.entry = #weft.entry<main>} {
  return
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All attributes of the dialect, of which one parser is made: those of ops, and those of functions
// that few files read.
#ifndef WEFT_GRAPH_ATTRIBUTES_TD
#define WEFT_GRAPH_ATTRIBUTES_TD

include "compiler/Graph/Ops.td"
include "compiler/Graph/EntryRole.td"

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops of the weft dialect. Shapes in their definitions are logical; a layout never
// changes a meaning.
#ifndef WEFT_GRAPH_OPS_TD
#define WEFT_GRAPH_OPS_TD

include "compiler/Graph/Schedule.td"
include "compiler/Graph/Elementwise.td"
include "compiler/Graph/Shape.td"
include "compiler/Graph/Reduce.td"
include "compiler/Graph/Contract.td"
include "compiler/Graph/Index.td"
include "compiler/Graph/Order.td"
include "compiler/Graph/Effects.td"
include "compiler/Graph/Scan.td"
include "compiler/Graph/Slopes.td"
include "compiler/Graph/Composite.td"

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an entry is for, as an attribute.
#ifndef WEFT_GRAPH_ENTRYROLE_TD
#define WEFT_GRAPH_ENTRYROLE_TD

include "compiler/Graph/DialectBase.td"

def Weft_EntryRole : Weft_Enum<"EntryRole", "what an entry is called for",
    ["main", "bind", "forward", "backward"]>;

def Weft_EntryRoleAttr : Weft_EnumAttr<Weft_EntryRole, "entry"> {
  let summary = "What a function that is called from outside is for";
  let description = [{
    The attribute `weft.entry` of a function. `main` computes the program; `bind` prepares, once
    for its weights, what `main` takes as its last arguments; `forward` and `backward` are the
    halves of a `main` that computes gradients. An artifact has its entries by role, one of each
    at most.
  }];
}

#endif

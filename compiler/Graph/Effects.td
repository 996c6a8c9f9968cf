// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that touch the world outside the graph.
#ifndef WEFT_GRAPH_EFFECTS_TD
#define WEFT_GRAPH_EFFECTS_TD

include "compiler/Graph/OpBase.td"

def Weft_AssertOp : Weft_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "Every element is true, or the call fails and leaves nothing behind";
  let description = [{
    condition: any shape of i1; from the linalg stage on, what memory holds of it: i8. When
    an element is false the call fails with the message.

    Created by the frontend (index checks, torch._assert); becomes an exit of the entry.

    ```mlir
    weft.assert %valid, "index out of range in self" : tensor<4xi1>
    ```
  }];
  let arguments = (ins RankedTensorOf<[I1, I8]>:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}
def Weft_TorchFallbackOp : Weft_Op<"torch_fallback", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "An ATen op without a lowering, run by PyTorch inside the program";
  let description = [{
    `target` names the overload; `arguments` is a JSON array of its arguments in schema order
    in which {"tensor": i} stands for operand i. Runs in program order.

    Created by the frontend for what has no lowering; becomes a call of the host.

    ```mlir
    %0 = weft.torch_fallback "aten.eye.default"() "[4]" : () -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$operands, StrAttr:$target, StrAttr:$arguments);
  let results = (outs Variadic<Weft_Tensor>:$products);
  let assemblyFormat = "$target `(` $operands `)` $arguments attr-dict `:` functional-type($operands, $products)";
}

#endif

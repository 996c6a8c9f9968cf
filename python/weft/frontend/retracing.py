# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.export's functionalisation of a program, with composite ops kept whole.

`ExportedProgram.run_decompositions` keeps a composite op by an entry in the dispatch tables of the
process. It makes one for each of PyTorch's 500 and takes them back, which takes longer than all
else: here those are made that the program can come to.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch._export.utils import (
    _get_decomp_for_cia,
    _is_preservable_cia_op,
    _special_op_to_preserve_cia,
)
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.export import ExportedProgram
from torch.export.exported_program import _decompose_exported_program

from weft.frontend.autocast import bodies

# Written as a batch norm, an instance norm tells of the running statistics that it changes. Of the
# others autocast casts what is within; kept whole they have the dtypes of their arguments.
_TAKEN_APART = tuple(
    getattr(torch.ops.aten, name).default
    for name in ("instance_norm", "nll_loss_nd", "nll_loss", "nll_loss2d")
)


def made_functional(program: ExportedProgram, meets_others: bool) -> ExportedProgram:
    """The program without mutation.

    meets_others: whether ops that it does not name are called on the way, as a vmap and autocast
    call them.
    Raises: whatever torch raises for what it cannot make functional.
    """
    # Torch looks for a constant that is a parameter, as of a dict in a closure, among the buffers.
    params = {n: x for n, x in program.constants.items() if isinstance(x, torch.nn.Parameter)}
    plain = {n: x.detach().requires_grad_(x.requires_grad) for n, x in params.items()}
    program.constants.update(plain)
    try:
        made = _made_functional(program, meets_others)
    finally:
        program.constants.update(params)
    made.constants.update((n, x) for n, x in params.items() if n in made.constants)
    return made


def _made_functional(program: ExportedProgram, meets_others: bool) -> ExportedProgram:
    if meets_others:
        return program.run_decompositions({op: _get_decomp_for_cia(op) for op in _TAKEN_APART})
    with unset_fake_temporarily():
        return _decompose_exported_program(
            program,
            cia_to_decomp=dict.fromkeys(_kept(program), _special_op_to_preserve_cia),
            python_decomp_table={},
            joint_loss_index=None,
            decompose_custom_triton_ops=False,
        )


def _kept(program: ExportedProgram) -> Iterator[torch._ops.OpOverload]:
    """The composite ops that the program may come to: those that it calls, and what its mutating
    ones become without their write."""
    for packet in {packet for body in bodies(program.graph_module) for packet in _packets(body)}:
        for name in packet.overloads():
            op = getattr(packet, name)
            if _is_preservable_cia_op(op) and op not in _TAKEN_APART:
                yield op


def _packets(body: torch.fx.GraphModule) -> Iterator[torch._ops.OpOverloadPacket]:
    for node in body.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        yield node.target.overloadpacket
        space, name = node.target._schema.name.split("::")
        written = getattr(getattr(torch.ops, space), name.removesuffix("_"), None)
        if name.endswith("_") and isinstance(written, torch._ops.OpOverloadPacket):
            yield written

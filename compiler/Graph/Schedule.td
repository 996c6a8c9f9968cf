// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a kernel runs, as one attribute.
#ifndef WEFT_GRAPH_SCHEDULE_TD
#define WEFT_GRAPH_SCHEDULE_TD

include "compiler/Graph/Dialect.td"

def Weft_ScheduleAttr : AttrDef<Weft_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "Every choice about how a kernel runs";
  let description = [{
    The attribute `weft.schedule` of a kernel: which emitter writes its loops, whether thread 0
    alone runs them, and the numbers of that emitter, a dictionary for each independent
    computation of the kernel (Q, K and V of attention may be three contractions of one kernel).

    `#weft.schedule<contraction {chunk = 768 : i64, groups = 4 : i64, rows = 6 : i64, ...}>`
    `#weft.schedule<loop_nest serial {lanes = 16 : i64}>`

    weft-schedule-kernels writes it and fills what a given one leaves out; emitters read it. The
    emitters and the fields of each, with their ranges, are those of the dialect's interface
    EmitterFields, which compiler/Kernels implements:

    1. `schedule_c1`: the emitter is one of these, and every field is one of its own.
    2. `schedule_c2`: a number is in the range of its field, a name is one of the field's.
  }];
  let parameters = (ins "::mlir::StringAttr":$emitter, "bool":$serial,
                        ArrayRefParameter<"::mlir::DictionaryAttr">:$parts);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The name of a field that part `number` lacks, or empty if it has all.
    ::llvm::StringRef missingField(size_t number) const;
    /// Whether there is at least one part and none lacks a field.
    bool isComplete() const;
  }];
}

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a kernel runs, as one attribute.
#ifndef WEFT_GRAPH_SCHEDULE_TD
#define WEFT_GRAPH_SCHEDULE_TD

include "compiler/Graph/Dialect.td"

def Weft_EmitterKind : Weft_Enum<"EmitterKind", "the emitter of a kernel",
    ["loop_nest", "token_blocks_to_rows", "rows_to_token_blocks", "contraction", "winograd",
     "skinny_matmul", "row_dot", "attention", "grouped_matmul", "scatter", "sort"]>;

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
    fields of each emitter, with their ranges, are the table in Schedule.cpp:

    1. `schedule_c1`: every field is one of its emitter's.
    2. `schedule_c2`: a number is in the range of its field, a name is one of the field's.
  }];
  let parameters = (ins "::weft::EmitterKind":$emitter, "bool":$serial,
                        ArrayRefParameter<"::mlir::DictionaryAttr">:$parts);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The name of a field that part `number` lacks, or empty if it has all.
    ::llvm::StringRef missingField(size_t number) const;
    /// Whether there is at least one part and none lacks a field.
    bool isComplete() const;
    /// The names of the fields of `emitter`.
    static ::llvm::SmallVector<::llvm::StringRef> fieldsOf(::weft::EmitterKind emitter);
  }];
}

#endif

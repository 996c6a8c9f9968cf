// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of emitters: the name of each in schedules, its fields, and its function, which fills
// KernelFunction::emitted as the kernel's schedule says, or fails.
#include "compiler/Kernels/Emitters.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Contraction/WinogradSchedule.h"
#include "compiler/Kernels/DotProduct/GroupedMatmulSchedule.h"
#include "compiler/Kernels/DotProduct/RowDotSchedule.h"
#include "compiler/Kernels/DotProduct/SkinnyMatmulSchedule.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Kernels/Nest/NestSchedule.h"
#include "compiler/Kernels/Nest/ScatterAxes.h"
#include "compiler/Kernels/Nest/TransposeSchedule.h"
#include "compiler/Kernels/Ordering/SortSchedule.h"

using namespace mlir;
using namespace weft;

ArrayRef<Emitter> weft::emitters() {
  static const Emitter table[] = {
      {"loop_nest", fieldsOf<NestSchedule>(), emitLoopNest},
      {"token_blocks_to_rows", fieldsOf<TransposeSchedule>(), emitTokenBlocksToRows},
      {"rows_to_token_blocks", fieldsOf<TransposeSchedule>(), emitRowsToTokenBlocks},
      {"contraction", fieldsOf<ContractionSchedule>(), emitContraction},
      {"winograd", fieldsOf<WinogradSchedule>(), emitWinograd},
      {"skinny_matmul", fieldsOf<SkinnyMatmulSchedule>(), emitSkinnyMatmul},
      {"row_dot", fieldsOf<RowDotSchedule>(), emitRowDot},
      {"attention", fieldsOf<AttentionSchedule>(), emitAttention},
      {"grouped_matmul", fieldsOf<GroupedMatmulSchedule>(), emitGroupedMatmul},
      {"scatter", fieldsOf<ScatterSchedule>(), emitScatter},
      {"sort", fieldsOf<SortSchedule>(), emitSort},
  };
  return table;
}

const Emitter *weft::findEmitter(StringRef name) {
  const Emitter *found =
      llvm::find_if(emitters(), [&](const Emitter &emitter) { return emitter.name == name; });
  return found == emitters().end() ? nullptr : found;
}

namespace {
struct FieldsOfEmitters : EmitterFields {
  using EmitterFields::EmitterFields;
  std::optional<ArrayRef<ScheduleField>> of(StringRef name) const override {
    const Emitter *emitter = findEmitter(name);
    return emitter ? std::optional(ArrayRef(emitter->fields)) : std::nullopt;
  }
};
} // namespace

void weft::registerEmitters(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, WeftDialect *dialect) { dialect->addInterface<FieldsOfEmitters>(); });
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects the errors of one compilation as text for the user.
#include "compiler/Driver/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static void append(std::string &text, const Diagnostic &diagnostic, llvm::StringRef severity) {
  llvm::raw_string_ostream stream(text);
  if (!text.empty())
    stream << "\n";
  Location location = diagnostic.getLocation();
  if (auto line = location->findInstanceOf<FileLineColLoc>())
    stream << line.getFilename().getValue() << ":" << line.getLine() << ": ";
  stream << severity << ": " << diagnostic;
}

weft::DiagnosticLog::DiagnosticLog(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) -> LogicalResult {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        append(text, diagnostic, "error");
        for (const Diagnostic &note : diagnostic.getNotes())
          append(text, note, "note");
        return success();
      }) {}

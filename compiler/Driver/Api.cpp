// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler without LLVM's types.
#include "compiler/Driver/Api.h"
#include "compiler/Driver/Compile.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"

using namespace weft;
namespace json = llvm::json;

CompileOptions weft::optionsOf(const api::Options &options) {
  return {options.isa,   options.threads, options.schedule,       options.precision,
          options.role,  options.wrt,     options.differentiated, options.memoryBudget,
          options.level, options.without};
}

static std::string toJson(const CompileReport &report) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream writer(stream);
  writer.object([&] {
    writer.attributeObject("seconds", [&] {
      for (const auto &[step, seconds] : report.seconds)
        writer.attribute(step, seconds);
    });
  });
  return text;
}

static api::Outcome failed(llvm::Error error) {
  bool cannotWrite = error.isA<llvm::FileError>();
  return {false, llvm::toString(std::move(error)), cannotWrite};
}

api::Outcome api::compile(std::string_view graph, const std::string &outputPath,
                          const Options &options, const std::atomic<bool> &cancelled,
                          const std::string &from) {
  llvm::Expected<CompileReport> report =
      compileGraph(graph, optionsOf(options), outputPath, &cancelled, from);
  if (!report)
    return failed(report.takeError());
  return {true, toJson(*report)};
}

api::Outcome api::lower(std::string_view graph, const std::string &stage, const Options &options) {
  llvm::Expected<std::string> text = lowerGraph(graph, optionsOf(options), stage);
  if (!text)
    return failed(text.takeError());
  return {true, std::move(*text)};
}

std::string api::llvmVersion() { return LLVM_VERSION_STRING; }

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft._compiler: the compiler, loaded only when the artifact cache misses.
#include "python/bindings/Compiler.h"

#include "python/bindings/CompilerSession.h"

#include <chrono>
#include <future>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <stdexcept>

namespace nb = nanobind;
namespace api = weft::api;

namespace {

class CompileError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class OutputError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace

api::Options parseOptions(const nb::dict &dict) {
  api::Options options;
  for (auto [key, value] : dict) {
    auto name = nb::cast<std::string>(key);
    if (name == "isa")
      options.isa = nb::cast<std::string>(value);
    else if (name == "threads")
      options.threads = nb::cast<int64_t>(value);
    else if (name == "schedule")
      options.schedule = nb::cast<std::string>(value);
    else if (name == "precision")
      options.precision = nb::cast<std::string>(value);
    else if (name == "role")
      options.role = nb::cast<std::string>(value);
    else if (name == "wrt")
      options.wrt = nb::cast<std::string>(value);
    else if (name == "differentiated")
      options.differentiated = nb::cast<std::string>(value);
    else if (name == "memory_budget")
      options.memoryBudget = nb::cast<double>(value);
    else if (name == "level")
      options.level = nb::cast<int64_t>(value);
    else if (name == "without")
      options.without = nb::cast<std::string>(value);
    else
      throw nb::value_error(("expected option isa, threads, schedule, precision, role, wrt, "
                             "differentiated, memory_budget, level or without, found '" +
                             name + "'")
                                .c_str());
  }
  return options;
}

std::string textOrThrow(api::Outcome outcome) {
  if (outcome.cannotWrite)
    throw OutputError(outcome.text);
  if (!outcome.succeeded)
    throw CompileError(outcome.text);
  return std::move(outcome.text);
}

api::Outcome runInterruptibly(std::atomic<bool> &cancelled,
                              const std::function<api::Outcome()> &work) {
  using namespace std::chrono_literals;
  std::optional<nb::python_error> raised;
  nb::gil_scoped_release release;
  std::future<api::Outcome> running = std::async(std::launch::async, work);
  while (!raised && running.wait_for(20ms) == std::future_status::timeout) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals()) {
      raised.emplace();
      cancelled = true;
    }
  }
  api::Outcome outcome = running.get();
  if (raised)
    throw std::move(*raised);
  return outcome;
}

namespace {

/// `graph` stays valid without the GIL: the caller's frame holds the immutable bytes.
std::string compile(const nb::bytes &graph, const std::string &outputPath,
                    const nb::dict &options) {
  std::string_view json(graph.c_str(), graph.size());
  api::Options parsed = parseOptions(options);
  std::atomic<bool> cancelled = false;
  return textOrThrow(runInterruptibly(
      cancelled, [&] { return api::compile(json, outputPath, parsed, cancelled); }));
}

std::string lower(const nb::bytes &graph, const std::string &stage, const nb::dict &options) {
  std::string_view json(graph.c_str(), graph.size());
  api::Options parsed = parseOptions(options);
  nb::gil_scoped_release release;
  return textOrThrow(api::lower(json, stage, parsed));
}

} // namespace

NB_MODULE(_compiler, m) {
  m.doc() = "JSON graphs in, shared objects out.";
  nb::exception<CompileError>(m, "CompileError", PyExc_RuntimeError);
  nb::exception<OutputError>(m, "OutputError", PyExc_OSError);
  m.def("compile", compile, nb::arg("graph"), nb::arg("output_path"),
        nb::arg("options") = nb::dict(),
        "Compile a JSON graph into a shared object, which appears complete or not at all.\n\n"
        "Returns JSON: {\"seconds\": {step: seconds}}. On the main thread signals are handled\n"
        "meanwhile; one whose handler raises cancels it.\n\n"
        "Raises:\n    CompileError: the diagnostics, each with the user's line.\n"
        "    OutputError: the file cannot be written.");
  m.def("lower", lower, nb::arg("graph"), nb::arg("stage"), nb::arg("options") = nb::dict(),
        "The IR of a JSON graph after a stage, as text with locations.\n\n"
        "Raises:\n    CompileError: the diagnostics, each with the user's line.");
  m.def("optional_passes", api::optionalPasses,
        "The names of passes that the option `without` may have.");
  bindSession(m);
  m.attr("llvm_version") = api::llvmVersion();
}

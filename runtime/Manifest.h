// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An artifact's manifest: signatures, calls, asserts, fallbacks, CPU features.
#ifndef WEFT_RUNTIME_MANIFEST_H
#define WEFT_RUNTIME_MANIFEST_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::rt {

struct SourceLine {
  std::string file;
  int64_t line = 0;
  std::string function;
};

/// A result that aliases an argument or another result.
struct Alias {
  enum Kind { Argument, Result } kind = Argument;
  int32_t index = 0;
};

struct TensorSpec {
  std::string name; ///< empty for results
  std::string kind; ///< "input", "weight", "buffer", "constant"; empty for results
  int32_t dtype = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; ///< in elements
  std::optional<Alias> alias;

  int64_t numElements() const;
  size_t numBytes() const;
};

/// One kernel or fallback of an entry, in program order.
struct CallSpec {
  std::string kernel; ///< symbol of the kernel; empty for a fallback
  std::string kind;   ///< "nest", "contraction", "attention"; empty for a fallback
  std::optional<int32_t> fallback;
  std::vector<SourceLine> locs;
  int64_t flops = 0;
  int64_t bytes = 0;
  bool serial = false;
  std::string schedule; ///< JSON object as text
};

struct EntrySpec {
  std::vector<TensorSpec> arguments;
  std::vector<TensorSpec> bound;
  std::vector<TensorSpec> results;
  uint64_t arenaBytes = 0;
  uint64_t livenessBound = 0; ///< bytes live at once, with kernels' scratch: a lower bound
  std::vector<CallSpec> calls;
  std::vector<std::string> asserts;
};

struct FallbackSpec {
  std::string target;    ///< "aten.foo.default"
  std::string arguments; ///< JSON array in schema order; {"tensor": i} is input i
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
};

struct Manifest {
  std::string weft;
  int64_t abi = 0;
  std::string llvm;
  std::vector<std::string> cpuFeatures;
  int64_t threadsHint = 0;
  std::map<std::string, EntrySpec, std::less<>> entries;
  std::vector<FallbackSpec> fallbacks;

  /// Raises: ArtifactError if `json` is not a manifest.
  static Manifest parse(std::string_view json);
};

} // namespace weft::rt

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A callable artifact: checks arguments, runs @bind for new weights, and @main.
#ifndef WEFT_RUNTIME_PROGRAM_H
#define WEFT_RUNTIME_PROGRAM_H

#include "runtime/Arena.h"
#include "runtime/Artifact.h"
#include "runtime/Host.h"
#include "runtime/ThreadTeam.h"
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace weft::rt {

/// Seconds of each call of the entry, as CallSpec lists them.
struct Profile {
  std::vector<double> seconds;
};

/// May be called from several threads at once.
class Program {
public:
  explicit Program(std::shared_ptr<const Artifact> artifact);
  ~Program();

  const Artifact &artifact() const { return *code; }
  const EntrySpec &signature() const { return mainEntry.spec; }

  /// Runs @main, after binding if nothing is bound yet. `arguments` are those of the signature,
  /// including weights; any strides and alignment are accepted, but others than the signature's are
  /// copied. `results` have the signature's shapes and strides and overlap nothing else; aliases
  /// are not touched.
  /// Raises: ArgumentError (wrong count, shape, dtype, device), AssertError, ArtifactError
  /// (fallbacks without a host), exceptions of the host, std::bad_alloc.
  void run(std::span<const WeftTensor> arguments, std::span<const WeftTensor> results,
           Host *host = nullptr, Profile *profile = nullptr);

  /// Runs @bind, again if something is bound already; calls in progress finish with the old values.
  /// `arguments` are those of @main. Does nothing if the artifact has no @bind.
  void bind(std::span<const WeftTensor> arguments, Host *host = nullptr);
  bool hasBind() const { return bindEntry.has_value(); }

  /// Raises: ArgumentError naming the first argument that does not match.
  void check(std::span<const WeftTensor> arguments) const;

private:
  struct Bound;
  struct Call;
  /// An entry of the artifact with the data that its calls need.
  struct Entry {
    Entry(const Artifact &artifact, const WeftEntry &code, std::vector<int32_t> selection);

    const WeftEntry &code;
    const EntrySpec &spec;
    std::vector<int32_t> selection; ///< for each argument, its number in @main
    ThreadTeam::Patience patience;
    ArenaPool arenas;
  };

  static void execute(Entry &entry, std::span<const WeftTensor> arguments, const Bound *bound,
                      std::span<const WeftTensor> results, Host *host, Profile *profile);
  /// The bound values, computed now if they never were.
  std::shared_ptr<const Bound> findBound(std::span<const WeftTensor> arguments, Host *host);
  std::shared_ptr<const Bound> makeBound(std::span<const WeftTensor> arguments, Host *host);

  std::shared_ptr<const Artifact> code;
  Entry mainEntry;
  std::optional<Entry> bindEntry; ///< if the artifact has one

  std::mutex binding;
  std::atomic<std::shared_ptr<const Bound>> bound;
};

} // namespace weft::rt

#endif

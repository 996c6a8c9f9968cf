// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A callable artifact: checks what it is given, runs @bind when weights are new, and @main.
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

  /// Run @main. `arguments` are those of the signature, weights included; any strides and
  /// alignment will do, but only the signature's come without a copy. `results` have the
  /// signature's shapes and strides and overlap nothing else; one with an alias is not
  /// touched. Binds first where nothing is bound yet.
  /// Raises: ArgumentError (wrong count, shape, dtype, device), AssertError, ArtifactError
  /// (fallbacks without a host), whatever the host throws, std::bad_alloc.
  void run(std::span<const WeftTensor> arguments, std::span<const WeftTensor> results,
           Host *host = nullptr, Profile *profile = nullptr);

  /// Prepare what @main keeps of its weights, again where it has been done before. Calls
  /// that are under way finish with what they began with. `arguments` are those of @main.
  /// Nothing happens where the artifact has no @bind.
  void bind(std::span<const WeftTensor> arguments, Host *host = nullptr);
  bool hasBind() const { return bindEntry.has_value(); }

  /// Raises: ArgumentError naming the first argument that does not fit.
  void check(std::span<const WeftTensor> arguments) const;

private:
  struct Bound;
  struct Call;
  /// One of the artifact's entries and what its calls need.
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
  /// What is bound, made now where it never was.
  std::shared_ptr<const Bound> findBound(std::span<const WeftTensor> arguments, Host *host);
  std::shared_ptr<const Bound> makeBound(std::span<const WeftTensor> arguments, Host *host);

  std::shared_ptr<const Artifact> code;
  Entry mainEntry;
  std::optional<Entry> bindEntry; ///< where something is to be bound

  std::mutex binding;
  std::atomic<std::shared_ptr<const Bound>> bound;
};

} // namespace weft::rt

#endif

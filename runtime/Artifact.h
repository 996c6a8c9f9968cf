// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loaded shared object that conforms to Abi.h. All checks precede the execution of its code.
#ifndef WEFT_RUNTIME_ARTIFACT_H
#define WEFT_RUNTIME_ARTIFACT_H

#include "runtime/Abi.h"
#include "runtime/Manifest.h"
#include <filesystem>
#include <memory>
#include <string_view>

namespace weft::rt {

class Artifact {
public:
  /// Check the seal of the file at `path`, load it, and check its magic, version, size,
  /// manifest and CPU features. The file may be deleted afterwards.
  /// Raises: ArtifactError, naming the file, what was expected and what was found.
  static std::shared_ptr<const Artifact> load(const std::filesystem::path &path);

  ~Artifact();
  Artifact(const Artifact &) = delete;
  Artifact &operator=(const Artifact &) = delete;

  const std::filesystem::path &path() const { return file; }
  const Manifest &manifest() const { return description; }
  std::string_view manifestText() const;

  /// The entry called `name`, or null.
  const WeftEntry *entry(std::string_view name) const;

private:
  Artifact(std::filesystem::path path, void *handle, const WeftArtifact *table);

  std::filesystem::path file;
  void *handle; ///< from dlopen; owned
  const WeftArtifact *table;
  Manifest description;
};

} // namespace weft::rt

#endif

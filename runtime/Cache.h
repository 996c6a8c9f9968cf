// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The folder of compiled artifacts, addressed by the digest of what they were made from.
// Trouble with the folder never fails a call: it becomes a warning and a private folder.
#ifndef WEFT_RUNTIME_CACHE_H
#define WEFT_RUNTIME_CACHE_H

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace weft::rt {

/// A file under construction; removed with its last reference unless it was published.
class Draft {
public:
  ~Draft();
  Draft(const Draft &) = delete;
  Draft &operator=(const Draft &) = delete;

  /// Where the writer puts the artifact. Nothing lies there yet.
  const std::filesystem::path &path() const { return file; }
  /// Outside the cache: only this process will use it.
  bool isPrivate() const { return !privateFolder.empty(); }

private:
  friend class Cache;
  Draft() = default;

  std::string key;
  std::filesystem::path file;
  std::filesystem::path privateFolder;
};

class Cache {
public:
  /// `folder` need not exist yet.
  explicit Cache(std::filesystem::path folder) : root(std::move(folder)) {}

  /// WEFT_CACHE_DIR, else XDG_CACHE_HOME/weft, else ~/.cache/weft.
  static std::filesystem::path defaultFolder();

  struct Lookup {
    std::optional<std::filesystem::path> path; ///< of a whole, sealed artifact
    std::string warning;                       ///< empty, or why an entry was thrown away
  };
  /// Find the entry of `key` (letters and digits). A damaged one is removed and missed.
  Lookup lookup(const std::string &key) const;

  struct Writing {
    std::shared_ptr<Draft> draft;
    std::string warning; ///< empty, or why the cache cannot be written
  };
  /// A place to write the entry of `key`: beside its final place, or in a private folder
  /// where the cache cannot be written.
  Writing begin(const std::string &key) const;
  /// A private place, for a writer that has found the cache full.
  std::shared_ptr<Draft> beginPrivate(const std::string &key) const;

  struct Published {
    std::filesystem::path path;   ///< sealed; load it while `draft` is alive
    std::shared_ptr<Draft> draft; ///< keeps a private file until it is loaded
    std::string warning;
  };
  /// Seal the draft and move it to its place in one step; the last of several writers
  /// wins, which is as good as any other. Where the cache refuses, the private file serves.
  /// Raises: std::system_error where the draft itself cannot be sealed anywhere.
  Published publish(std::shared_ptr<Draft> draft) const;

  const std::filesystem::path &folder() const { return root; }

private:
  std::filesystem::path root;
};

} // namespace weft::rt

#endif

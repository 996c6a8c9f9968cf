// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The folder of compiled artifacts, addressed by the digest of their inputs. Failures of the folder
// never fail a call: they become a warning and a private folder.
#ifndef WEFT_RUNTIME_CACHE_H
#define WEFT_RUNTIME_CACHE_H

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace weft::rt {

/// An artifact being written; deleted with its last reference unless it was published.
class Draft {
public:
  ~Draft();
  Draft(const Draft &) = delete;
  Draft &operator=(const Draft &) = delete;

  /// Where the writer puts the artifact. The file does not exist yet.
  const std::filesystem::path &path() const { return file; }
  /// Whether it is outside the cache, for this process only.
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
  /// Finds the entry of `key` (letters and digits). A damaged one is removed and counts as a miss.
  Lookup lookup(const std::string &key) const;

  struct Writing {
    std::shared_ptr<Draft> draft;
    std::string warning; ///< empty, or why the cache cannot be written
  };
  /// A draft for the entry of `key`: in the cache, or in a private folder if the cache is not
  /// writable.
  Writing begin(const std::string &key) const;
  /// A private draft, for a writer that has found the cache full.
  std::shared_ptr<Draft> beginPrivate(const std::string &key) const;

  struct Published {
    std::filesystem::path path;   ///< sealed; load it while `draft` is alive
    std::shared_ptr<Draft> draft; ///< keeps a private file until it is loaded
    std::string warning;
  };
  /// Seals the draft and moves it to its final path atomically; the last of several writers wins,
  /// as all are equivalent. If the cache is not writable, the private file is used.
  /// Raises: std::system_error if the draft cannot be sealed anywhere.
  Published publish(std::shared_ptr<Draft> draft) const;

  const std::filesystem::path &folder() const { return root; }

private:
  std::filesystem::path root;
};

} // namespace weft::rt

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Cache.h"
#include "runtime/Errors.h"
#include "runtime/Seal.h"
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <unistd.h>

namespace fs = std::filesystem;

namespace weft::rt {
namespace {

fs::path entryPath(const fs::path &root, const std::string &key) { return root / (key + ".so"); }

/// Drafts have a folder of their own on the same file system, so that rename is atomic and drafts
/// of killed writers can be found.
fs::path draftFolder(const fs::path &root) { return root / "drafts"; }

std::string uniqueName(const std::string &key) {
  static std::atomic<uint64_t> counter{0};
  return key + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".so";
}

void removeAbandonedDrafts(const fs::path &folder) {
  std::error_code ignored;
  auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (const fs::directory_entry &file : fs::directory_iterator(folder, ignored))
    if (fs::file_time_type time = file.last_write_time(ignored); !ignored && time < yesterday)
      fs::remove(file.path(), ignored);
}

/// Empty, or why `folder` is not writable.
std::string makeWritable(const fs::path &folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return error.message();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return std::generic_category().message(errno);
  return "";
}

std::string cannotWrite(const fs::path &root, const std::string &why) {
  return "the cache folder " + root.string() + " cannot be written (" + why +
         "): compiled programs will not be kept";
}

} // namespace

Draft::~Draft() {
  std::error_code ignored;
  if (!file.empty())
    fs::remove(file, ignored);
  if (!privateFolder.empty())
    fs::remove(privateFolder, ignored);
}

fs::path Cache::defaultFolder() {
  auto variable = [](const char *name) -> fs::path {
    const char *value = std::getenv(name);
    return value ? value : "";
  };
  if (fs::path chosen = variable("WEFT_CACHE_DIR"); !chosen.empty())
    return chosen;
  if (fs::path caches = variable("XDG_CACHE_HOME"); !caches.empty())
    return caches / "weft";
  if (fs::path home = variable("HOME"); !home.empty())
    return home / ".cache" / "weft";
  return fs::temp_directory_path() / ("weft-" + std::to_string(getuid()));
}

Cache::Lookup Cache::lookup(const std::string &key) const {
  fs::path path = entryPath(root, key);
  std::error_code error;
  if (!fs::exists(path, error))
    return {};
  try {
    checkSeal(path);
    return {path, ""};
  } catch (const ArtifactError &damage) {
    fs::remove(path, error);
    return {std::nullopt, std::string("a cache entry is compiled again: ") + damage.what()};
  }
}

Cache::Writing Cache::begin(const std::string &key) const {
  fs::path folder = draftFolder(root);
  if (std::string why = makeWritable(folder); !why.empty())
    return {beginPrivate(key), cannotWrite(root, why)};
  removeAbandonedDrafts(folder);
  std::shared_ptr<Draft> draft(new Draft);
  draft->key = key;
  draft->file = folder / uniqueName(key);
  return {draft, ""};
}

std::shared_ptr<Draft> Cache::beginPrivate(const std::string &key) const {
  std::string pattern = (fs::temp_directory_path() / "weft-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw std::system_error(errno, std::generic_category(), pattern);
  std::shared_ptr<Draft> draft(new Draft);
  draft->key = key;
  draft->privateFolder = pattern;
  draft->file = draft->privateFolder / uniqueName(key);
  return draft;
}

Cache::Published Cache::publish(std::shared_ptr<Draft> draft) const {
  std::string warning;
  if (!draft->isPrivate()) {
    try {
      sealArtifact(draft->file);
      fs::path path = entryPath(root, draft->key);
      fs::rename(draft->file, path);
      draft->file.clear();
      return {path, draft, ""};
    } catch (const std::system_error &error) {
      warning = cannotWrite(root, error.code().message());
    }
    // A partial seal is harmless: the new one covers it.
    std::shared_ptr<Draft> elsewhere = beginPrivate(draft->key);
    fs::copy_file(draft->file, elsewhere->file);
    draft = std::move(elsewhere);
  }
  sealArtifact(draft->file);
  return {draft->file, draft, warning};
}

} // namespace weft::rt

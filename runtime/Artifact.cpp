// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Artifact.h"
#include "runtime/CpuFeatures.h"
#include "runtime/Errors.h"
#include "runtime/Seal.h"
#include <dlfcn.h>
#include <utility>

namespace weft::rt {
namespace {

[[noreturn]] void refuse(const std::filesystem::path &path, const std::string &why) {
  throw ArtifactError(path.string() + ": " + why);
}

std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// dlopen's handle, closed unless the artifact takes it over.
struct Library {
  void *handle;
  ~Library() {
    if (handle)
      dlclose(handle);
  }
};

void checkTable(const std::filesystem::path &path, const WeftArtifact &table) {
  if (table.magic != WEFT_ABI_MAGIC)
    refuse(path, "not a Weft artifact: its table has the wrong magic number");
  if (table.version != WEFT_ABI_VERSION)
    refuse(path, "made for another version: expected ABI " + std::to_string(WEFT_ABI_VERSION) +
                     ", found " + std::to_string(table.version));
  if (table.struct_size != sizeof(WeftArtifact))
    refuse(path, "made for another version: expected a table of " +
                     std::to_string(sizeof(WeftArtifact)) + " bytes, found " +
                     std::to_string(table.struct_size));
}

void checkEntries(const std::filesystem::path &path, const WeftArtifact &table,
                  const Manifest &manifest) {
  for (uint32_t i = 0; i < table.num_entries; ++i) {
    const WeftEntry &entry = table.entries[i];
    auto found = manifest.entries.find(std::string_view(entry.name));
    if (found == manifest.entries.end())
      refuse(path, "its manifest does not describe entry \"" + std::string(entry.name) + "\"");
    const EntrySpec &spec = found->second;
    size_t tensors = spec.arguments.size() + spec.bound.size() + spec.results.size();
    if (size_t(entry.num_tensors) != tensors)
      refuse(path, "entry \"" + std::string(entry.name) + "\" has " +
                       std::to_string(entry.num_tensors) + " tensors, its manifest lists " +
                       std::to_string(tensors));
  }
}

} // namespace

Artifact::Artifact(std::filesystem::path path, void *handle, const WeftArtifact *table)
    : file(std::move(path)), handle(handle), table(table) {}

Artifact::~Artifact() { dlclose(handle); }

std::shared_ptr<const Artifact> Artifact::load(const std::filesystem::path &path) {
  // dlopen searches the library path for names without a slash.
  std::filesystem::path file = std::filesystem::absolute(path);
  checkSeal(file);
  Library library{dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)};
  if (!library.handle)
    refuse(path, std::string("cannot be loaded: ") + dlerror());
  auto *table = static_cast<const WeftArtifact *>(dlsym(library.handle, WEFT_ARTIFACT_SYMBOL));
  if (!table)
    refuse(path, "not a Weft artifact: it does not define " WEFT_ARTIFACT_SYMBOL);
  checkTable(path, *table);

  std::shared_ptr<Artifact> artifact(
      new Artifact(path, std::exchange(library.handle, nullptr), table));
  try {
    artifact->description = Manifest::parse(artifact->manifestText());
  } catch (const ArtifactError &error) {
    refuse(path, error.what());
  }
  // The ABI version covers calls, not the meaning of manifests.
  if (artifact->description.weft != WEFT_VERSION)
    refuse(path, "made for another version: expected Weft " WEFT_VERSION ", found " +
                     artifact->description.weft);
  std::vector<std::string> missing = missingCpuFeatures(artifact->description.cpuFeatures);
  if (!missing.empty())
    refuse(path, "made for another CPU: this one lacks " + join(missing));
  checkEntries(path, *table, artifact->description);
  return artifact;
}

std::string_view Artifact::manifestText() const {
  return {table->manifest, size_t(table->manifest_size)};
}

const WeftEntry *Artifact::entry(std::string_view name) const {
  for (uint32_t i = 0; i < table->num_entries; ++i)
    if (table->entries[i].name == name)
      return &table->entries[i];
  return nullptr;
}

} // namespace weft::rt

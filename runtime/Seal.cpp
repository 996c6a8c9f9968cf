// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Seal.h"
#include "runtime/Errors.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(std::endian::native == std::endian::little, "the seal's length is little-endian");

namespace weft::rt {
namespace {

constexpr std::array<char, 8> sealMagic{'W', 'E', 'F', 'T', 'S', 'E', 'A', 'L'};

struct Trailer {
  std::array<char, 8> magic;
  uint64_t imageBytes;
  XXH128_canonical_t digest;
};
static_assert(sizeof(Trailer) == 32);

XXH128_canonical_t digestOf(std::istream &in, uint64_t bytes) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::vector<char> chunk(size_t(1) << 18);
  while (bytes > 0 && in) {
    in.read(chunk.data(), std::streamsize(std::min<uint64_t>(bytes, chunk.size())));
    XXH3_128bits_update(&state, chunk.data(), size_t(in.gcount()));
    bytes -= uint64_t(in.gcount());
  }
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state));
  return digest;
}

std::system_error lastError(const std::filesystem::path &path) {
  return {errno ? errno : EIO, std::generic_category(), path.string()};
}

} // namespace

void sealArtifact(const std::filesystem::path &path) {
  errno = 0;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  if (!file)
    throw lastError(path);
  Trailer trailer{sealMagic, std::filesystem::file_size(path), {}};
  trailer.digest = digestOf(file, trailer.imageBytes);
  file.clear();
  file.seekp(std::streamoff(trailer.imageBytes));
  file.write(reinterpret_cast<const char *>(&trailer), sizeof trailer);
  file.close();
  if (!file)
    throw lastError(path);
}

void checkSeal(const std::filesystem::path &path) {
  std::string name = path.string();
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> elf{};
  if (file)
    file.read(elf.data(), elf.size());
  if (errno)
    throw ArtifactError(name + ": cannot be read: " + std::strerror(errno));
  if (std::memcmp(elf.data(),
                  "\x7f"
                  "ELF",
                  4) != 0)
    throw ArtifactError(name + ": expected a shared object, found another kind of file");

  file.clear();
  file.seekg(0, std::ios::end);
  uint64_t size = uint64_t(file.tellg());
  Trailer trailer{};
  if (size > sizeof trailer) {
    file.seekg(std::streamoff(size - sizeof trailer));
    file.read(reinterpret_cast<char *>(&trailer), sizeof trailer);
  }
  if (trailer.magic != sealMagic)
    throw ArtifactError(name + ": expected a Weft seal at the end of the file, found none: "
                               "it is truncated, damaged or no Weft artifact");
  if (trailer.imageBytes != size - sizeof trailer)
    throw ArtifactError(name + ": damaged: expected " + std::to_string(trailer.imageBytes) +
                        " bytes ahead of the seal, found " + std::to_string(size - sizeof trailer));
  file.seekg(0);
  XXH128_canonical_t digest = digestOf(file, trailer.imageBytes);
  if (std::memcmp(&digest, &trailer.digest, sizeof digest) != 0)
    throw ArtifactError(name + ": damaged: its bytes differ from those that were sealed");
}

} // namespace weft::rt

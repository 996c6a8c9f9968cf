// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The trailer that protects an artifact's bytes, after the ELF image, where loaders ignore it:
// "WEFTSEAL", the image's length, its XXH3-128 digest.
#ifndef WEFT_RUNTIME_SEAL_H
#define WEFT_RUNTIME_SEAL_H

#include <filesystem>

namespace weft::rt {

/// Appends the trailer to a finished shared object.
/// Raises: std::system_error if the file cannot be read or written.
void sealArtifact(const std::filesystem::path &path);

/// Raises: ArtifactError if the file cannot be read, is not a shared object, is truncated, or
/// differs from what was sealed.
void checkSeal(const std::filesystem::path &path);

} // namespace weft::rt

#endif

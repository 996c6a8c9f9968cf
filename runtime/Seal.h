// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The trailer that guards an artifact's bytes. It follows the ELF image, which loaders
// ignore: "WEFTSEAL", the image's length, its XXH3-128 digest.
#ifndef WEFT_RUNTIME_SEAL_H
#define WEFT_RUNTIME_SEAL_H

#include <filesystem>

namespace weft::rt {

/// Append the trailer to a finished shared object.
/// Raises: std::system_error where the file cannot be read or written.
void sealArtifact(const std::filesystem::path &path);

/// Raises: ArtifactError where the file cannot be read, is no shared object, is cut short
/// or differs from what was sealed.
void checkSeal(const std::filesystem::path &path);

} // namespace weft::rt

#endif

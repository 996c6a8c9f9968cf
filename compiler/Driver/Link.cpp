// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs lld in this process. Inputs are anonymous files in memory, so that neither a full
// /tmp nor an interrupt leaves anything behind; the output gets its name at the end.
#include "compiler/Driver/Link.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace llvm;
using namespace weft;

namespace {

/// A file without a name, which lld opens through /proc.
class MemoryFile {
public:
  static Expected<MemoryFile> create(const ObjectCode &object) {
    MemoryFile file(memfd_create(object.name.c_str(), MFD_CLOEXEC));
    if (file.descriptor < 0)
      return createStringError(errnoAsErrorCode(), "cannot create a file in memory");
    raw_fd_ostream stream(file.descriptor, /*shouldClose=*/false, /*unbuffered=*/true);
    stream << StringRef(object.bytes.data(), object.bytes.size());
    if (std::error_code error = stream.error()) {
      stream.clear_error();
      return createStringError(error, "cannot write a file in memory");
    }
    return file;
  }
  MemoryFile(MemoryFile &&other) : descriptor(std::exchange(other.descriptor, -1)) {}
  MemoryFile &operator=(MemoryFile &&) = delete;
  ~MemoryFile() {
    if (descriptor >= 0)
      close(descriptor);
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

private:
  explicit MemoryFile(int descriptor) : descriptor(descriptor) {}
  int descriptor;
};

/// lld keeps its state in globals: two threads in it crash.
Error runLld(ArrayRef<const char *> arguments) {
  static std::mutex mutex;
  static bool usable = true;
  std::lock_guard lock(mutex);
  if (!usable)
    return createStringError("lld crashed earlier in this process and cannot run again");
  std::string text;
  raw_string_ostream stream(text);
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  if (result.retCode == 0)
    return Error::success();
  return createStringError("cannot link: " + StringRef(text).trim());
}

/// Says whether the disk has room for as much. lld maps its output: where there is none, it
/// would not fail, the process would die of SIGBUS.
std::error_code tryRoom(StringRef path, uint64_t bytes) {
  int descriptor = -1;
  if (std::error_code error = sys::fs::openFileForWrite(path, descriptor, sys::fs::CD_OpenExisting))
    return error;
  int failure = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (failure == 0 && ftruncate(descriptor, 0) != 0)
    failure = errno;
  close(descriptor);
  return {failure, std::generic_category()};
}

} // namespace

Error weft::linkSharedObject(ArrayRef<ObjectCode> objects, StringRef outputPath) {
  std::vector<MemoryFile> files;
  std::vector<std::string> paths;
  for (const ObjectCode &object : objects) {
    Expected<MemoryFile> file = MemoryFile::create(object);
    if (!file)
      return file.takeError();
    paths.push_back(file->path());
    files.push_back(std::move(*file));
  }

  SmallString<128> temporary;
  if (std::error_code error = sys::fs::createUniqueFile(outputPath + "-%%%%%%%%.tmp", temporary))
    return createFileError(outputPath, error);
  FileRemover removeTemporary(temporary);
  // Headers, symbols and alignment come on top of the code; a shared object has few of them.
  uint64_t bytes = 1 << 16;
  for (const ObjectCode &object : objects)
    bytes += object.bytes.size();
  if (std::error_code error = tryRoom(temporary, bytes))
    return createFileError(outputPath, error);

  std::vector<const char *> arguments = {"ld.lld",
                                         "-shared",
                                         "-z",
                                         "now",
                                         "-z",
                                         "noexecstack",
                                         "--hash-style=gnu",
                                         "--gc-sections",
                                         "--build-id=none",
                                         "--threads=1",
                                         "-o",
                                         temporary.c_str()};
  for (const std::string &path : paths)
    arguments.push_back(path.c_str());
  if (Error error = runLld(arguments))
    return error;
  if (std::error_code error = sys::fs::rename(temporary, outputPath))
    return createFileError(outputPath, error);
  removeTemporary.releaseFile();
  return Error::success();
}

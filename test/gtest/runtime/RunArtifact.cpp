// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `weft-run-artifact ARTIFACT.so`: calls @main once on one thread, with every element of the
// arguments a half. For callgrind, whose CPU is not the one that the artifact was made for: the
// runtime's loader would refuse it, so the ABI is used directly.
#include "runtime/Abi.h"
#include "runtime/Arena.h"
#include "runtime/Manifest.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>

using namespace weft::rt;

[[noreturn]] static void fail(const char *what) {
  std::fprintf(stderr, "weft-run-artifact: %s\n", what);
  std::exit(EXIT_FAILURE);
}

static const WeftEntry &mainOf(const WeftArtifact &artifact) {
  for (uint32_t i = 0; i < artifact.num_entries; ++i)
    if (std::string_view(artifact.entries[i].name) == "main")
      return artifact.entries[i];
  fail("no entry \"main\"");
}

/// Float tensors of halves; everything else would need values of its own.
static void addTensors(const std::vector<TensorSpec> &specs, std::vector<AlignedBuffer> &buffers,
                       std::vector<WeftTensor> &tensors) {
  for (const TensorSpec &spec : specs) {
    if (spec.dtype != WEFT_F32)
      fail("expected tensors of f32");
    buffers.emplace_back(spec.numBytes());
    auto *values = reinterpret_cast<float *>(buffers.back().data());
    std::fill_n(values, spec.numBytes() / sizeof(float), 0.5f);
    tensors.push_back({values, spec.shape.data(), spec.strides.data(),
                       static_cast<int32_t>(spec.shape.size()), spec.dtype, 1, 0});
  }
}

/// What callgrind counts, by this name.
extern "C" __attribute__((noinline)) int32_t callEntry(const WeftEntry *entry,
                                                       WeftContext *context) {
  int32_t status = entry->function(context, 0, 1);
  asm volatile("" : "+r"(status)); // no tail call: the count ends with this function
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2)
    fail("expected one argument, an artifact");
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library)
    fail(dlerror());
  auto *artifact = static_cast<const WeftArtifact *>(dlsym(library, WEFT_ARTIFACT_SYMBOL));
  if (!artifact || artifact->magic != WEFT_ABI_MAGIC || artifact->version != WEFT_ABI_VERSION)
    fail("expected an artifact of this version");
  const WeftEntry &entry = mainOf(*artifact);
  Manifest manifest = Manifest::parse({artifact->manifest, artifact->manifest_size});
  const EntrySpec &spec = manifest.entries.find("main")->second;

  std::vector<AlignedBuffer> buffers;
  std::vector<WeftTensor> tensors;
  addTensors(spec.arguments, buffers, tensors);
  addTensors(spec.bound, buffers, tensors);
  addTensors(spec.results, buffers, tensors);
  AlignedBuffer arena(entry.arena_bytes);
  WeftContext context{};
  context.struct_size = sizeof(WeftContext);
  context.tensors = tensors.data();
  context.arena = arena.data();
  context.barrier = [](WeftContext *, int32_t) {};
  return callEntry(&entry, &context) == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

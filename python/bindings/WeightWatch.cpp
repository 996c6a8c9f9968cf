// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/WeightWatch.h"

#include "python/bindings/Torch.h"
#include "runtime/DType.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

namespace weft {

static constexpr uint64_t samples = 64;

static bool checksWholeWeights() {
  static const bool all = [] {
    const char *value = std::getenv("WEFT_CHECK_WEIGHTS");
    return value && std::strcmp(value, "1") == 0;
  }();
  return all;
}

static int64_t elementOffset(const WeftTensor &tensor, uint64_t index) {
  int64_t offset = 0;
  for (int32_t i = tensor.rank; i-- > 0;) {
    offset += static_cast<int64_t>(index % tensor.sizes[i]) * tensor.strides[i];
    index /= tensor.sizes[i];
  }
  return offset;
}

static std::vector<int64_t> sampledOffsets(const WeftTensor &tensor) {
  uint64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i)
    count *= tensor.sizes[i];
  uint64_t step = checksWholeWeights() || count < samples ? 1 : count / samples;
  int64_t width = static_cast<int64_t>(rt::dtypeSize(tensor.dtype));
  std::vector<int64_t> offsets;
  for (uint64_t i = 0; i < count; i += step)
    offsets.push_back(elementOffset(tensor, i) * width);
  return offsets;
}

// FNV-1a over the sampled elements; speed matters, an adversary does not exist. Elements of
// different lines wait for memory together, as a load of known size asks nothing of the one before.
template <typename Bits>
static uint64_t fingerprintOf(const char *data, const std::vector<int64_t> &offsets) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t offset : offsets) {
    Bits bits;
    std::memcpy(&bits, data + offset, sizeof(Bits));
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

static uint64_t fingerprint(const WeftTensor &tensor, const std::vector<int64_t> &offsets) {
  const char *data = static_cast<const char *>(tensor.data);
  switch (rt::dtypeSize(tensor.dtype)) {
  case 1:
    return fingerprintOf<uint8_t>(data, offsets);
  case 2:
    return fingerprintOf<uint16_t>(data, offsets);
  case 4:
    return fingerprintOf<uint32_t>(data, offsets);
  default:
    return fingerprintOf<uint64_t>(data, offsets);
  }
}

bool WeightWatch::changed(const std::vector<PyObject *> &tensors,
                          const std::vector<WeftTensor> &views) {
  const Torch &torch = Torch::get();
  seen.resize(watched.size());
  samples.resize(watched.size());
  for (size_t i = 0; i < watched.size(); ++i) {
    const WeftTensor &view = views[watched[i]];
    std::span<const int64_t> strides(view.strides, static_cast<size_t>(view.rank));
    if (prepared.empty() || !std::ranges::equal(strides, samples[i].strides)) {
      prepared.clear(); // fingerprints of other elements tell nothing
      samples[i] = {{strides.begin(), strides.end()}, sampledOffsets(view)};
    }
    PyObject *tensor = tensors[watched[i]];
    bool hadNone = !prepared.empty() && !prepared[i].version;
    auto version = hadNone && torch.isInference(tensor) ? std::nullopt : torch.version(tensor);
    seen[i] = {view.data, version, fingerprint(view, samples[i].offsets)};
  }
  return seen != prepared;
}

} // namespace weft

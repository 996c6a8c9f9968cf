// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Manifest.h"
#include "runtime/DType.h"
#include "runtime/Errors.h"
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace weft::rt {
namespace {

int32_t readDType(const json &value) {
  std::string name = value.get<std::string>();
  if (std::optional<int32_t> dtype = parseDType(name))
    return *dtype;
  throw ArtifactError("manifest: unknown dtype \"" + name + "\"");
}

std::optional<Alias> readAlias(const json &value) {
  if (value.is_null())
    return std::nullopt;
  if (value.contains("argument"))
    return Alias{Alias::Argument, value.at("argument").get<int32_t>()};
  return Alias{Alias::Result, value.at("result").get<int32_t>()};
}

TensorSpec readTensor(const json &value) {
  TensorSpec spec;
  spec.name = value.value("name", "");
  spec.kind = value.value("kind", "");
  spec.dtype = readDType(value.at("dtype"));
  spec.shape = value.at("shape").get<std::vector<int64_t>>();
  if (value.contains("strides"))
    spec.strides = value.at("strides").get<std::vector<int64_t>>();
  else {
    spec.strides.assign(spec.shape.size(), 1);
    for (size_t i = spec.shape.size(); i-- > 1;)
      spec.strides[i - 1] = spec.strides[i] * spec.shape[i];
  }
  if (spec.strides.size() != spec.shape.size())
    throw ArtifactError("manifest: expected as many strides as dims");
  if (value.contains("alias"))
    spec.alias = readAlias(value.at("alias"));
  return spec;
}

std::vector<TensorSpec> readTensors(const json &values) {
  std::vector<TensorSpec> specs;
  for (const json &value : values)
    specs.push_back(readTensor(value));
  return specs;
}

CallSpec readCall(const json &value) {
  CallSpec call;
  for (const json &loc : value.at("locs"))
    call.locs.push_back(
        {loc.at(0).get<std::string>(), loc.at(1).get<int64_t>(), loc.at(2).get<std::string>()});
  if (value.contains("fallback")) {
    call.fallback = value.at("fallback").get<int32_t>();
    return call;
  }
  call.kernel = value.at("kernel").get<std::string>();
  call.kind = value.at("kind").get<std::string>();
  call.flops = value.at("flops").get<int64_t>();
  call.bytes = value.at("bytes").get<int64_t>();
  call.serial = value.at("serial").get<bool>();
  call.schedule = value.at("schedule").dump();
  return call;
}

EntrySpec readEntry(const json &value) {
  EntrySpec entry;
  entry.arguments = readTensors(value.at("arguments"));
  entry.bound = readTensors(value.at("bound"));
  entry.results = readTensors(value.at("results"));
  entry.arenaBytes = value.at("arena_bytes").get<uint64_t>();
  entry.livenessBound = value.at("liveness_bound").get<uint64_t>();
  for (const json &call : value.at("calls"))
    entry.calls.push_back(readCall(call));
  entry.asserts = value.at("asserts").get<std::vector<std::string>>();
  return entry;
}

Manifest readManifest(const json &value) {
  Manifest manifest;
  manifest.weft = value.at("weft").get<std::string>();
  manifest.abi = value.at("abi").get<int64_t>();
  manifest.llvm = value.at("llvm").get<std::string>();
  manifest.cpuFeatures = value.at("cpu_features").get<std::vector<std::string>>();
  manifest.threadsHint = value.at("threads_hint").get<int64_t>();
  for (const auto &[name, entry] : value.at("entries").items())
    manifest.entries.emplace(name, readEntry(entry));
  for (const json &fallback : value.at("fallbacks"))
    manifest.fallbacks.push_back(
        {fallback.at("target").get<std::string>(), fallback.at("arguments").get<std::string>(),
         readTensors(fallback.at("inputs")), readTensors(fallback.at("outputs"))});
  return manifest;
}

} // namespace

int64_t TensorSpec::numElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

size_t TensorSpec::numBytes() const { return size_t(numElements()) * dtypeSize(dtype); }

Manifest Manifest::parse(std::string_view text) {
  try {
    return readManifest(json::parse(text));
  } catch (const json::exception &error) {
    throw ArtifactError(std::string("manifest: ") + error.what());
  }
}

} // namespace weft::rt

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `weft-time-call ARTIFACT.so`: prints the nanoseconds of a call of @main through the run time,
// on arguments of zeros: the least mean of many batches of calls.
#include "runtime/Program.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>

using namespace weft::rt;

static std::vector<WeftTensor> makeTensors(const std::vector<TensorSpec> &specs,
                                           std::vector<AlignedBuffer> &buffers) {
  std::vector<WeftTensor> tensors;
  for (const TensorSpec &spec : specs) {
    buffers.emplace_back(spec.numBytes());
    tensors.push_back({buffers.back().data(), spec.shape.data(), spec.strides.data(),
                       static_cast<int32_t>(spec.shape.size()), spec.dtype, 1, 0});
  }
  return tensors;
}

static double timeCalls(Program &program) {
  constexpr int batches = 50, calls = 10'000;
  std::vector<AlignedBuffer> buffers;
  std::vector<WeftTensor> arguments = makeTensors(program.signature().arguments, buffers);
  std::vector<WeftTensor> results = makeTensors(program.signature().results, buffers);
  double best = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < batches; ++batch) {
    auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call)
      program.run(arguments, results);
    std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count() / calls);
  }
  return best;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "expected one argument, an artifact\n");
    return EXIT_FAILURE;
  }
  try {
    Program program(Artifact::load(argv[1]));
    std::printf("%.1f\n", timeCalls(program));
    return EXIT_SUCCESS;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "weft-time-call: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

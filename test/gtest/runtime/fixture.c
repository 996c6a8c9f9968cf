/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A hand-written artifact: main(positions: f32[2, 3]) returns positions + 1 and asserts
 * that the first is not negative. The name is too long for a string without memory of its own. */
#include "runtime/Abi.h"
#include <string.h>

#ifndef FIXTURE_VERSION
#define FIXTURE_VERSION WEFT_ABI_VERSION
#endif
#ifndef FIXTURE_FEATURES
#define FIXTURE_FEATURES ""
#endif

static int32_t run(WeftContext *context, int32_t thread, int32_t threads) {
  const float *x = context->tensors[0].data;
  float *y = context->tensors[1].data;
  if (thread == 0)
    context->status = x[0] < 0 ? 1 : WEFT_OK;
  if (threads > 1)
    context->barrier(context, thread);
  if (context->status != WEFT_OK)
    return context->status;
  for (int i = 6 * thread / threads; i < 6 * (thread + 1) / threads; ++i)
    y[i] = x[i] + 1;
  if (thread == 0 && context->mark)
    context->mark(context, 0);
  return WEFT_OK;
}

#define TENSOR "\"dtype\":\"f32\",\"shape\":[2,3],\"strides\":[3,1]"
static const char manifest[] =
    "{\"weft\":\"" FIXTURE_WEFT "\",\"abi\":1,\"llvm\":\"0\",\"cpu_features\":[" FIXTURE_FEATURES
    "],\"threads_hint\":2,\"entries\":{\"main\":{\"arguments\":[{\"name\":\"positions\",\"kind\":"
    "\"input\"," TENSOR "}],\"bound\":[],\"results\":[{" TENSOR
    ",\"alias\":null}],\"arena_bytes\":64,"
    "\"liveness_bound\":64,\"calls\":[{\"kernel\":\"k\",\"kind\":\"nest\",\"locs\":[[\"a.py\",3,"
    "\"f\"]],"
    "\"flops\":6,\"bytes\":48,\"serial\":false,\"schedule\":{}}],\"asserts\":[\"x is negative\"]}},"
    "\"fallbacks\":[]}";

static const WeftEntry entries[] = {{"main", run, 64, 8, 2, 0, 1}};

__attribute__((visibility("default")))
const WeftArtifact weft_artifact = {WEFT_ABI_MAGIC, FIXTURE_VERSION, sizeof(WeftArtifact), 1,
                                    entries,        manifest,        sizeof(manifest) - 1};

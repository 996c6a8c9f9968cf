/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The contract between compiled code and whoever calls it, in plain C. An artifact is a
 * shared object that exports one symbol, `weft_artifact`. It owns nothing at run time:
 * memory, threads and the host's services come in through WeftContext. */
#ifndef WEFT_RUNTIME_ABI_H
#define WEFT_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_MAGIC 0x54464557u /* "WEFT" */
#define WEFT_ABI_VERSION 2u
#define WEFT_ARTIFACT_SYMBOL "weft_artifact"

/* What an entry returns; positive values number the failed `weft.assert` from 1. */
enum WeftStatus { WEFT_OK = 0, WEFT_HOST_FAILED = -1 };

enum WeftDType {
  WEFT_F64 = 0,
  WEFT_F32,
  WEFT_BF16,
  WEFT_F16,
  WEFT_I64,
  WEFT_I32,
  WEFT_I16,
  WEFT_I8,
  WEFT_U8,
  WEFT_BOOL /* one byte, 0 or 1 */
};

typedef struct WeftTensor {
  void *data;
  const int64_t *sizes;   /* rank elements */
  const int64_t *strides; /* rank elements, counted in elements */
  int32_t rank;
  int32_t dtype;       /* enum WeftDType */
  int32_t device_type; /* as DLPack numbers them: 1 is the CPU */
  int32_t device_id;
} WeftTensor;

typedef struct WeftContext WeftContext;
struct WeftContext {
  uint32_t struct_size;
  uint32_t flags;
  /* Arguments, then bound tensors, then results, as the signature lists them. Compiled
   * code reads only `data` of each. */
  const WeftTensor *tensors;
  /* At least the entry's arena_bytes, 64-byte aligned; private to the call. Zeroed before the
   * first call that uses it; calls leave in it what later ones count on. */
  char *arena;
  /* Every thread of the team waits until all have come. Null when threads == 1. */
  void (*barrier)(WeftContext *context, int32_t thread);
  /* Run fallback number `index` (see the manifest). Called by thread 0 alone. Returns
   * WEFT_OK, or WEFT_HOST_FAILED with the reason kept by the host. */
  int32_t (*fallback)(WeftContext *context, int32_t index, const WeftTensor *inputs,
                      int32_t num_inputs, const WeftTensor *outputs, int32_t num_outputs);
  /* Profiling, or null: thread 0 has finished call number `index` of the entry. */
  void (*mark)(WeftContext *context, int32_t index);
  /* The team's verdict of an assert or fallback, written by thread 0, read after a barrier. */
  int32_t status;
  int32_t stage; /* which stage of the entry to run */
  void *host;    /* the caller's own */
};

/* Every thread of the team calls the entry with one context and its own number, once for each
 * stage. Stages of even numbers are the team's; those of odd ones call fallbacks and are thread
 * 0's alone (threads == 1), so that the team's threads are free for what these start. A status
 * that is not WEFT_OK ends the call. */
typedef int32_t (*WeftEntryFunction)(WeftContext *context, int32_t thread, int32_t threads);

typedef struct WeftEntry {
  const char *name; /* "main", "bind" */
  WeftEntryFunction function;
  uint64_t arena_bytes;
  int32_t max_threads; /* a larger team would only wait */
  int32_t num_tensors;
  int32_t first_stage; /* 1 where nothing precedes a fallback */
  int32_t end_stage;   /* one more than the last */
} WeftEntry;

typedef struct WeftArtifact {
  uint32_t magic;
  uint32_t version;
  uint32_t struct_size;
  uint32_t num_entries;
  const WeftEntry *entries;
  const char *manifest; /* JSON: signature, kernels, fallbacks, asserts, CPU features */
  uint64_t manifest_size;
} WeftArtifact;

#ifdef __cplusplus
}
#endif

#endif

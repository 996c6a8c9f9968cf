/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The contract between compiled code and its caller, in plain C. An artifact is a shared
 * object that exports one symbol, `weft_artifact`. It owns nothing at run time: memory,
 * threads and services of the host are passed in through WeftContext. */
#ifndef WEFT_RUNTIME_ABI_H
#define WEFT_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_MAGIC 0x54464557u /* "WEFT" */
#define WEFT_ABI_VERSION 2u
#define WEFT_ARTIFACT_SYMBOL "weft_artifact"

/* The result of an entry; a positive value is the number of a failed `weft.assert`, from 1. */
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
  int32_t device_type; /* DLPack's numbers: 1 is the CPU */
  int32_t device_id;
} WeftTensor;

typedef struct WeftContext WeftContext;
struct WeftContext {
  uint32_t struct_size;
  uint32_t flags;
  /* Arguments, then bound tensors, then results, as the signature lists them. Compiled
   * code reads only `data` of each. */
  const WeftTensor *tensors;
  /* At least the entry's arena_bytes, 64-byte aligned; private to the call. Zeroed before its
   * first use; the caller leaves it alone between calls, as counters in it persist. */
  char *arena;
  /* Waits until every thread of the team has arrived. Null if threads == 1. */
  void (*barrier)(WeftContext *context, int32_t thread);
  /* Runs fallback number `index` (see the manifest). Called by thread 0 only. Returns
   * WEFT_OK, or WEFT_HOST_FAILED, in which case the host keeps the reason. */
  int32_t (*fallback)(WeftContext *context, int32_t index, const WeftTensor *inputs,
                      int32_t num_inputs, const WeftTensor *outputs, int32_t num_outputs);
  /* Profiling, or null: called when thread 0 has finished call number `index` of the entry. */
  void (*mark)(WeftContext *context, int32_t index);
  /* A WeftStatus, written by thread 0 after asserts and fallbacks, read after a barrier. */
  int32_t status;
  int32_t stage; /* stage of the entry to run */
  void *host;    /* opaque, of the caller */
};

/* Each thread of the team calls the entry once per stage, with the shared context and its own
 * number. Even stages run on the whole team; odd stages call fallbacks and run on thread 0 only
 * (threads == 1), so that the other threads are free for parallel regions of the fallbacks. A
 * status other than WEFT_OK ends the call. */
typedef int32_t (*WeftEntryFunction)(WeftContext *context, int32_t thread, int32_t threads);

typedef struct WeftEntry {
  const char *name; /* its role: "main", "bind" */
  WeftEntryFunction function;
  uint64_t arena_bytes;
  int32_t max_threads; /* further threads would only wait */
  int32_t num_tensors;
  int32_t first_stage; /* 1 if the entry begins with a fallback */
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a te kernel for C: a shared object, and a header with a function that calls it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from string import Template

from weft.te.tensors import Tensor

_C_TYPES = {
    "bool": "unsigned char",
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bfloat16": "uint16_t",
    "float16": "uint16_t",
    "float32": "float",
    "float64": "double",
}

# The structures are those of runtime/Abi.h, whose version the loader checks.
_HEADER = Template("""\
/* $name: $summary
 *
$formulas
 *
 * C99, POSIX. `${name}_load(path)` opens the shared object, once; `$name(...)` then computes on the
 * calling thread. Both return 0, or -1: the file cannot be used, or there is no memory. Arrays are
 * compact, row-major and aligned for their elements; results overlap nothing. Not to be called
 * by two threads at once. Link with -ldl where the C library wants it. */
#ifndef WEFT_TE_${upper}_H
#define WEFT_TE_${upper}_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
$declaration
#ifndef WEFT_TE_ABI
#define WEFT_TE_ABI
struct weft_te_tensor {
  void *data;
  const int64_t *sizes, *strides;
  int32_t rank, dtype, device_type, device_id;
};
struct weft_te_context {
  uint32_t struct_size, flags;
  const struct weft_te_tensor *tensors;
  char *arena;
  void (*barrier)(struct weft_te_context *, int32_t);
  int32_t (*fallback)(struct weft_te_context *, int32_t, const struct weft_te_tensor *, int32_t,
                      const struct weft_te_tensor *, int32_t);
  void (*mark)(struct weft_te_context *, int32_t);
  int32_t status, stage;
  void *host;
};
struct weft_te_entry {
  const char *name;
  int32_t (*function)(struct weft_te_context *, int32_t thread, int32_t threads);
  uint64_t arena_bytes;
  int32_t max_threads, num_tensors, first_stage, end_stage;
};
struct weft_te_artifact {
  uint32_t magic, version, struct_size, num_entries;
  const struct weft_te_entry *entries;
  const char *manifest;
  uint64_t manifest_size;
};
#endif

static const struct weft_te_entry *${name}_entry;
static char *${name}_arena;

static inline int ${name}_load(const char *path) {
  /* Of the largest numbers sin, cos, tan and remainders are the C library's. */
  void *math = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const struct weft_te_artifact *artifact =
      library ? (const struct weft_te_artifact *)dlsym(library, "weft_artifact") : 0;
  char *memory;
  (void)math; /* null where the C library itself has them */
${permission}  if (!artifact || artifact->magic != 0x54464557u || artifact->version != 2u ||
      artifact->num_entries != 1 || artifact->entries[0].num_tensors != $count)
    return -1;
  memory = (char *)calloc(artifact->entries[0].arena_bytes + 128, 1);
  if (!memory)
    return -1;
  ${name}_arena = memory + (64 - (uintptr_t)memory % 64);
  ${name}_entry = &artifact->entries[0];
  return 0;
}

static inline int $name($parameters) {
$shapes
  const struct weft_te_tensor tensors[$count] = {
$tensors
  };
  struct weft_te_context context;
  if (!${name}_entry)
    return -1;
  memset(&context, 0, sizeof context);
  context.struct_size = sizeof context;
  context.tensors = tensors;
  context.arena = ${name}_arena;
  for (context.stage = ${name}_entry->first_stage; context.stage < ${name}_entry->end_stage;
       ++context.stage)
    if (${name}_entry->function(&context, 0, 1))
      return -1;
  return 0;
}

#endif
""")
# Linux grants the state of the matrix unit to a process that asks for it: ARCH_REQ_XCOMP_PERM for
# XFEATURE_XTILE_DATA.
_DECLARATION = "#include <sys/syscall.h>\nextern long syscall(long, ...);\n"
_PERMISSION = """\
  if (syscall(SYS_arch_prctl, 0x1023L, 18L))
    return -1;
"""
# Names by the numbers of WeftDType.
_NUMBERS = "float64 float32 bfloat16 float16 int64 int32 int16 int8 uint8 bool".split()


def export(name: str, args: Sequence[Tensor], module: str, folder: str | Path) -> tuple[Path, Path]:
    """Writes `NAME.so` and `NAME.h` into the folder, which must exist. Returns their paths."""
    from weft.ir import Module

    shared, header = Path(folder) / f"{name}.so", Path(folder) / f"{name}.h"
    Module.parse(module, stage="linalg").compile(shared)
    header.write_text(header_text(name, args, "llvm.x86.ldtilecfg" in module), "utf-8")
    return shared, header


def header_text(name: str, args: Sequence[Tensor], uses_matrix_unit: bool = False) -> str:
    # The entry takes its inputs before its results.
    ordered = [each for each in args if each.op.body is None]
    ordered += [each for each in args if each.op.body is not None]
    names = {each: each.name.replace(".", "_") for each in args}
    parameters = ", ".join(
        f"{'const ' if each.op.body is None else ''}{_C_TYPES[each.dtype]} *{names[each]}"
        for each in args
    )
    return _HEADER.substitute(
        name=name,
        upper=name.upper(),
        summary=f"a kernel on {', '.join(names.values())}.",
        formulas="\n".join(f" *   {each!r}" for each in args),
        count=len(ordered),
        declaration=_DECLARATION if uses_matrix_unit else "",
        permission=_PERMISSION if uses_matrix_unit else "",
        parameters=parameters,
        shapes="\n".join(_shape(each, n) for n, each in enumerate(ordered)),
        tensors="\n".join(
            f"      {{(void *){names[each]}, sizes{n}, strides{n}, {each.ndim}, "
            f"{_NUMBERS.index(each.dtype)}, 1, 0}},"
            for n, each in enumerate(ordered)
        ),
    )


def _shape(tensor: Tensor, number: int) -> str:
    sizes = list(tensor.shape) or [1]
    strides = [prod(tensor.shape[dim + 1 :]) for dim in range(tensor.ndim)] or [1]
    lines = [
        f"  static const int64_t {what}{number}[] = {{{', '.join(map(str, values))}}};"
        for what, values in (("sizes", sizes), ("strides", strides))
    ]
    return "\n".join(lines)

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the parts of weft._compiler share.
#ifndef WEFT_PYTHON_BINDINGS_COMPILER_H
#define WEFT_PYTHON_BINDINGS_COMPILER_H

#include "compiler/Driver/Api.h"
#include <atomic>
#include <functional>
#include <nanobind/nanobind.h>
#include <string>

/// Options that are not given keep their defaults; one that is unknown is an error.
weft::api::Options parseOptions(const nanobind::dict &dict);

/// The outcome's text; throws CompileError or OutputError.
std::string textOrThrow(weft::api::Outcome outcome);

/// Runs `work` on a thread of its own, while this one looks after signals: a Python handler
/// that raises, as Ctrl-C's does, sets `cancelled` and its exception comes out of here.
/// Expects the GIL; `work` runs without it.
weft::api::Outcome runInterruptibly(std::atomic<bool> &cancelled,
                                    const std::function<weft::api::Outcome()> &work);

#endif

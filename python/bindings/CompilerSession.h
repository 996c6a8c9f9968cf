// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft._compiler.Session: compiler/Driver/Session.h for Python.
#ifndef WEFT_PYTHON_BINDINGS_COMPILERSESSION_H
#define WEFT_PYTHON_BINDINGS_COMPILERSESSION_H

#include "python/bindings/Compiler.h"

/// Defines the class in `module`.
void bindSession(nanobind::module_ &module);

#endif

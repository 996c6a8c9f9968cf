// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Running.h"

namespace weft::capture {

static int running = 0;
static long started = 0;
static thread_local int own = 0;
static thread_local long ownStarted = 0;

Running::Running() { ++running, ++own, ++started, ++ownStarted; }
Running::~Running() { --running, --own; }

PyObject *runningPrograms(PyObject *, PyObject *) { return PyLong_FromLong(running - own); }

PyObject *startedPrograms(PyObject *, PyObject *) { return PyLong_FromLong(started - ownStarted); }

} // namespace weft::capture

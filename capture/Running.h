// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which threads run programs. While one of them replays a call, of which it puts back what the call
// has changed, the others start none (observe/turns.py). All of this is guarded by the GIL.
#ifndef WEFT_CAPTURE_RUNNING_H
#define WEFT_CAPTURE_RUNNING_H

#include <Python.h>

namespace weft::capture {

/// Marks that this thread runs a program.
class Running {
public:
  Running();
  ~Running();
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;
};

/// Whether no program may be started.
bool programsAreClosed();

/// close_programs(closed): sets that. Programs that are called then do not stand for the call.
PyObject *closePrograms(PyObject *, PyObject *closed);
/// running_programs(): how many programs other threads run.
PyObject *runningPrograms(PyObject *, PyObject *);
/// started_programs(): how many programs other threads have started.
PyObject *startedPrograms(PyObject *, PyObject *);

} // namespace weft::capture

#endif

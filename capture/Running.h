// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which threads run programs: what they write meanwhile, no replay of this thread's call can know
// (observe/other_threads.py). All of this is guarded by the GIL.
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

/// running_programs(): how many programs other threads run.
PyObject *runningPrograms(PyObject *, PyObject *);
/// started_programs(): how many programs other threads have started.
PyObject *startedPrograms(PyObject *, PyObject *);

} // namespace weft::capture

#endif

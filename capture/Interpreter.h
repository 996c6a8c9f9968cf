// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What observing needs of a CPython version's frames, dictionaries and types. Interpreter311.cpp is
// the only file that knows their layout; another version of CPython is another such file.
#ifndef WEFT_CAPTURE_INTERPRETER_H
#define WEFT_CAPTURE_INTERPRETER_H

#include <Python.h>

#include <cstdint>
#include <span>
#include <vector>

namespace weft::capture::interpreter {

/// An instruction ahead of its execution as the compiler wrote it: not specialised, and with its
/// whole argument.
struct Instruction {
  int opcode;
  int argument;
  int offset; // its offset in the code
};

Instruction instruction(PyFrameObject *frame);
/// The instruction that the frame executes now.
int offset(PyFrameObject *frame);
/// The instructions behind the current one, as far as there are any and `next` has room. Returns
/// how many.
size_t following(PyFrameObject *frame, std::span<Instruction> next);
/// All instructions of the code.
std::vector<Instruction> instructions(PyCodeObject *code);

/// The values on the frame's stack, the top last, at an opcode event. Borrowed.
std::span<PyObject *const> stack(PyFrameObject *frame);

/// Puts another object, a new reference, in the place of the one that is so far below the top.
void replace(PyFrameObject *frame, size_t below, PyObject *object);
/// An int or float of the same value at an address of its own, which no other object has. New
/// reference, or null with an error set.
PyObject *ownNumber(PyObject *number);

/// The frame's locals, cells and free variables. Borrowed; entries may be null.
std::span<PyObject *const> locals(PyFrameObject *frame);
/// Whether local `i` is a cell that the frame made itself.
bool isOwnCell(PyFrameObject *frame, size_t i);

/// The namespace that a class body fills. Borrowed; null for the frame of a function.
PyObject *namespaceOf(PyFrameObject *frame);

PyCodeObject *code(PyFrameObject *frame);
/// The function whose call the frame is. Borrowed.
PyObject *function(PyFrameObject *frame);
PyObject *globals(PyFrameObject *frame);
PyObject *builtins(PyFrameObject *frame);
PyFrameObject *caller(PyFrameObject *frame);
/// Whether C code called, rather than the interpreter's own CALL.
bool enteredFromC(PyFrameObject *frame);

/// Whether releasing a suspended generator runs none of its code: no handler is around the place
/// where it waits, nor around those of the generators that it waits for.
bool closesQuietly(PyObject *generator);
/// Whether releasing the generator may run code, wherever it waits.
bool mayRunOnClosing(PyObject *generator);
/// Whether a generator has begun and not ended.
bool isSuspended(PyObject *generator);
/// What made a generator that has not begun, as a tuple of its function, a tuple of the positional
/// arguments and a dict of the keyword arguments; null if it has begun. New reference.
PyObject *callOfGenerator(PyObject *generator);

/// Turns opcode events, without line events, on or off for this frame.
void watch(PyFrameObject *frame, bool opcodes);

/// Whether a trace function is installed on this thread.
bool traced();
/// Whether this is the trace function that is installed on this thread.
bool tracedBy(Py_tracefunc function);
/// False with a Python error set.
bool install(Py_tracefunc function);
void remove();

/// A call of a function in Python whose frame is about to run. The frame is no generator's and no
/// class body's.
struct Call {
  PyObject *function;
  std::span<PyObject *const> locals; // its arguments, in the order of the code's variables
  void *thread, *frame;
  /// Runs the frame.
  PyObject *run() const;
};
/// Decides about a call: gives what the call gives, a new reference, or null with an error set.
using OnCall = PyObject *(*)(const Call &call);
/// From now on the function is asked about every call in this process that nobody traces; null:
/// nobody is asked.
void onCalls(OnCall asked);
/// From now on `function` is the trace function of those frames whose code `isTraced` accepts, and
/// no other frame has one. It replaces this thread's trace function and is never removed: for a
/// process of its own.
void traceFrames(bool (*isTraced)(PyCodeObject *code), Py_tracefunc function);
/// Is in effect around an observation, on any thread: frames that are asked about look as if C had
/// called them.
void observes(bool begins);

uint64_t dictVersion(PyObject *dict);
/// The instance's `__dict__`, made if there is none yet; null if it can have none. Borrowed.
PyObject *instanceDict(PyObject *object);
/// The tag of the type's attributes; 0 while it has none.
unsigned typeVersion(PyTypeObject *type);
/// The attribute as the method resolution order finds it, borrowed; null if nothing does.
PyObject *typeLookup(PyTypeObject *type, PyObject *name);

} // namespace weft::capture::interpreter

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interface to CPython 3.11: frames keep a valid stack pointer at opcode events, execution is
// not specialised while they are traced, and every dict state has a tag that is unique in the
// process (PEP 509).
#define Py_BUILD_CORE
#define NEED_OPCODE_TABLES
#include "capture/Interpreter.h"

#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_opcode.h>
#include <opcode.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "frames are read as CPython 3.11 keeps them"
#endif

namespace weft::capture::interpreter {

static _PyInterpreterFrame *data(PyFrameObject *frame) { return frame->f_frame; }

/// Reads the instruction at `at`, and leaves `at` at the instruction's last unit.
static Instruction read(PyCodeObject *code, const _Py_CODEUNIT *&at) {
  auto offset = static_cast<int>(at - _PyCode_CODE(code));
  int opcode = _PyOpcode_Deopt[_Py_OPCODE(*at)], argument = _Py_OPARG(*at);
  while (opcode == EXTENDED_ARG) {
    ++at;
    opcode = _PyOpcode_Deopt[_Py_OPCODE(*at)];
    argument = argument << 8 | _Py_OPARG(*at);
  }
  return {opcode, argument, offset};
}

// An instruction with a prefix has one event, at the prefix.
Instruction instruction(PyFrameObject *frame) {
  const _Py_CODEUNIT *at = data(frame)->prev_instr;
  return read(data(frame)->f_code, at);
}

int offset(PyFrameObject *frame) {
  return static_cast<int>(data(frame)->prev_instr - _PyCode_CODE(data(frame)->f_code));
}

size_t following(PyFrameObject *frame, std::span<Instruction> next) {
  const _Py_CODEUNIT *at = data(frame)->prev_instr;
  PyCodeObject *code = data(frame)->f_code;
  const _Py_CODEUNIT *end = _PyCode_CODE(code) + Py_SIZE(code);
  size_t count = 0;
  for (int opcode = read(code, at).opcode; count < next.size(); ++count) {
    at += 1 + _PyOpcode_Caches[opcode];
    if (at >= end)
      break;
    next[count] = read(code, at);
    opcode = next[count].opcode;
  }
  return count;
}

std::vector<Instruction> instructions(PyCodeObject *code) {
  std::vector<Instruction> all;
  const _Py_CODEUNIT *at = _PyCode_CODE(code), *end = at + Py_SIZE(code);
  for (; at < end; at += 1 + _PyOpcode_Caches[all.back().opcode])
    all.push_back(read(code, at));
  return all;
}

std::span<PyObject *const> stack(PyFrameObject *frame) {
  _PyInterpreterFrame *inner = data(frame);
  int base = inner->f_code->co_nlocalsplus;
  if (inner->stacktop < base)
    return {};
  return {inner->localsplus + base, static_cast<size_t>(inner->stacktop - base)};
}

void replace(PyFrameObject *frame, size_t below, PyObject *object) {
  _PyInterpreterFrame *inner = data(frame);
  PyObject **place = inner->localsplus + inner->stacktop - 1 - below;
  Py_XSETREF(*place, object);
}

// CPython shares small ints, so that one with an address of its own has to be made by hand.
PyObject *ownNumber(PyObject *number) {
  if (PyFloat_CheckExact(number))
    return PyFloat_FromDouble(PyFloat_AS_DOUBLE(number));
  auto *original = reinterpret_cast<PyLongObject *>(number);
  Py_ssize_t digits = Py_ABS(Py_SIZE(original));
  PyLongObject *copy = _PyLong_New(digits);
  if (!copy)
    return nullptr;
  for (Py_ssize_t i = 0; i < digits; ++i)
    copy->ob_digit[i] = original->ob_digit[i];
  Py_SET_SIZE(copy, Py_SIZE(original));
  return reinterpret_cast<PyObject *>(copy);
}

std::span<PyObject *const> locals(PyFrameObject *frame) {
  _PyInterpreterFrame *inner = data(frame);
  return {inner->localsplus, static_cast<size_t>(inner->f_code->co_nlocalsplus)};
}

bool isOwnCell(PyFrameObject *frame, size_t i) {
  PyObject *kinds = data(frame)->f_code->co_localspluskinds;
  return _PyLocals_GetKind(kinds, static_cast<int>(i)) & CO_FAST_CELL;
}

PyObject *namespaceOf(PyFrameObject *frame) {
  bool body = !(data(frame)->f_code->co_flags & CO_OPTIMIZED);
  return body ? data(frame)->f_locals : nullptr;
}

PyCodeObject *code(PyFrameObject *frame) { return data(frame)->f_code; }
PyObject *function(PyFrameObject *frame) {
  return reinterpret_cast<PyObject *>(data(frame)->f_func);
}
PyObject *globals(PyFrameObject *frame) { return data(frame)->f_globals; }
PyObject *builtins(PyFrameObject *frame) { return data(frame)->f_builtins; }

PyFrameObject *caller(PyFrameObject *frame) {
  PyFrameObject *back = PyFrame_GetBack(frame);
  Py_XDECREF(back); // the frame that runs below holds a reference
  return back;
}

bool enteredFromC(PyFrameObject *frame) { return data(frame)->is_entry; }

bool closesQuietly(PyObject *generator) {
  auto *code = reinterpret_cast<PyGenObject *>(generator)->gi_code;
  PyObject *inner = PyObject_GetAttrString(generator, "gi_yieldfrom");
  PyErr_Clear();
  bool quiet = inner == Py_None || (inner && PyGen_CheckExact(inner) && closesQuietly(inner));
  Py_XDECREF(inner);
  return quiet && PyBytes_GET_SIZE(code->co_exceptiontable) == 0;
}

bool mayRunOnClosing(PyObject *generator) {
  PyCodeObject *code = reinterpret_cast<PyGenObject *>(generator)->gi_code;
  return PyBytes_GET_SIZE(code->co_exceptiontable) != 0;
}

bool isSuspended(PyObject *generator) {
  int state = reinterpret_cast<PyGenObject *>(generator)->gi_frame_state;
  return state == FRAME_SUSPENDED || state == FRAME_EXECUTING;
}

PyObject *callOfGenerator(PyObject *generator) {
  auto *made = reinterpret_cast<PyGenObject *>(generator);
  if (made->gi_frame_state != FRAME_CREATED)
    return nullptr;
  auto *frame = reinterpret_cast<_PyInterpreterFrame *>(made->gi_iframe);
  PyCodeObject *code = frame->f_code;
  int count = code->co_argcount, named = code->co_kwonlyargcount, next = count + named;
  auto argument = [&](int i) { // the frame may have put the argument into a cell
    PyObject *local = frame->localsplus[i];
    bool cell = _PyLocals_GetKind(code->co_localspluskinds, i) & CO_FAST_CELL;
    return cell && local ? PyCell_GET(local) : local;
  };
  PyObject *all = PyList_New(0), *keywords = PyDict_New();
  bool whole = all && keywords;
  for (int i = 0; whole && i < count; ++i)
    whole = argument(i) && PyList_Append(all, argument(i)) == 0;
  for (int i = count; whole && i < count + named; ++i)
    whole = argument(i) && PyDict_SetItem(keywords, PyTuple_GET_ITEM(code->co_localsplusnames, i),
                                          argument(i)) == 0;
  if (whole && code->co_flags & CO_VARARGS) {
    PyObject *rest = argument(next++);
    whole = rest && PyList_SetSlice(all, count, count, rest) == 0;
  }
  if (whole && code->co_flags & CO_VARKEYWORDS)
    whole = argument(next) && PyDict_Update(keywords, argument(next)) == 0;
  PyObject *positional = whole ? PyList_AsTuple(all) : nullptr;
  PyObject *call = positional ? PyTuple_Pack(3, frame->f_func, positional, keywords) : nullptr;
  Py_XDECREF(positional);
  Py_XDECREF(keywords);
  Py_XDECREF(all);
  PyErr_Clear();
  return call;
}

void watch(PyFrameObject *frame, bool opcodes) {
  frame->f_trace_opcodes = opcodes;
  frame->f_trace_lines = !opcodes;
}

bool traced() { return PyThreadState_Get()->c_tracefunc != nullptr; }
bool tracedBy(Py_tracefunc function) { return PyThreadState_Get()->c_tracefunc == function; }
bool install(Py_tracefunc function) {
  // Without an object, sys.gettrace() stays None.
  return _PyEval_SetTrace(PyThreadState_Get(), function, nullptr) == 0;
}
void remove() { _PyEval_SetTrace(PyThreadState_Get(), nullptr, nullptr); }

static OnCall asked = nullptr;
static _PyFrameEvalFunction inner = nullptr; // the function that was installed before ours

static PyObject *evaluateInside(PyThreadState *thread, _PyInterpreterFrame *frame, int throws) {
  return (inner ? inner : _PyEval_EvalFrameDefault)(thread, frame, throws);
}

static PyObject *evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throws) {
  constexpr int kinds = CO_OPTIMIZED | CO_NEWLOCALS | CO_GENERATOR | CO_COROUTINE |
                        CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  PyCodeObject *code = frame->f_code;
  if (!asked || throws || thread->cframe->use_tracing ||
      (code->co_flags & kinds) != (CO_OPTIMIZED | CO_NEWLOCALS))
    return evaluateInside(thread, frame, throws);
  size_t count = static_cast<size_t>(code->co_argcount + code->co_kwonlyargcount) +
                 (code->co_flags & CO_VARARGS ? 1 : 0) + (code->co_flags & CO_VARKEYWORDS ? 1 : 0);
  return asked(
      {reinterpret_cast<PyObject *>(frame->f_func), {frame->localsplus, count}, thread, frame});
}

PyObject *Call::run() const {
  return evaluateInside(static_cast<PyThreadState *>(thread),
                        static_cast<_PyInterpreterFrame *>(frame), 0);
}

static int observing = 0;

static void settleCalls() {
  // Another function may have been installed above ours, and calls it.
  static bool installed = false;
  PyInterpreterState *interpreter = PyInterpreterState_Get();
  _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  bool wanted = asked && !observing;
  installed = installed && now != _PyEval_EvalFrameDefault;
  if (wanted && !installed) {
    inner = now == _PyEval_EvalFrameDefault ? nullptr : now;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    installed = true;
  } else if (!wanted && now == evaluate) {
    _PyInterpreterState_SetEvalFrameFunc(interpreter, inner ? inner : _PyEval_EvalFrameDefault);
    installed = false;
  }
}

void onCalls(OnCall function) {
  asked = function;
  settleCalls();
}

static bool (*isTraced)(PyCodeObject *) = nullptr;
static Py_tracefunc traceFunction = nullptr;
// The function that was installed before `evaluateTraced`.
static _PyFrameEvalFunction untraced = nullptr;

static PyObject *evaluateTraced(PyThreadState *thread, _PyInterpreterFrame *frame, int throws) {
  bool traces = isTraced(frame->f_code);
  Py_tracefunc outer = thread->c_tracefunc;
  uint8_t outerTraces = thread->cframe->use_tracing;
  thread->c_tracefunc = traces ? traceFunction : nullptr;
  thread->cframe->use_tracing = traces ? 255 : 0;
  PyObject *value = untraced(thread, frame, throws);
  thread->c_tracefunc = outer;
  thread->cframe->use_tracing = outerTraces;
  return value;
}

void traceFrames(bool (*wanted)(PyCodeObject *), Py_tracefunc function) {
  PyInterpreterState *interpreter = PyInterpreterState_Get();
  isTraced = wanted;
  traceFunction = function;
  untraced = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluateTraced);
}

void observes(bool begins) {
  observing += begins ? 1 : -1;
  settleCalls();
}

uint64_t dictVersion(PyObject *dict) {
  return reinterpret_cast<PyDictObject *>(dict)->ma_version_tag;
}

PyObject *instanceDict(PyObject *object) {
  PyObject **slot = _PyObject_GetDictPtr(object);
  return slot ? *slot : nullptr;
}

unsigned typeVersion(PyTypeObject *type) {
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

PyObject *typeLookup(PyTypeObject *type, PyObject *name) { return _PyType_Lookup(type, name); }

} // namespace weft::capture::interpreter

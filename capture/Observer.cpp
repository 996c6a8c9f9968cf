// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Observer.h"

#include "capture/Plain.h"

#include <algorithm>
#include <exception>
#include <frameobject.h>

namespace weft::capture {

/// The observer of this thread; each thread may observe a call of its own.
static thread_local Observer *active = nullptr;

static int trace(PyObject *, PyFrameObject *frame, int what, PyObject *argument) {
  return active && !active->guardedEvent(frame, what, argument) ? -1 : 0;
}

// Making the call.

/// Collects garbage, and keeps collections out of the call: finalizers of objects that others have
/// released would run within it, on whichever thread is observed.
static void collect(bool again) {
  static int observers = 0;
  static bool collected = false;
  if (!again && observers++ == 0)
    collected = PyGC_Disable();
  else if (again && --observers == 0 && collected)
    PyGC_Enable();
}

void Observer::run(PyObject *target, PyObject *args, PyObject *kwargs) {
  if (active || interpreter::traced())
    values.fail("another tracer is installed on this thread");
  else if (!Tensors::get())
    return;
  else if (enterCall(target, args, kwargs) && !interpreter::install(trace))
    return;
  if (givenArgs)
    args = givenArgs.get();
  if (givenKwargs)
    kwargs = givenKwargs.get();
  bool observing = !values.failed();
  ahead = true;
  if (!observing && refuses())
    return;
  if (observing) {
    active = this;
    collect(false);
    interpreter::observes(true);
  }
  observation.value = PyRef::steal(PyObject_Call(target, args, kwargs));
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  if (observing) {
    interpreter::observes(false);
    if (!over && !interpreter::tracedBy(trace))
      values.fail("another tracer was installed");
    stop();
    active = nullptr;
  }
  if (!observation.value)
    values.fail("the call raised an error");
  else if (!values.failed())
    finishRun(observation.value.get());
  observation.reason = reason();
  PyErr_Restore(type, error, traceback);
}

bool Observer::finishRun(PyObject *value) {
  if (values.leavesGeneratorOpen())
    return values.fail("leaves a generator open");
  if (!contexts.empty())
    return values.fail("leaves a context variable set");
  if (!silent.empty())
    return values.fail("leaves filters of warnings set");
  if (values.externalWasWritten())
    return values.fail("writes to a tensor from outside");
  std::optional<Form> output = values.form(value);
  if (!output)
    return false;
  values.guardTargets();
  log.finish(std::move(*output));
  return true;
}

void Observer::stop() {
  if (over)
    return;
  over = true;
  for (Frame &each : frames)
    if (each.frame)
      interpreter::watch(each.frame, false);
  frames.clear();
  collect(true);
  if (interpreter::tracedBy(trace))
    interpreter::remove();
}

// Events of the interpreter.

/// No C++ exception may pass through the interpreter. An exception that the program has raised
/// stays set; functions that are called here may raise one of their own, which is cleared.
bool Observer::guardedEvent(PyFrameObject *frame, int what, PyObject *argument) noexcept {
  bool goesOn = true;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  try {
    event(frame, what, argument);
  } catch (const std::exception &thrown) {
    values.fail(std::string("observing failed: ") + thrown.what());
  }
  PyErr_Clear();
  if (values.failed() && !over) {
    if (observation.location.empty())
      observation.location = here();
    stop();
    goesOn = !refuses();
  }
  if (goesOn)
    PyErr_Restore(type, error, traceback);
  return goesOn;
}

/// Why no program stands for the call; empty if one may.
std::string Observer::reason() const {
  static const std::string hint = "weft.compile_step";
  const std::string &why = values.reason();
  bool trains = !accumulated.empty() && !why.empty() && why.find(hint) == why.npos;
  return trains ? why + ": behind gradients that the call fills, which " + hint + " compiles" : why;
}

/// Whether the call is broken off, with the error set. The caller restores torch's random numbers
/// and modes.
bool Observer::refuses() {
  observation.reason = reason();
  auto acts = [](const Record &each) { return each.changes || each.tells; };
  if (!refusal || !ahead || observation.passes || !observation.snapshots.empty() ||
      std::ranges::any_of(log.all(), acts))
    return false;
  PyRef told =
      PyRef::steal(Py_BuildValue("ss", observation.reason.c_str(), observation.location.c_str()));
  if (told)
    PyErr_SetObject(refusal, told.get());
  return true;
}

void Observer::event(PyFrameObject *frame, int what, PyObject *argument) {
  if (over)
    return;
  ahead = what == PyTrace_CALL;
  if (what == PyTrace_CALL) {
    enterFrame(frame);
  } else if (what == PyTrace_OPCODE) {
    ++observation.opcodes;
    Frame &at = current(frame);
    finish(at);
    ahead = !values.failed();
    if (!ahead)
      return;
    interpreter::Instruction instruction = interpreter::instruction(frame);
    if (opcode(at, instruction))
      fixOperands(at, instruction.opcode, instruction.argument);
  } else if (what == PyTrace_RETURN) {
    if (frames.size() > 1 && frames.back().frame == frame && argument &&
        !(interpreter::code(frame)->co_flags & CO_GENERATOR))
      returns(frame, argument);
    interpreter::watch(frame, false);
    if (frames.size() > 1 && frames.back().frame == frame) {
      frames.pop_back();
      frames.back().pending.foreign |= frames.back().pending.through != nullptr;
    }
  } else if (what == PyTrace_EXCEPTION && !isForeign(frame)) {
    bool known = false, through = false;
    for (const Frame &each : frames) {
      known |= each.frame == frame;
      through |= each.pending.through != nullptr;
    }
    if (through && !known) {
      values.fail("an error goes through code that is not observed");
      return;
    }
    Frame &at = current(frame);
    if (appends(at.pending.then))
      values.fail(at.pending.what + " raised an error");
    at.pending = {};
    values.takePushed(nullptr);
    if (PyTuple_Check(argument) && PyTuple_GET_ITEM(argument, 0) == PyExc_GeneratorExit &&
        interpreter::code(frame)->co_flags & CO_GENERATOR && frames.size() > 1 &&
        !frames[frames.size() - 2].pending.what.ends_with("close"))
      values.fail("lets go of a generator that has not ended");
    PyObject *raised = PyTuple_Check(argument) ? PyTuple_GET_ITEM(argument, 1) : nullptr;
    if (raised && PyExceptionInstance_Check(raised) && !values.find(raised))
      values.enterFresh(raised);
  }
}

/// Handles the return of a function that C may have called for its result.
void Observer::returns(PyFrameObject *frame, PyObject *value) {
  for (const PyRef &each : tested)
    if (each.get() == interpreter::function(frame) && interpreter::enteredFromC(frame) &&
        !isPlain(value))
      values.fail("tests " + shown(value));
  if (!interpreter::enteredFromC(frame) || takesText(frame, value))
    return;
  fixGiven(frame, value);
  yields(value);
}

/// Whether the frame runs within a call whose frames are not observed.
bool Observer::isForeign(PyFrameObject *frame) const {
  return frames.back().pending.foreign && frames.back().frame != frame;
}

Frame &Observer::current(PyFrameObject *frame) {
  // A generator that is thrown into or closed has no event for its call, and a frame that is left
  // by an error has none for its return.
  for (size_t i = frames.size(); i-- > 1;)
    if (frames[i].frame == frame) {
      frames.resize(i + 1);
      return frames[i];
    }
  frames.push_back({frame, PyRef::borrow((PyObject *)frame), {}, nullptr});
  return frames.back();
}

void Observer::enterFrame(PyFrameObject *frame) {
  if (frames.back().pending.keyed && interpreter::enteredFromC(frame) && isOfKey(frame))
    return;
  values.takePushed(nullptr); // loaded numbers were meant for the calling frame
  Pending &outer = frames.back().pending;
  if (outer.backward && interpreter::enteredFromC(frame)) {
    values.fail("a hook or a function in Python runs as it goes backward: " +
                std::string(PyUnicode_AsUTF8(interpreter::code(frame)->co_name)));
    return;
  }
  if (outer.foreign && (!outer.through || outer.through != interpreter::function(frame)))
    return;
  outer.foreign = false;
  bool fromC = interpreter::enteredFromC(frame);
  // After the call: releasing its objects has run code.
  bool again = frames.size() == 1 && outer.entered;
  outer.entered = true;
  if ((fromC && !outer.python) || again) {
    values.fail("Python code ran that nobody had called: " +
                std::string(PyUnicode_AsUTF8(interpreter::code(frame)->co_name)));
    return;
  }
  if (interpreter::code(frame)->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) {
    values.fail("asynchronous code");
    return;
  }
  bool collects = outer.yields == Pending::Yields::Collected;
  if (fromC && appends(outer.then) && !collects && !outer.nested) {
    if (!outer.slot) {
      values.fail(isWithinCheckpoint() ? "a checkpoint that records gradients"
                                       : outer.what + " called Python code");
      return;
    }
    outer.then = Then::Usable; // the operations within it are logged instead
  }
  PyObject *function = interpreter::function(frame);
  if (!enterFunction(function))
    return;
  if (function == operators().enterInference || function == operators().leaveInference) {
    setsInference(function, interpreter::locals(frame));
    return;
  }
  if (function == operators().enterProfile || function == operators().leaveProfile) {
    outer.foreign = profiles(interpreter::locals(frame));
    return;
  }
  if (function == operators().enterFilters || function == operators().leaveFilters) {
    outer.foreign = setsFilters(function, interpreter::locals(frame));
    return;
  }
  PyCodeObject *code = interpreter::code(frame);
  std::span<PyObject *const> locals = interpreter::locals(frame);
  size_t keywords = static_cast<size_t>(code->co_argcount + code->co_kwonlyargcount) +
                    (code->co_flags & CO_VARARGS ? 1 : 0);
  for (size_t i = 0; i < locals.size(); ++i) {
    PyObject *local = locals[i];
    if (!local)
      continue;
    // The interpreter makes these objects at each call: cells, and the dict of **keywords.
    if (PyCell_Check(local) && interpreter::isOwnCell(frame, i)) {
      if (!values.find(local))
        values.enterFresh(local);
      local = PyCell_GET(local);
    }
    if (i == keywords && code->co_flags & CO_VARKEYWORDS && local && PyDict_CheckExact(local) &&
        !values.find(local))
      values.enterFresh(local);
  }
  PyTypeObject *makes = outer.then == Then::Instance ? outer.type : outer.context;
  if (makes && !locals.empty() && locals[0] && Py_TYPE(locals[0]) == makes &&
      !values.find(locals[0]))
    values.enterFresh(locals[0]); // the object that type.__call__ has just made
  interpreter::watch(frame, true);
  frames.push_back({frame, PyRef::borrow((PyObject *)frame), {}, nullptr});
}

/// The function's code runs. Guards its identity, defaults and cells.
bool Observer::enterFunction(PyObject *function) {
  const Value *known = values.find(function);
  if (known && known->origin == Origin::Fresh)
    return true;
  std::string name = nameOf(function);
  if (!known && !values.pin(function, name))
    return false;
  auto *made = (PyFunctionObject *)function;
  guards.function(function);
  if (made->func_defaults && !values.pin(made->func_defaults, name + ".__defaults__"))
    return false;
  if (PyObject *defaults = made->func_kwdefaults) {
    PyObject *key, *value;
    if (!values.pin(defaults, name + ".__kwdefaults__"))
      return false;
    for (Py_ssize_t at = 0; PyDict_Next(defaults, &at, &key, &value);)
      if (!values.readKey(defaults, key))
        return false;
  }
  for (Py_ssize_t i = 0; made->func_closure && i < PyTuple_GET_SIZE(made->func_closure); ++i)
    if (!values.pin(PyTuple_GET_ITEM(made->func_closure, i), name + ".__closure__"))
      return false;
  return true;
}

std::string Observer::textOf(const Pending &pending) {
  if (!pending.what.empty())
    return pending.what;
  if (pending.attribute)
    return std::string("the attribute ") + PyUnicode_AsUTF8(pending.attribute) +
           " of an object of " + pending.type->tp_name;
  return pending.callable ? nameOf(pending.callable.get()) : "an opcode";
}

void Observer::finish(Frame &frame) {
  Pending &pending = frame.pending;
  takeNumber(frame);
  if (pending.then == Then::Nothing) {
    pending.reset();
    return;
  }
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  PyObject *top = stack.empty() ? Py_None : stack.back();
  if (pending.cached) {
    endCached(frame, top);
    pending.reset();
    return;
  }
  switch (pending.then) {
  case Then::Nothing:
    break;
  case Then::Python:
    if (!pending.entered) {
      values.fail(textOf(pending));
      break;
    }
    [[fallthrough]];
  case Then::Usable:
    if (pending.reduced)
      enterReduced(top);
    if (!values.isUsable(top))
      values.fail(textOf(pending) + " gave " + shown(top) + " of unknown origin");
    break;
  case Then::Plain:
    if (!isPlain(top))
      values.fail(textOf(pending) + " gave " + shown(top));
    break;
  case Then::Instance:
    if (Py_TYPE(top) == pending.type && !values.isUsable(top))
      values.enterFresh(top);
    else if (!values.isUsable(top))
      values.fail(textOf(pending) + " gave " + shown(top) + " of unknown origin");
    break;
  case Then::Made:
    enterMade(top);
    break;
  case Then::Class:
    if (PyType_Check(top))
      values.enterClass(top);
    else
      values.fail(textOf(pending) + " gave " + shown(top));
    break;
  case Then::Stepped: {
    PyObject *part =
        PyTuple_CheckExact(top) && PyTuple_GET_SIZE(top) == 2 ? PyTuple_GET_ITEM(top, 1) : top;
    bool group = std::string_view(Py_TYPE(part)->tp_name) == "itertools._grouper";
    if ((group || isMatch(part)) && !values.find(part))
      values.enterFresh(part);
    break;
  }
  case Then::Added: {
    PyObject *operands[] = {pending.added.first.get(), pending.added.second.get(), top};
    if ((!isPlain(top) && !values.enterFresh(top)) ||
        !effect(frame, operators().setItem, operands, nullptr) || !appendRecord(frame, Py_None))
      values.fail(textOf(pending) + " gave " + shown(top));
    break;
  }
  case Then::Window:
    windows.push_back({PyRef::borrow(top), pending.added.first, pending.added.second, log.size()});
    break;
  case Then::Star: {
    PyObject *list = stack[stack.size() - 1 - static_cast<size_t>(pending.count)];
    if (!values.find(list))
      values.enterFresh(list);
    break;
  }
  case Then::Fresh:
    if (!values.isUsable(top))
      values.enterFresh(top);
    if (pending.signature)
      enterSignature(top);
    if (pending.plainMaps)
      plainMaps.push_back(PyRef::borrow(top));
    if (pending.maps)
      maps.push_back(PyRef::borrow(top));
    if (PyAnySet_Check(top) || PyDict_Check(top))
      haveKeys(top);
    break;
  case Then::Append:
    if (!pending.texts.empty())
      values.fail(textOf(pending) + " has asked for no text");
    if (pending.extended)
      endExtension(pending);
    appendRecord(frame, ownResult(frame, top));
    if (pending.memo)
      enterMemo(pending.memo);
    break;
  case Then::Stored:
    appendRecord(frame, Py_None);
    break;
  case Then::Items: {
    PyRef items = PyRef::steal(PyTuple_New(pending.count));
    for (int i = 0; items && i < pending.count; ++i)
      PyTuple_SET_ITEM(items.get(), i, Py_NewRef(stack[stack.size() - 1 - i]));
    if (items)
      appendRecord(frame, items.get());
    break;
  }
  }
  pending.reset();
}

/// Enters what a function has made of plain values, with all that it holds.
void Observer::enterMade(PyObject *object) {
  if (isPlain(object) || values.find(object) || !values.enterFresh(object))
    return;
  for (Py_ssize_t i = 0; PyList_CheckExact(object) && i < PyList_GET_SIZE(object); ++i)
    enterMade(PyList_GET_ITEM(object, i));
  for (Py_ssize_t i = 0; PyTuple_CheckExact(object) && i < PyTuple_GET_SIZE(object); ++i)
    enterMade(PyTuple_GET_ITEM(object, i));
  PyObject *key, *item;
  for (Py_ssize_t at = 0; PyDict_CheckExact(object) && PyDict_Next(object, &at, &key, &item);)
    enterMade(item);
}

/// The line of the innermost frame that is neither torch's nor Weft's, as "model.py:12".
std::string Observer::here() {
  static constexpr std::string_view foreign[] = {"/torch/", "/weft/observe/through.py"};
  for (size_t i = frames.size(); i-- > 1;) {
    PyFrameObject *frame = frames[i].frame;
    std::string file = PyUnicode_AsUTF8(interpreter::code(frame)->co_filename);
    auto isIn = [&](std::string_view each) { return file.find(each) != file.npos; };
    if (i > 1 && std::ranges::any_of(foreign, isIn))
      continue;
    return file + ":" + std::to_string(PyFrame_GetLineNumber(frame));
  }
  return "";
}

} // namespace weft::capture

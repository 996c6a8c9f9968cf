// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call tells the user by printing, warning and logging, and which warnings it suppresses.
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>

namespace weft::capture {

bool Observer::tells(Frame &frame, PyObject *callable, std::vector<PyRef> arguments,
                     PyObject *names) {
  if (nodes)
    return values.fail("an autograd.Function with gradients prints or warns");
  if (!contexts.empty()) // the stream that is written to may read the variable
    return values.fail("prints or warns while a context variable is set");
  Record record;
  record.callable = PyRef::borrow(callable);
  record.names = PyRef::borrow(names);
  record.tells = true;
  for (PyRef &each : arguments) {
    Form form;
    form.object = std::move(each);
    record.arguments.push_back(std::move(form));
  }
  frame.pending.record = std::move(record);
  frame.pending.foreign = true;
  return expect(frame, Then::Append, true, nameOf(callable));
}

bool Observer::tellsContents(PyObject *object) {
  if (isTensor(object)) {
    guardMethods(object, {"__str__", "__repr__", "__format__"});
    return true;
  }
  if (capture::isPlain(object)) {
    guardNames(object);
    return !PyType_Check(object) || Py_TYPE(object) == &PyType_Type;
  }
  bool dict = PyDict_CheckExact(object);
  if (!(dict || PyTuple_CheckExact(object) || PyList_CheckExact(object)) ||
      !values.isUsable(object) || !values.readWhole(object))
    return false;
  for (Py_ssize_t i = 0; !dict && i < Py_SIZE(object); ++i)
    if (!tellsContents(itemAt(object, i).get()))
      return false;
  PyObject *key, *item;
  for (Py_ssize_t at = 0; dict && PyDict_Next(object, &at, &key, &item);)
    if (!tellsContents(key) || !tellsContents(item))
      return false;
  return true;
}

bool Observer::prints(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  std::vector<PyRef> all;
  std::vector<std::pair<size_t, Form>> forms; // parts that may be different in each call
  std::vector<size_t> texts;                  // texts that methods in Python give
  PyObject *teller = nullptr;
  for (PyObject *each : arguments) {
    size_t at = all.size();
    if (capture::isPlain(each) && (nodes || !values.mayDiffer(each))) {
      if (!isPlain(each))
        return values.fail("prints " + shown(each));
      all.push_back(PyRef::borrow(each));
      continue;
    }
    all.push_back(PyRef::borrow(Py_None));
    if (PyObject *method = nodes ? nullptr : tellerOf(each);
        method && (!teller || teller == method)) {
      teller = method;
      texts.push_back(at);
      continue;
    }
    if (nodes || !(values.mayDiffer(each) || tellsContents(each)))
      return values.fail("prints " + shown(each));
    std::optional<Form> form = values.form(each);
    if (!form)
      return false;
    if (!capture::isPlain(each)) {
      Record record;
      record.callable = PyRef::borrow((PyObject *)&PyUnicode_Type);
      record.arguments.push_back(std::move(*form));
      record.outcome.kind = Outcome::Made;
      record.outcome.index = log.newResult();
      record.location = here();
      form = Form(); // a text, with its present value
      form->kind = Form::Result;
      form->index = record.outcome.index;
      log.append(std::move(record));
    }
    forms.emplace_back(at, std::move(*form));
  }
  if (!tells(frame, callable, std::move(all), names))
    return false;
  for (auto &[argument, form] : forms)
    frame.pending.record.arguments[argument] = std::move(form);
  if (!texts.empty()) {
    frame.pending.nested = true;
    frame.pending.through = teller;
    frame.pending.texts = std::move(texts);
  }
  return true;
}

bool Observer::takesText(PyFrameObject *frame, PyObject *value) {
  Pending *taker = frames.size() > 1 ? &frames[frames.size() - 2].pending : nullptr;
  if (!taker || taker->texts.empty() || taker->through != interpreter::function(frame))
    return false;
  std::optional<Form> text = PyUnicode_CheckExact(value) ? values.form(value) : std::nullopt;
  if (!text) {
    values.fail("prints what gives " + shown(value));
  } else {
    taker->record.arguments[taker->texts.front()] = std::move(*text);
    taker->texts.erase(taker->texts.begin());
  }
  return true;
}

/// torch.profiler.record_function is entered or left, which a replay does not do.
bool Observer::profiles(std::span<PyObject *const> locals) {
  PyObject *self = locals.empty() ? nullptr : locals[0];
  return (self && values.isFresh(self)) ||
         values.fail("profiles by an object that it has not made");
}

static bool isImporting(PyFrameObject *frame) {
  const char *file = PyUnicode_AsUTF8(interpreter::code(frame)->co_filename);
  std::string_view name = file ? file : "";
  return name.find("importlib") != name.npos && name.find("_bootstrap") != name.npos;
}

/// warnings.warn, which finds the warning's line on the stack. A replay is told the line.
bool Observer::warns(Frame &frame, Arguments arguments, PyObject *names) {
  PyObject *given[] = {nullptr, nullptr, nullptr}; // message, category, stacklevel
  static const char *const parameters[] = {"message", "category", "stacklevel"};
  size_t positional = arguments.size() - (names ? PyTuple_GET_SIZE(names) : 0);
  bool known = positional <= 3;
  for (size_t i = 0; known && i < arguments.size(); ++i) {
    size_t at = i;
    for (at = i < positional ? i : 0; i >= positional && at < 3; ++at)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i - positional),
                                           parameters[at]) == 0)
        break;
    known = at < 3;
    if (known)
      given[at] = arguments[i];
  }
  PyObject *category = given[1] && given[1] != Py_None ? given[1] : PyExc_UserWarning;
  long level = given[2] ? PyLong_Check(given[2]) ? PyLong_AsLong(given[2]) : -1 : 1;
  if (!silent.empty())
    return silent.back() ? (frame.pending.foreign = expect(frame, Then::Plain, true, "warn"))
                         : values.fail("warns while it has set filters of warnings");
  if (!known || !given[0] || !PyUnicode_CheckExact(given[0]) || !PyType_Check(category) ||
      level < 1)
    return values.fail("warns in a way that is not observed");
  size_t at = frames.size() - 1;
  while (at > 0 && frames[at].frame != frame.frame)
    --at;
  for (bool internal = isImporting(frame.frame); --level > 0 && at > 0;)
    for (--at; !internal && at > 0 && isImporting(frames[at].frame);)
      --at;
  if (at == 0)
    return values.fail("warns of a line outside of the call");
  PyFrameObject *told = frames[at].frame;
  std::vector<PyRef> all;
  all.push_back(PyRef::borrow(given[0]));
  all.push_back(PyRef::borrow(category));
  all.push_back(PyRef::borrow(interpreter::code(told)->co_filename));
  all.push_back(PyRef::steal(PyLong_FromLong(PyFrame_GetLineNumber(told))));
  all.push_back(PyRef::borrow(interpreter::globals(told)));
  return tells(frame, operators().warn, std::move(all), nullptr);
}

/// Logger._log, which finds the message's line in the same way.
bool Observer::logs(Frame &frame, Arguments arguments, PyObject *names) {
  PyObject *logger = arguments.size() >= 4 ? arguments[0] : nullptr;
  if (!logger || arguments.size() != 4 || names || !values.isExternal(logger))
    return values.fail("logs in a way that is not observed");
  std::vector<Form> told; // the message and its arguments
  for (PyObject *each : arguments.subspan(2))
    if (std::optional<Form> form = capture::isPlain(each) ? values.form(each) : std::nullopt)
      told.push_back(std::move(*form));
    else
      return values.fail("logs " + shown(each));
  size_t at = frames.size() - 1;
  PyObject *own = interpreter::code(frame.frame)->co_filename;
  while (at > 0 && PyUnicode_Compare(interpreter::code(frames[at].frame)->co_filename, own) == 0)
    --at;
  if (at == 0)
    return values.fail("logs a line outside of the call");
  PyCodeObject *code = interpreter::code(frames[at].frame);
  std::vector<PyRef> all;
  for (PyObject *each : arguments)
    all.push_back(PyRef::borrow(each));
  all.push_back(PyRef::borrow(code->co_filename));
  all.push_back(PyRef::steal(PyLong_FromLong(PyFrame_GetLineNumber(frames[at].frame))));
  all.push_back(PyRef::borrow(code->co_name));
  if (!isPlain(arguments[1]) || !tells(frame, operators().log, std::move(all), nullptr))
    return false;
  std::ranges::move(told, frame.pending.record.arguments.begin() + 2);
  return true;
}

// Filters of warnings. A replay also sets those that the call sets within warnings.catch_warnings.

static bool isIgnore(PyObject *action) {
  return PyUnicode_Check(action) && PyUnicode_CompareWithASCIIString(action, "ignore") == 0;
}

/// `filter` is an action, a category, a line, and whether it comes after all others; or None.
static bool isSilentFilter(PyObject *filter) {
  return PyTuple_Check(filter) && PyTuple_GET_SIZE(filter) == 4 &&
         isIgnore(PyTuple_GET_ITEM(filter, 0)) && PyTuple_GET_ITEM(filter, 1) == PyExc_Warning &&
         PyObject_Not(PyTuple_GET_ITEM(filter, 2)) == 1 &&
         PyObject_Not(PyTuple_GET_ITEM(filter, 3)) == 1;
}

bool Observer::setsFilters(PyObject *function, std::span<PyObject *const> locals) {
  static PyObject *const filter = PyUnicode_InternFromString("_filter");
  static PyObject *const record = PyUnicode_InternFromString("_record");
  PyObject *self = locals.empty() ? nullptr : locals[0];
  PyObject *dict = self && values.isFresh(self) ? interpreter::instanceDict(self) : nullptr;
  PyObject *set = dict ? PyDict_GetItemWithError(dict, filter) : nullptr;
  bool enters = function == operators().enterFilters;
  if (nodes || !set || !isPlain(set) || PyDict_GetItemWithError(dict, record) != Py_False ||
      (!enters && silent.empty()))
    return values.fail("records warnings, or catches them in a way that is not observed");
  if (!values.pin(operators().pushFilters, "warnings.catch_warnings"))
    return false;
  if (enters)
    silent.push_back(isSilentFilter(set));
  else
    silent.pop_back();
  return logContext(operators().pushFilters, operators().popFilters, set, enters, filters);
}

bool Observer::filtersWarnings(Frame &frame, PyObject *callable, Arguments arguments,
                               PyObject *names) {
  if (silent.empty() || nodes)
    return values.fail("sets the filters of warnings for good");
  for (PyObject *each : arguments)
    if (!isPlain(each))
      return values.fail("filters warnings by " + shown(each));
  silent.back() = !names && arguments.size() == 1 && isIgnore(arguments[0]);
  return asks(frame, callable, arguments, names);
}

} // namespace weft::capture

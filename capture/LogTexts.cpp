// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A log as text, for people.
#include "capture/Log.h"

#include "capture/Plain.h"

namespace weft::capture {

static std::string textOf(const Form &form) {
  std::string inner;
  for (size_t i = 0; i < form.parts.size(); ++i)
    inner += (i ? ", " : "") + textOf(form.parts[i]);
  switch (form.kind) {
  case Form::Constant:
    return shown(form.object.get());
  case Form::Register:
    return "a" + std::to_string(form.index);
  case Form::Result:
    return "%" + std::to_string(form.index);
  case Form::Tuple:
    return "(" + inner + ")";
  case Form::List:
    return "[" + inner + "]";
  case Form::Dict:
    return "{" + inner + "}";
  case Form::Slice:
    return "slice(" + inner + ")";
  case Form::Instance:
  case Form::Subclass:
  case Form::Called:
    return std::string(reinterpret_cast<PyTypeObject *>(form.object.get())->tp_name) + "(" + inner +
           ")";
  }
  return "";
}

static std::string textOf(const Outcome &outcome) {
  switch (outcome.kind) {
  case Outcome::Tensor:
    return "%" + std::to_string(outcome.index) + ": " + outcome.facts[0].text();
  case Outcome::Made:
    return "%" + std::to_string(outcome.index);
  case Outcome::Array:
    return "%" + std::to_string(outcome.index) + ": array " + shown(outcome.object.get());
  case Outcome::Same:
    return textOf(outcome.same);
  case Outcome::Plain:
    return outcome.free
               ? "%" + std::to_string(outcome.index) + ": " + Py_TYPE(outcome.object.get())->tp_name
               : shown(outcome.object.get());
  case Outcome::Sequence:
    break;
  }
  std::string inner;
  for (size_t i = 0; i < outcome.parts.size(); ++i)
    inner += (i ? ", " : "") + textOf(outcome.parts[i]);
  return "(" + inner + ")";
}

static std::string nameOf(PyObject *callable) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  const char *text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  std::string made = text ? text : Py_TYPE(callable)->tp_name;
  PyErr_Clear();
  return made;
}

std::vector<std::string> Log::texts() const {
  std::vector<std::string> lines;
  for (const Record &record : records) {
    std::string text = textOf(record.outcome) + " = " +
                       (record.callable ? nameOf(record.callable.get()) : "") + "(";
    Py_ssize_t names = record.names ? PyTuple_GET_SIZE(record.names.get()) : 0;
    size_t positional = record.arguments.size() - names;
    for (size_t i = 0; i < record.arguments.size(); ++i) {
      text += i ? ", " : "";
      if (i >= positional)
        text += std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(
                    record.names.get(), static_cast<Py_ssize_t>(i - positional)))) +
                "=";
      text += textOf(record.arguments[i]);
    }
    lines.push_back(text + ")  # " + record.location);
  }
  lines.push_back("return " + textOf(output));
  return lines;
}

} // namespace weft::capture

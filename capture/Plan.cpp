// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Plan.h"

namespace weft::capture {

template <typename Part> static PyRef partsOf(const std::vector<Part> &parts) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  for (size_t i = 0; tuple && i < parts.size(); ++i) {
    PyObject *part = viewOf(parts[i]).release();
    if (!part)
      return {};
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), part);
  }
  return tuple;
}

static PyObject *orNone(const PyRef &object) { return object ? object.get() : Py_None; }

PyRef viewOf(const Form &form) {
  switch (form.kind) {
  case Form::Constant:
    return PyRef::steal(Py_BuildValue("sO", "constant", form.object.get()));
  case Form::Register:
    return PyRef::steal(Py_BuildValue("si", "register", form.index));
  case Form::Result:
    return PyRef::steal(Py_BuildValue("si", "result", form.index));
  case Form::Tuple:
  case Form::List:
  case Form::Dict:
  case Form::Slice:
  case Form::Instance:
  case Form::Subclass:
  case Form::Called:
    break;
  }
  PyRef parts = partsOf(form.parts);
  if (!parts)
    return {};
  if (form.kind == Form::Tuple)
    return PyRef::steal(Py_BuildValue("sOO", "tuple", orNone(form.object), parts.get()));
  if (form.kind == Form::Instance || form.kind == Form::Subclass || form.kind == Form::Called)
    return PyRef::steal(Py_BuildValue("sOO", "instance", form.object.get(), parts.get()));
  if (form.kind == Form::Slice)
    return PyRef::steal(Py_BuildValue("sO", "slice", parts.get()));
  const char *kind = form.kind == Form::List ? "list" : "dict";
  return PyRef::steal(Py_BuildValue("siO", kind, form.index, parts.get()));
}

static PyRef viewOf(const Outcome &outcome) {
  switch (outcome.kind) {
  case Outcome::Tensor:
    return PyRef::steal(Py_BuildValue("si", "tensor", outcome.index));
  case Outcome::Made:
    return PyRef::steal(Py_BuildValue("si", "made", outcome.index));
  case Outcome::Array:
    return PyRef::steal(Py_BuildValue("si", "array", outcome.index));
  case Outcome::Plain:
    if (outcome.index >= 0)
      return PyRef::steal(
          Py_BuildValue("si", outcome.free ? "number" : "known number", outcome.index));
    return PyRef::steal(Py_BuildValue("sO", "plain", outcome.object.get()));
  case Outcome::Same: {
    PyRef same = viewOf(outcome.same);
    return PyRef::steal(same ? Py_BuildValue("sO", "same", same.get()) : nullptr);
  }
  case Outcome::Sequence:
    break;
  }
  PyRef parts = partsOf(outcome.parts);
  return PyRef::steal(parts ? Py_BuildValue("sOO", "sequence", outcome.object.get(), parts.get())
                            : nullptr);
}

PyRef viewOf(const Record &record) {
  PyRef arguments = partsOf(record.arguments), outcome = viewOf(record.outcome);
  if (!arguments || !outcome)
    return {};
  return PyRef::steal(Py_BuildValue("OOOOsOO", orNone(record.callable), arguments.get(),
                                    orNone(record.names), outcome.get(), record.location.c_str(),
                                    record.changes ? Py_True : Py_False,
                                    record.tells ? Py_True : Py_False));
}

} // namespace weft::capture

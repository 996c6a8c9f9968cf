// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients within a call: torch.autograd.grad and backward, each of which is one operation of
// torch's engine, and their effects on tensors. A replay builds an autograd graph of its own for
// them.
#include "capture/Observer.h"

#include "capture/Imported.h"
#include "capture/Plain.h"

#include <algorithm>

namespace weft::capture {

/// The attribute of TensorBase with that name, in C.
static PyObject *ofTensors(const char *name) {
  PyRef base = imported("torch._C", "TensorBase");
  PyObject *found = base ? PyObject_GetAttrString(base.get(), name) : nullptr;
  PyErr_Clear();
  return found;
}

static bool hasGradient(PyObject *tensor) {
  std::optional<TensorFacts> facts = TensorFacts::of(tensor);
  return facts && facts->gradient();
}

static bool isLeaf(PyObject *tensor) {
  std::optional<TensorFacts> facts = TensorFacts::of(tensor);
  return facts && facts->isLeaf();
}

/// Guards that the tensor has no hooks, which would run Python code within the backward.
bool Observer::readHooks(PyObject *tensor) {
  static PyObject *const hooks = ofTensors("_backward_hooks"), *const later = ofTensors(
                                                                   "_post_accumulate_grad_hooks");
  return hooks && later && values.readMember(tensor, hooks, "_backward_hooks") &&
         values.readMember(tensor, later, "_post_accumulate_grad_hooks");
}

bool Observer::changesGradient(PyObject *tensor) {
  static PyObject *const name = PyUnicode_InternFromString("grad"), *const gradient =
                                                                        ofTensors("grad");
  if (!values.isExternal(tensor) ||
      std::ranges::any_of(accumulated, [&](const PyRef &each) { return each.get() == tensor; }))
    return true;
  if (!gradient || !values.readMember(tensor, gradient, "grad") || !keepState(tensor, name))
    return false;
  accumulated.push_back(PyRef::borrow(tensor));
  return true;
}

bool Observer::goesBackward(Frame &frame, Arguments arguments, PyObject *names) {
  Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  if (nodes || arguments.size() != 7 || named < 1 || named > 2 ||
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, named - 1), "accumulate_grad") != 0)
    return values.fail("goes backward in a way that is not observed");
  bool accumulates = arguments[6] == Py_True, recorded = arguments[3] == Py_True;
  if (accumulates && recorded)
    return values.fail("accumulates gradients that have gradients");
  for (const PyRef &each : values.externalTensors()) {
    if (!hasGradient(each.get()))
      continue;
    if (!readHooks(each.get()))
      return false;
    // If a replay failed later, the graph behind such a tensor would be differentiated a second
    // time.
    if (!isLeaf(each.get()))
      return values.fail("goes backward through a tensor from outside that is no leaf");
    if (accumulates && !changesGradient(each.get()))
      return false;
  }
  if (!operation(frame, operators().runBackward, arguments, names))
    return false;
  frame.pending.record.changes = accumulates;
  frame.pending.foreign = frame.pending.backward = true;
  return true;
}

/// Notes after a backward that it has added to existing gradients.
void Observer::noteGradients() {
  static PyObject *const gradient = ofTensors("grad");
  for (const PyRef &each : accumulated)
    if (PyRef now = gradient ? memberOf(gradient, each.get()) : PyRef(); now && isTensor(now.get()))
      values.noteWritten(now.get());
}

/// Reads the attribute `grad`. If the call has changed it, reading is an operation.
bool Observer::gradient(Frame &frame, PyObject *tensor, PyObject *name) {
  static PyObject *const gradient = ofTensors("grad");
  if (!gradient || !isLeaf(tensor))
    return values.fail("reads the gradient of what is no leaf");
  bool changed =
      std::ranges::any_of(accumulated, [&](const PyRef &each) { return each.get() == tensor; });
  if (values.isExternal(tensor) && !changed)
    return values.readMember(tensor, gradient, "grad") &&
           expect(frame, Then::Usable, false, "grad");
  PyObject *arguments[] = {tensor, name};
  return operation(frame, operators().getAttribute, arguments, nullptr);
}

/// Sets `grad` or `requires_grad`.
bool Observer::setsGradient(Frame &frame, PyObject *tensor, PyObject *name, PyObject *value) {
  bool flag = PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0;
  if (nodes || !value || !(flag ? PyBool_Check(value) : value == Py_None || isTensor(value)) ||
      (flag && !isLeaf(tensor)))
    return values.fail("sets " + shown(name) + " of a tensor");
  guardMethods(tensor, {"__setattr__", flag ? "requires_grad" : "grad"});
  PyObject *arguments[] = {tensor, value};
  PyObject *setter = flag ? operators().setRequiresGradient : operators().setGradient;
  if (!(flag ? !values.isExternal(tensor) || keepState(tensor, name) : changesGradient(tensor)) ||
      !effect(frame, setter, arguments, nullptr))
    return false;
  if (!flag && !values.isExternal(tensor))
    return values.fail("sets the gradient of a tensor that it has made");
  return expect(frame, Then::Stored, false, "setting a gradient");
}

bool Observer::requiresGradient(Frame &frame, PyObject *callable, Arguments arguments,
                                PyObject *names) {
  static PyObject *const name = PyUnicode_InternFromString("requires_grad");
  PyObject *tensor = arguments.empty() ? nullptr : arguments[0];
  if (nodes || !tensor || !isTensor(tensor))
    return values.fail("asks for gradients of what is no leaf");
  if (!isLeaf(tensor)) {
    // A tensor that was computed with gradients requires them already, so that this has no effect.
    if (names || arguments.size() > 2 || (arguments.size() == 2 && arguments[1] != Py_True))
      return values.fail("asks for gradients of what is no leaf");
    return expect(frame, Then::Usable, false, "requires_grad_");
  }
  if (values.isExternal(tensor) && !keepState(tensor, name))
    return false;
  if (!operation(frame, callable, arguments, names))
    return false;
  frame.pending.record.changes = values.isExternal(tensor);
  return true;
}

} // namespace weft::capture

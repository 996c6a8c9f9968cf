// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of autograd.Function. Without gradients the operations of its forward are logged like any
// others. With gradients the call is a single operation, so that its own backward belongs to the
// result: what the forward reads is guarded, and it may change nothing outside of itself.
#include "capture/Observer.h"

#include "capture/Plain.h"

namespace weft::capture {

bool Observer::callFunction(Frame &frame, PyObject *bound, Arguments arguments, PyObject *names) {
  PyObject *owner = PyCFunction_GET_SELF(bound);
  if (!PyType_Check(owner))
    return values.fail("applies no class");
  auto *type = (PyTypeObject *)owner;
  PyObject *context = nullptr;
  for (const char *each : {"forward", "setup_context", "_backward_cls"}) {
    PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
    context = interpreter::typeLookup(type, name.get());
    guards.typeItem(type, name.get(), context);
  }
  if (!context || !PyType_Check(context))
    return values.fail("applies " + std::string(type->tp_name) + ", which has no backward");
  PyRef enabled = PyRef::steal(PyObject_CallNoArgs(operators().isGradEnabled));
  bool node = false;
  for (PyObject *each : arguments)
    if (std::optional<TensorFacts> facts = isTensor(each) ? TensorFacts::of(each) : std::nullopt)
      node |= enabled.get() == Py_True && facts->gradient();
  if (!node && enabled.get() == Py_True)
    for (PyObject *each : arguments)
      node |= isTensor(each); // other tensors that the forward reads could have gradients
  if (!node)
    expect(frame, Then::Usable, true, type->tp_name);
  else if (nodes || !operation(frame, bound, arguments, names))
    return values.fail("an autograd.Function within another");
  frame.pending.context = (PyTypeObject *)context;
  frame.pending.nested = frame.pending.node = node;
  if (node) {
    ++nodes;
    nodeBegin = log.size();
    nodeResults = log.results();
  }
  return true;
}

/// The forward has returned. The operations within belong to the single operation.
bool Observer::endNode() {
  --nodes;
  for (size_t i = nodeBegin; i < log.size(); ++i) {
    const Outcome &outcome = log.all()[i].outcome;
    if (outcome.kind == Outcome::Plain && outcome.object.get() != Py_None)
      return values.fail("an autograd.Function with gradients reads data");
  }
  log.cut(nodeBegin);
  values.forgetResults(nodeResults);
  settings.clear();
  return true;
}

/// Whether this sets an attribute by which a forward tells its context about itself.
bool Observer::isContextSetting(PyObject *object, PyObject *name) {
  if (!values.isFresh(object) || !PyObject_TypeCheck(object, (PyTypeObject *)operators().context))
    return false;
  for (const char *each : {"to_save", "dirty_tensors", "non_differentiable", "materialize_grads",
                           "needs_input_grad", "saved_for_forward"})
    if (PyUnicode_CompareWithASCIIString(name, each) == 0)
      return true;
  return false;
}

} // namespace weft::capture

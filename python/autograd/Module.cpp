// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The Python module weft._autograd: `interface`, a capsule for weft._core, `StepBackward`, the type
// of the nodes as Python sees them, and `separate_results` for those that Python has made. It may
// only be imported into a process with the very torch that it was built for.
#include "python/autograd/ResultNode.h"
#include "python/autograd/StepNode.h"

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_variable.h>

namespace weft::autograd {

static PyObject *distributedDataParallel; // the class, alive as long as torch

/// Whether somebody waits for the gradients of single tensors (backward_segments.py).
static bool areAwaited(const Step &step, std::span<PyObject *const> inputs) {
  if (step.wrt.size() < 2)
    return false;
  static PyObject *name = PyUnicode_InternFromString("_active_ddp_module");
  THPObjectPtr active(PyObject_GetAttr(distributedDataParallel, name));
  if (!active)
    PyErr_Clear();
  if (active.get() != Py_None)
    return true;
  return std::ranges::any_of(step.wrt, [inputs](size_t number) {
    PyObject *hooks = reinterpret_cast<THPVariable *>(inputs[number])->post_accumulate_grad_hooks;
    return hooks && (!PyDict_Check(hooks) || PyDict_GET_SIZE(hooks) > 0);
  });
}

static bool isPlainCall(const Step &step, std::span<PyObject *const> inputs) {
  return !torch::autograd::AnomalyMode::is_enabled() &&
         at::SavedTensorDefaultHooks::get_tls_state().stack.empty() &&
         std::ranges::all_of(inputs,
                             [](PyObject *input) {
                               const at::Tensor &tensor = THPVariable_Unpack(input);
                               return isPlain(tensor) && !tensor.is_inference();
                             }) &&
         !areAwaited(step, inputs);
}

static void recordCall(const Step &step, const Recorded &call) {
  auto node = c10::make_intrusive<StepNode>(step, call);
  for (size_t place : step.places)
    torch::autograd::set_history(THPVariable_Unpack(call.shown[place]), node);
  node->save(call);
  if (step.places.size() > 1)
    for (size_t place : step.places)
      ResultNode::putAhead(THPVariable_Unpack(call.shown[place]));
}

static bool tryRecordCall(const Step &step, const Recorded &call) {
  HANDLE_TH_ERRORS
  recordCall(step, call);
  return true;
  END_HANDLE_TH_ERRORS_RET(false)
}

static PyObject *separateResults(PyObject *, PyObject *results) {
  HANDLE_TH_ERRORS
  THPObjectPtr items(PySequence_Fast(results, "expected tensors"));
  if (!items)
    return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    ResultNode::putAhead(THPVariable_Unpack(PySequence_Fast_GET_ITEM(items.get(), i)));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

static const Interface interface{isPlainCall, tryRecordCall};

static bool addContents(PyObject *module) {
  THPObjectPtr parallel(PyImport_ImportModule("torch.nn.parallel.distributed"));
  if (!parallel)
    return false;
  distributedDataParallel = PyObject_GetAttrString(parallel.get(), "DistributedDataParallel");
  THPObjectPtr capsule(PyCapsule_New(const_cast<Interface *>(&interface), interfaceName, nullptr));
  if (!distributedDataParallel || !capsule)
    return false;
  static PyTypeObject type;
  PyTypeObject *made =
      torch::autograd::_initFunctionPyTypeObject(type, "_StepBackward", nullptr, nullptr);
  torch::autograd::registerCppFunction(typeid(StepNode), made);
  torch::autograd::registerCppFunction(typeid(ResultNode), made);
  return !PyModule_AddObjectRef(module, "StepBackward", reinterpret_cast<PyObject *>(made)) &&
         !PyModule_AddObjectRef(module, "interface", capsule.get());
}

} // namespace weft::autograd

PyMODINIT_FUNC PyInit__autograd() {
  static PyMethodDef methods[] = {{"separate_results", weft::autograd::separateResults, METH_O,
                                   "Gives each of these results of one node, the plain tensors of "
                                   "a sequence, a node of its own "
                                   "ahead of that."},
                                  {}};
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "weft._autograd",
                                   "Calls of programs as nodes of autograd's graph.",
                                   -1,
                                   methods,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  PyObject *module = PyModule_Create(&definition);
  if (module && !weft::autograd::addContents(module))
    Py_CLEAR(module);
  return module;
}

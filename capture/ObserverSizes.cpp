// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations whose results have sizes that depend on data. Everything but the values that is read
// of such a tensor is read again by each replay, and compared.
#include "capture/Interpreter.h"
#include "capture/Observer.h"
#include "capture/Plain.h"
#include "capture/Tensors.h"

#include <algorithm>
#include <functional>

namespace weft::capture {

/// Whether `holds` is true for any tensor in the object, also within tuples, lists, dicts and
/// slices.
static bool anyWithin(PyObject *object, const std::function<bool(PyObject *)> &holds) {
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < Py_SIZE(object); ++i)
      if (PyRef item = itemAt(object, i); item && anyWithin(item.get(), holds))
        return true;
    return false;
  }
  if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t place = 0; PyDict_Next(object, &place, &key, &value);)
      if (anyWithin(value, holds))
        return true;
    return false;
  }
  if (PySlice_Check(object)) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    return anyWithin(slice->start, holds) || anyWithin(slice->stop, holds) ||
           anyWithin(slice->step, holds);
  }
  return holds(object);
}

/// Whether the sizes of the function's results depend on the values of tensors, by its name.
static bool countsElements(std::string_view name, size_t arguments) {
  static constexpr std::string_view counting[] = {"nonzero",
                                                  "argwhere",
                                                  "masked_select",
                                                  "unique",
                                                  "_unique",
                                                  "_unique2",
                                                  "unique_dim",
                                                  "unique_consecutive",
                                                  "_unique_consecutive",
                                                  "bincount",
                                                  "combinations",
                                                  "repeat_interleave",
                                                  "tensor_split",
                                                  "one_hot",
                                                  "_pack_padded_sequence",
                                                  "_pad_packed_sequence",
                                                  "lstsq",
                                                  "linalg_lstsq",
                                                  "histogramdd",
                                                  "nonzero_numpy"};
  return std::ranges::find(counting, name) != std::end(counting) ||
         (name == "where" && arguments == 1);
}

bool Observer::sizesDependOnData(PyObject *callable, std::string_view what, Arguments arguments) {
  std::string_view name = what.substr(what.rfind('.') + 1);
  // Nothing is known of functions that are not torch's.
  if (!PyCFunction_Check(callable) && Py_TYPE(callable) != &PyMethodDescr_Type &&
      Py_TYPE(callable) != &PyWrapperDescr_Type && Py_TYPE(callable) != &PyGetSetDescr_Type &&
      !PyType_Check(callable) && !PyFunction_Check(callable) && !PyMethod_Check(callable))
    return true;
  if (countsElements(name, arguments.size()))
    return true;
  bool indexes = name == "__getitem__" || name == "getitem" || name == "index";
  return std::ranges::any_of(arguments, [&](PyObject *argument) {
    return anyWithin(argument, [&](PyObject *each) {
      if (!isTensor(each))
        return false;
      if (values.isDataSized(each))
        return true;
      std::optional<TensorFacts> facts = TensorFacts::of(each);
      return !facts || facts->isCount() || (indexes && facts->isMask());
    });
  });
}

} // namespace weft::capture

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Outputs.h"
#include "python/bindings/Description.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace weft {

Outputs::Outputs(PyObject *description) {
  Py_ssize_t size = PyTuple_Check(description) ? PyTuple_GET_SIZE(description) : 0;
  if (size < 2)
    throw nb::type_error("expected an output's description");
  kind = static_cast<Kind>(nb::cast<int>(nb::handle(PyTuple_GET_ITEM(description, 0))));
  switch (kind) {
  case Result:
  case Slot:
  case Given:
    index = nb::cast<size_t>(nb::handle(PyTuple_GET_ITEM(description, 1)));
    return;
  case Object:
    object = item(description, 1);
    return;
  case View:
    children.emplace_back(PyTuple_GET_ITEM(description, 1));
    sizes = item(description, 2);
    strides = item(description, 3);
    offset = nb::cast<int64_t>(nb::handle(PyTuple_GET_ITEM(description, 4)));
    dtype = item(description, 5);
    return;
  case Tuple:
  case List:
    children = parseChildren<Outputs>(PyTuple_GET_ITEM(description, 1));
    return;
  case Dict:
    object = item(description, 1);
    children = parseChildren<Outputs>(PyTuple_GET_ITEM(description, 2));
    return;
  case Node:
    object = item(description, 1);
    context = item(description, 2);
    children = parseChildren<Outputs>(PyTuple_GET_ITEM(description, 3));
    return;
  case Valid:
    index = nb::cast<size_t>(nb::handle(PyTuple_GET_ITEM(description, 1)));
    sizesSlot = nb::cast<size_t>(nb::handle(PyTuple_GET_ITEM(description, 2)));
    valid.emplace(PyTuple_GET_ITEM(description, 3));
    return;
  case Sized:
    children.emplace_back(PyTuple_GET_ITEM(description, 1));
    sizesSlot = nb::cast<size_t>(nb::handle(PyTuple_GET_ITEM(description, 2)));
    sizedView.emplace(PyTuple_GET_ITEM(description, 3));
    return;
  }
  throw nb::value_error("expected a kind of output");
}

PyRef Outputs::buildList(const std::vector<Outputs> &children, Parts &parts) {
  PyRef list = PyRef::steal(PyList_New(children.size()));
  for (size_t i = 0; list && i < children.size(); ++i) {
    PyRef child = children[i].build(parts);
    if (!child)
      return {};
    PyList_SET_ITEM(list.get(), i, child.release());
  }
  return list;
}

PyRef Outputs::build(const std::vector<PyRef> &results, const std::vector<PyRef> &slots) const {
  Parts parts{results, slots, {}};
  return build(parts);
}

PyRef Outputs::build(Parts &parts) const {
  const auto &[results, slots, done] = parts;
  switch (kind) {
  case Result:
    return results[index];
  case Slot:
    return slots[index];
  case Given:
    return slots[slots.size() - 1 - index];
  case Object:
    return object;
  case View:
    return buildView(parts);
  case List:
    return buildList(children, parts);
  case Tuple: {
    PyRef list = buildList(children, parts);
    return list ? PyRef::steal(PyList_AsTuple(list.get())) : PyRef();
  }
  case Dict:
    return buildDict(parts);
  case Node:
    return buildNode(parts);
  case Valid:
    return buildValid(parts);
  case Sized:
    return buildSizedView(parts);
  }
  return {};
}

PyRef Outputs::buildDict(Parts &parts) const {
  PyRef dict = PyRef::steal(PyDict_New());
  for (size_t i = 0; dict && i < children.size(); ++i) {
    PyRef child = children[i].build(parts);
    if (!child || PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(object.get(), i), child.get()))
      return {};
  }
  return dict;
}

PyRef Outputs::buildValid(Parts &parts) const {
  parts.valid.resize(parts.results.size());
  PyRef &part = parts.valid[index];
  if (!part)
    part = valid->of(parts.results[index].get(), parts.slots[sizesSlot].get());
  return part;
}

PyRef Outputs::buildSizedView(Parts &parts) const {
  PyRef base = children.front().build(parts);
  return base ? sizedView->of(base.get(), parts.slots[sizesSlot].get()) : PyRef();
}

PyRef Outputs::buildNode(Parts &parts) const {
  PyRef list = buildList(children, parts);
  if (!list)
    return {};
  PyObject *arguments[] = {list.get(), context.get()};
  return PyRef::steal(PyObject_Vectorcall(object.get(), arguments, 2, nullptr));
}

// torch makes the view, so that it is one for autograd and for the storage's owner too.
PyRef Outputs::buildView(Parts &parts) const {
  PyRef base = children.front().build(parts);
  if (!base)
    return {};
  try {
    nb::object tensor = nb::borrow(base.get());
    // Types of any width lie in a vector; its length does not matter to as_strided.
    if (dtype.get() != Py_None)
      tensor = tensor
                   .attr("as_strided")(nb::make_tuple(0), nb::make_tuple(1),
                                       tensor.attr("storage_offset")())
                   .attr("view")(nb::handle(dtype.get()));
    int64_t start = nb::cast<int64_t>(tensor.attr("storage_offset")()) + offset;
    nb::object view =
        tensor.attr("as_strided")(nb::handle(sizes.get()), nb::handle(strides.get()), start);
    return PyRef::steal(view.release().ptr());
  } catch (nb::python_error &error) {
    error.restore();
    return {};
  }
}

int Outputs::traverse(visitproc visit, void *arg) const {
  Py_VISIT(object.get());
  Py_VISIT(context.get());
  for (const Outputs &child : children)
    if (int status = child.traverse(visit, arg))
      return status;
  return 0;
}

} // namespace weft

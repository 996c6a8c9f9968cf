// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a session takes and gives, as Python has it: handles are ints, values pairs of ints, types
// and lines tuples, attributes plain objects.
#ifndef WEFT_PYTHON_BINDINGS_SESSIONCASTERS_H
#define WEFT_PYTHON_BINDINGS_SESSIONCASTERS_H

#include "compiler/Driver/Session.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

/// A tensor that is an attribute: bytes of elements in row-major order.
struct Elements {
  std::string dtype;
  std::vector<int64_t> shape;
  nanobind::bytes data;
};

/// An attribute that is no plain value, as MLIR writes it.
struct Syntax {
  std::string text;
};

inline nanobind::object toPython(const weft::api::Datum &datum) {
  namespace nb = nanobind;
  using Kind = weft::api::Datum::Kind;
  switch (datum.kind) {
  case Kind::Unit:
    return nb::none();
  case Kind::Boolean:
    return nb::bool_(datum.integer != 0);
  case Kind::Integer:
    return nb::int_(datum.integer);
  case Kind::Real:
    return nb::float_(datum.real);
  case Kind::Text:
    return nb::str(datum.text.c_str(), datum.text.size());
  case Kind::List: {
    nb::list list;
    for (const weft::api::Datum &item : datum.items)
      list.append(toPython(item));
    return list;
  }
  case Kind::Dictionary: {
    nb::dict dict;
    for (size_t i = 0; i < datum.keys.size(); ++i)
      dict[datum.keys[i].c_str()] = toPython(datum.items[i]);
    return dict;
  }
  case Kind::Elements:
    return nb::cast(
        Elements{datum.text, datum.shape, nb::bytes(datum.bytes.data(), datum.bytes.size())});
  case Kind::Syntax:
    return nb::cast(Syntax{datum.text});
  }
  return nb::none();
}

/// Throws nb::type_error for what no attribute is made of.
inline weft::api::Datum fromPython(nanobind::handle object) {
  namespace nb = nanobind;
  using weft::api::Datum;
  Datum datum;
  if (object.is_none())
    return datum;
  if (PyBool_Check(object.ptr())) {
    datum.kind = Datum::Kind::Boolean;
    datum.integer = nb::cast<bool>(object);
  } else if (PyLong_Check(object.ptr())) {
    datum.kind = Datum::Kind::Integer;
    datum.integer = nb::cast<int64_t>(object);
  } else if (PyFloat_Check(object.ptr())) {
    datum.kind = Datum::Kind::Real;
    datum.real = nb::cast<double>(object);
  } else if (PyUnicode_Check(object.ptr())) {
    datum.kind = Datum::Kind::Text;
    datum.text = nb::cast<std::string>(object);
  } else if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    datum.kind = Datum::Kind::List;
    for (nb::handle item : object)
      datum.items.push_back(fromPython(item));
  } else if (PyDict_Check(object.ptr())) {
    datum.kind = Datum::Kind::Dictionary;
    for (auto [key, item] : nb::borrow<nb::dict>(object)) {
      datum.keys.push_back(nb::cast<std::string>(key));
      datum.items.push_back(fromPython(item));
    }
  } else if (nb::isinstance<Syntax>(object)) {
    datum.kind = Datum::Kind::Syntax;
    datum.text = nb::cast<const Syntax &>(object).text;
  } else if (nb::isinstance<Elements>(object)) {
    const auto &elements = nb::cast<const Elements &>(object);
    datum.kind = Datum::Kind::Elements;
    datum.text = elements.dtype;
    datum.shape = elements.shape;
    datum.bytes.assign(elements.data.c_str(), elements.data.size());
  } else {
    std::string message = "expected a value that an attribute can have, found a ";
    message += Py_TYPE(object.ptr())->tp_name;
    throw nb::type_error(message.c_str());
  }
  return datum;
}

namespace nanobind::detail {

template <> struct type_caster<weft::api::ValueRef> {
  NB_TYPE_CASTER(weft::api::ValueRef, const_name("tuple[int, int]"))
  bool from_python(handle source, uint8_t flags, cleanup_list *cleanup) noexcept {
    make_caster<std::pair<uint64_t, int64_t>> pair;
    if (!pair.from_python(source, flags, cleanup))
      return false;
    auto [owner, index] = static_cast<std::pair<uint64_t, int64_t>>(pair);
    value = {owner, index};
    return true;
  }
  static handle from_cpp(weft::api::ValueRef ref, rv_policy, cleanup_list *) noexcept {
    return nanobind::make_tuple(ref.owner, ref.index).release();
  }
};

template <> struct type_caster<weft::api::Datum> {
  NB_TYPE_CASTER(weft::api::Datum, const_name("object"))
  bool from_python(handle source, uint8_t, cleanup_list *) {
    value = fromPython(source);
    return true;
  }
  static handle from_cpp(const weft::api::Datum &datum, rv_policy, cleanup_list *) {
    return toPython(datum).release();
  }
};

template <> struct type_caster<weft::api::TypeInfo> {
  NB_TYPE_CASTER(weft::api::TypeInfo, const_name("tuple[str, str, str, tuple[int, ...]]"))
  bool from_python(handle, uint8_t, cleanup_list *) noexcept { return false; }
  static handle from_cpp(const weft::api::TypeInfo &info, rv_policy, cleanup_list *) {
    nanobind::list shape;
    for (int64_t size : info.shape)
      shape.append(size);
    return nanobind::make_tuple(info.text, info.dtype, info.layout, nanobind::tuple(shape))
        .release();
  }
};

template <> struct type_caster<weft::api::Line> {
  NB_TYPE_CASTER(weft::api::Line, const_name("tuple[str, int, str]"))
  bool from_python(handle source, uint8_t, cleanup_list *) {
    if (!PyTuple_Check(source.ptr()) || PyTuple_GET_SIZE(source.ptr()) != 3)
      return false;
    auto fields = nanobind::borrow<nanobind::tuple>(source);
    value = {nanobind::cast<std::string>(handle(fields[0])),
             nanobind::cast<int64_t>(handle(fields[1])),
             nanobind::cast<std::string>(handle(fields[2]))};
    return true;
  }
  static handle from_cpp(const weft::api::Line &line, rv_policy, cleanup_list *) {
    return nanobind::make_tuple(line.file, line.line, line.function).release();
  }
};

template <> struct type_caster<weft::api::Remark> {
  NB_TYPE_CASTER(weft::api::Remark, const_name("tuple[str, str, str, tuple[str, int, str]]"))
  bool from_python(handle, uint8_t, cleanup_list *) noexcept { return false; }
  static handle from_cpp(const weft::api::Remark &remark, rv_policy, cleanup_list *) {
    return nanobind::make_tuple(remark.pass, remark.kind, remark.text, remark.line).release();
  }
};

} // namespace nanobind::detail

#endif

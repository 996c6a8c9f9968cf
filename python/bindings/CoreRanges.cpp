// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Core.h"

#include "python/bindings/Collected.h"
#include "python/bindings/SizeRange.h"
#include "python/bindings/UnpackedCall.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

namespace nb = nanobind;

namespace weft {

static PyRef specialization(nb::handle object) {
  if (!nb::isinstance<Specialization>(object))
    throw nb::type_error("expected a Specialization");
  return PyRef::borrow(object.ptr());
}

/// By slot the dims, each (coefficients, constant).
static std::vector<SizeRange::Shape> parseShapes(const nb::dict &shapes) {
  std::vector<SizeRange::Shape> found;
  for (auto [slot, dims] : shapes) {
    SizeRange::Shape &shape = found.emplace_back();
    shape.slot = nb::cast<size_t>(slot);
    for (nb::handle dim : dims) {
      nb::object coefficients = dim[0], constant = dim[1];
      shape.dims.push_back(
          {nb::cast<std::vector<int64_t>>(coefficients), nb::cast<int64_t>(constant)});
    }
  }
  std::ranges::sort(found, {}, &SizeRange::Shape::slot);
  return found;
}

/// Each ((coefficients, constant) of the dividend, divisor).
static std::vector<SizeRange::Quotient> parseQuotients(const nb::list &quotients) {
  std::vector<SizeRange::Quotient> found;
  for (nb::handle each : quotients) {
    nb::object dividend = each[0];
    nb::object coefficients = dividend[0], constant = dividend[1];
    auto divisor = nb::cast<int64_t>(nb::object(each[1]));
    if (divisor <= 0)
      throw nb::value_error("expected positive divisors");
    found.push_back(
        {{nb::cast<std::vector<int64_t>>(coefficients), nb::cast<int64_t>(constant)}, divisor});
  }
  return found;
}

/// What a program takes for a call, as a tuple, or None.
static nb::object paddedCall(SizeRange &self, nb::tuple args, nb::dict kwargs, nb::object fill) {
  auto made = self.padded(UnpackedCall(args, kwargs).call, fill.ptr());
  if (!made)
    return nb::none();
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(made->size())));
  for (size_t i = 0; i < made->size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), (*made)[i].release());
  return tuple;
}

void bindRanges(nb::module_ &module) {
  nb::class_<SizeRange>(module, "SizeRange", nb::type_slots(collected<SizeRange>()),
                        "A program for a range of sizes and the calls it stands for.")
      .def(
          "__init__",
          [](SizeRange *self, nb::handle pattern, const nb::dict &shapes,
             std::vector<std::pair<int64_t, int64_t>> ranges, const nb::list &guards,
             std::vector<size_t> kept, const nb::list &quotients) {
            new (self) SizeRange();
            self->pattern = specialization(pattern);
            self->shapes = parseShapes(shapes);
            self->ranges = std::move(ranges);
            for (nb::handle guard : guards)
              self->guards.push_back(PyRef::borrow(guard.ptr()));
            self->kept = std::move(kept);
            self->quotients = parseQuotients(quotients);
          },
          nb::arg("pattern"), nb::arg("shapes"), nb::arg("ranges"), nb::arg("guards"),
          nb::arg("kept"), nb::arg("quotients"))
      .def("attach",
           [](SizeRange &self, nb::handle program) { self.program = specialization(program); })
      .def("rebound",
           [](const SizeRange &self, nb::handle program) {
             auto copy = std::make_unique<SizeRange>(self);
             copy->program = specialization(program);
             return copy;
           })
      .def("padded", &paddedCall, nb::arg("args"), nb::arg("kwargs"),
           nb::arg("fill").none() = nb::none())
      .def_rw("ranges", &SizeRange::ranges)
      .def_rw("takes_cut_short", &SizeRange::takesCutShort)
      .def_rw("apart", &SizeRange::apart)
      .def_rw("calls", &SizeRange::calls);
  nb::class_<ValidPart>(module, "ValidPart", "What counts of a padded result; see ValidPart.h.")
      .def(
          "__init__", [](ValidPart *self, nb::handle valid) { new (self) ValidPart(valid.ptr()); },
          nb::arg("valid"))
      .def(
          "of",
          [](const ValidPart &self, nb::handle padded, nb::handle sizes) {
            PyRef part = self.of(padded.ptr(), sizes.ptr());
            if (!part)
              throw nb::python_error();
            return nb::steal(part.release());
          },
          nb::arg("padded"), nb::arg("sizes"));
  nb::class_<SizedView>(module, "SizedView", "A view whose layout depends on sizes; SizedView.h.")
      .def(
          "__init__",
          [](SizedView *self, nb::handle layout) { new (self) SizedView(layout.ptr()); },
          nb::arg("layout"))
      .def(
          "of",
          [](const SizedView &self, nb::handle base, nb::handle sizes) {
            PyRef view = self.of(base.ptr(), sizes.ptr());
            if (!view)
              throw nb::python_error();
            return nb::steal(view.release());
          },
          nb::arg("base"), nb::arg("sizes"));
}

} // namespace weft

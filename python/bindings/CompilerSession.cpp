// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft._compiler.Session: compiler/Driver/Session.h for Python. A fault is raised as the error of
// weft.errors that fits it. The GIL is held all the while, since handles belong to one thread at a
// time, but where code is compiled.
#include "python/bindings/CompilerSession.h"

#include "python/bindings/SessionCasters.h"

#include <nanobind/stl/unique_ptr.h>

namespace nb = nanobind;
namespace api = weft::api;
using api::Fault;
using api::Handle;
using api::Session;

namespace {

[[noreturn]] void raise(const Fault &fault) {
  auto classOf = [&] {
    switch (fault.kind) {
    case Fault::Kind::Stale:
      return "Stale";
    case Fault::Kind::Invalid:
      return "VerificationError";
    case Fault::Kind::Syntax:
      return "ParseError";
    case Fault::Kind::Failed:
      return "CompileError";
    case Fault::Kind::Refused:
    case Fault::Kind::None:
      break;
    }
    return "IRError";
  };
  nb::object type = nb::module_::import_("weft.errors").attr(classOf());
  nb::object error = fault.kind == Fault::Kind::Syntax ? type(fault.text, fault.line, fault.column)
                                                       : type(fault.text);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

/// The method as a function that raises its fault.
template <typename Result, typename... Args>
auto raising(Result (Session::*method)(Fault &, Args...)) {
  return [method](Session &session, std::decay_t<Args>... args) -> Result {
    Fault fault;
    if constexpr (std::is_void_v<Result>) {
      (session.*method)(fault, args...);
      if (fault)
        raise(fault);
    } else {
      Result result = (session.*method)(fault, args...);
      if (fault)
        raise(fault);
      return result;
    }
  };
}

std::unique_ptr<Session> made(std::unique_ptr<Session> session, const Fault &fault) {
  if (fault)
    raise(fault);
  return session;
}

std::unique_ptr<Session> create() {
  Fault fault;
  return made(Session::create(fault), fault);
}

std::unique_ptr<Session> parse(const std::string &text, const std::string &name) {
  Fault fault;
  return made(Session::parse(fault, text, name), fault);
}

std::unique_ptr<Session> importGraph(const nb::bytes &graph) {
  Fault fault;
  return made(Session::importGraph(fault, {graph.c_str(), graph.size()}), fault);
}

std::unique_ptr<Session> lower(Session &session, const std::string &from, const std::string &to,
                               const nb::dict &options) {
  Fault fault;
  return made(session.lower(fault, from, to, parseOptions(options)), fault);
}

std::string assembly(Session &session, const std::string &from, const nb::dict &options) {
  Fault fault;
  std::string text = session.assembly(fault, from, parseOptions(options));
  if (fault)
    raise(fault);
  return text;
}

std::string compile(Session &session, const std::string &from, const std::string &outputPath,
                    const nb::dict &options) {
  api::Options parsed = parseOptions(options);
  std::atomic<bool> cancelled = false;
  return textOrThrow(runInterruptibly(
      cancelled, [&] { return session.compile(from, outputPath, parsed, cancelled); }));
}

std::string print(Session &session, Handle op, bool locations, int64_t mostElements) {
  Fault fault;
  std::string text = session.print(fault, op, {locations, mostElements});
  if (fault)
    raise(fault);
  return text;
}

Handle createOp(Session &session, std::string name,
                std::vector<std::vector<api::ValueRef>> operands,
                std::vector<std::pair<std::string, api::Datum>> attributes,
                std::vector<std::string> resultTypes, api::Line line, Handle block, Handle before) {
  Fault fault;
  Handle op = session.createOp(fault, {std::move(name), std::move(operands), std::move(attributes),
                                       std::move(resultTypes), std::move(line), block, before});
  if (fault)
    raise(fault);
  return op;
}

std::vector<std::string> stagePasses(const std::string &stage, const nb::dict &options) {
  Fault fault;
  std::vector<std::string> passes = api::stagePasses(fault, stage, parseOptions(options));
  if (fault)
    raise(fault);
  return passes;
}

void bindData(nb::module_ &module) {
  nb::class_<Elements>(module, "Elements", "A tensor that is an attribute.")
      .def(
          "__init__",
          [](Elements *self, std::string dtype, std::vector<int64_t> shape, nb::bytes data) {
            new (self) Elements{std::move(dtype), std::move(shape), std::move(data)};
          },
          nb::arg("dtype"), nb::arg("shape"), nb::arg("data"))
      .def_ro("dtype", &Elements::dtype)
      .def_ro("shape", &Elements::shape)
      .def_ro("data", &Elements::data);
  nb::class_<Syntax>(module, "Syntax", "An attribute that is no plain value, as MLIR writes it.")
      .def(
          "__init__", [](Syntax *self, std::string text) { new (self) Syntax{std::move(text)}; },
          nb::arg("text"))
      .def_ro("text", &Syntax::text)
      .def("__repr__", [](const Syntax &syntax) { return syntax.text; })
      .def("__eq__",
           [](const Syntax &self, nb::handle other) {
             return nb::isinstance<Syntax>(other) &&
                    nb::cast<const Syntax &>(other).text == self.text;
           })
      .def("__hash__", [](const Syntax &self) { return nb::hash(nb::str(self.text.c_str())); });
}

void bindReads(nb::class_<Session> &session) {
  session.def("module", &Session::module)
      .def("blocks", raising(&Session::blocks))
      .def("ops", raising(&Session::ops))
      .def("walk", raising(&Session::walk))
      .def("arguments", raising(&Session::arguments))
      .def("owner_block", raising(&Session::ownerBlock))
      .def("parent_op", raising(&Session::parentOp))
      .def("parent_block", raising(&Session::parentBlock))
      .def("name", raising(&Session::name))
      .def("operands", raising(&Session::operands))
      .def("results", raising(&Session::results))
      .def("attributes", raising(&Session::attributes))
      .def("line", raising(&Session::line))
      .def("type", raising(&Session::type))
      .def("uses", raising(&Session::uses))
      .def("signature", raising(&Session::signature))
      .def("current", raising(&Session::current))
      .def("follow", &Session::follow)
      .def("is_alive", &Session::isAlive)
      .def("is_before", raising(&Session::isBefore))
      .def("parameter_attributes", raising(&Session::parameterAttributes));
}

void bindChanges(nb::class_<Session> &session) {
  session.def("create_op", createOp)
      .def("add_functions", raising(&Session::addFunctions))
      .def("create_function", raising(&Session::createFunction))
      .def("set_return", raising(&Session::setReturn))
      .def("erase_parameter", raising(&Session::eraseParameter))
      .def("set_parameter_attribute", raising(&Session::setParameterAttribute))
      .def("replace_op", raising(&Session::replaceOp))
      .def("replace_uses", raising(&Session::replaceUses))
      .def("erase_op", raising(&Session::eraseOp))
      .def("set_operand", raising(&Session::setOperand))
      .def("set_attribute", raising(&Session::setAttribute), nb::arg(), nb::arg(), nb::arg().none())
      .def("remove_attribute", raising(&Session::removeAttribute))
      .def("set_line", raising(&Session::setLine))
      .def("remove_unused", raising(&Session::removeUnused));
}

} // namespace

void bindSession(nb::module_ &module) {
  bindData(module);
  nb::class_<Session> session(module, "Session", "A module of IR; see compiler/Driver/Session.h.");
  session.def_static("create", create)
      .def_static("parse", parse)
      .def_static("import_graph", importGraph)
      .def("clone", raising(&Session::clone))
      .def("lower", lower)
      .def("compile", compile)
      .def("assembly", assembly)
      .def("print", print)
      .def("structure", raising(&Session::structure))
      .def("verify", raising(&Session::verify))
      .def("remarks", &Session::remarks)
      .def("run_passes", raising(&Session::runPasses))
      .def("remember", raising(&Session::remember))
      .def("restore", raising(&Session::restore))
      .def("forget", raising(&Session::forget));
  bindReads(session);
  bindChanges(session);
  module.def("stage_names", api::stageNames);
  module.def("stage_passes", stagePasses);
}

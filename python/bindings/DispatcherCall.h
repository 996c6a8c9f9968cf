// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One call of an op through torch's C dispatcher, with every argument but the tensors fixed.
//
// The dispatcher takes 64 bits an argument and believes the caller about their meaning, so
// descriptions come only from python/weft/artifacts/dispatcher.py, which compares with the op's
// schema: (op, overload, arguments, results). An argument is one of (TENSOR, number of the input),
// (BITS, integer), (CONSTANT, name of an exported function that gives the number),
// (STRING, text), (LIST, children), (SOME, child): an optional that is there, or (RESULT, number
// of the output): memory that the op is given for a result. An optional that is not there is
// (BITS, 0). A result is True for a list of tensors, False for a tensor.
#ifndef WEFT_PYTHON_BINDINGS_DISPATCHERCALL_H
#define WEFT_PYTHON_BINDINGS_DISPATCHERCALL_H

#include "python/bindings/TorchAbi.h"

#include <Python.h>

#include <span>
#include <string>
#include <vector>

namespace weft {

class DispatcherCall {
public:
  /// Throws nb::python_error, or std::exception for a description of another form.
  DispatcherCall(const TorchAbi &abi, PyObject *description);

  /// Runs the op without gradients and copies into `outputs` what it gives elsewhere. Needs no GIL.
  /// False where the op failed or gave results of other shapes; TorchAbi::lastError() of this
  /// thread may say why. Throws std::runtime_error where torch has no memory for arguments.
  bool run(std::span<const WeftTensor> inputs, std::span<const WeftTensor> outputs) const;

private:
  struct Argument {
    enum Kind { Tensor, Bits, Constant, String, List, Some, Result } kind;
    uint64_t bits = 0; // a constant's too; of a tensor or result: its number
    std::string text;
    std::vector<Argument> children;
  };
  static Argument parse(PyObject *description);
  TorchAbi::Value make(const Argument &argument, std::span<const WeftTensor> inputs,
                       std::span<const WeftTensor> outputs) const;
  TorchAbi::Tensor wrap(const WeftTensor &tensor) const;
  bool store(std::span<TorchAbi::Value> stack, std::span<const WeftTensor> outputs) const;
  bool liesIn(const WeftTensor &output, TorchAbi::Tensor result) const;
  bool copyInto(const WeftTensor &output, TorchAbi::Tensor result) const;
  void check(TorchAbi::Status status) const;

  const TorchAbi &abi;
  std::string op, overload;
  std::vector<Argument> arguments;
  std::vector<bool> listResults; // for each of the schema's results
};

} // namespace weft

#endif

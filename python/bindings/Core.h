// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of the Python module weft._core, each in a file of its own.
#ifndef WEFT_PYTHON_BINDINGS_CORE_H
#define WEFT_PYTHON_BINDINGS_CORE_H

#include <nanobind/nanobind.h>

namespace weft {

/// Exceptions of the runtime become those of weft.errors.
void bindErrors();
/// Artifact, Program, the artifact cache.
void bindArtifacts(nanobind::module_ &module);
/// DirectCall, after Program.
void bindDirectCalls(nanobind::module_ &module);
/// ObjectGuards, Environment, Specialization, Callable.
void bindCalls(nanobind::module_ &module);
/// TrainingStep.
void bindTrainingSteps(nanobind::module_ &module);
/// SizeRange, ValidPart.
void bindRanges(nanobind::module_ &module);

} // namespace weft

#endif

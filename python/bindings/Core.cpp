// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// weft._core: the run time and the path of every call. It never links LLVM; the compiler is
// a module of its own, loaded when the artifact cache misses.
#include "python/bindings/Core.h"

#include "python/bindings/LineTransfer.h"
#include "python/bindings/PeakFlops.h"
#include "python/bindings/TorchThreads.h"
#include "runtime/CpuFeatures.h"
#include "runtime/Errors.h"
#include "runtime/ThreadTeam.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace weft {

static void raise(const char *type, const std::exception &error) {
  nb::object exception = nb::module_::import_("weft.errors").attr(type);
  PyErr_SetString(exception.ptr(), error.what());
}

void bindErrors() {
  nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
    try {
      std::rethrow_exception(pointer);
    } catch (const rt::ArtifactError &error) {
      raise("ArtifactError", error);
    } catch (const rt::ArgumentError &error) {
      raise("ArgumentError", error);
    } catch (const rt::AssertError &error) {
      raise("AssertError", error);
    } catch (const rt::ConfigError &error) {
      raise("ConfigError", error);
    }
  });
}

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false); // the interpreter's end frees what modules hold
  bindErrors();
  bindArtifacts(module);
  bindDirectCalls(module);
  bindTrainingSteps(module);
  bindCalls(module);
  bindRanges(module);
  module.def(
      "get_num_threads",
      [] {
        joinTorchThreads();
        return rt::getNumThreads();
      },
      "The last set_num_threads, else WEFT_THREADS, else torch.get_num_threads(), else the "
      "processors that this process may use.");
  module.def("set_num_threads", &rt::setNumThreads, nb::arg("threads"),
             "How many threads calls of this process run on from now on, at the most. Raises: "
             "errors.ConfigError, if that is less than 1.");
  module.def("missing_cpu_features", &rt::missingCpuFeatures, nb::arg("features"),
             "Those of the features, by LLVM's or Linux's names, that this process cannot use.");
  module.def("measure_peak_flops", &measurePeakFlops, nb::arg("threads"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("measure_line_transfer", &measureLineTransfer,
             nb::call_guard<nb::gil_scoped_release>());
  module.def("measure_matrix_flops", &measureMatrixFlops, nb::arg("threads"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("measure_peak_bandwidth", &measurePeakBandwidth, nb::arg("threads"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("measure_cache_bandwidth", &measureCacheBandwidth, nb::arg("threads"),
             nb::arg("level"), nb::call_guard<nb::gil_scoped_release>());
}

} // namespace weft

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exceptions of the runtime. Each message is one line in the user's terms.
#ifndef WEFT_RUNTIME_ERRORS_H
#define WEFT_RUNTIME_ERRORS_H

#include <stdexcept>

namespace weft::rt {

/// A file that cannot be used as an artifact: damaged, of another version, for another CPU.
struct ArtifactError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A tensor that does not match the program's signature.
struct ArgumentError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// A `weft.assert` of the program found a false element.
struct AssertError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An invalid value of a setting (environment variable or call).
struct ConfigError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

} // namespace weft::rt

#endif

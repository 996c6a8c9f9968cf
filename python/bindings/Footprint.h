// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that a call's checks read: thousands of small objects far apart. A large program's data
// drives them out of the caches between two calls, and one after the other they would be waited
// for. Asked for all at once and in the order of their addresses, they arrive together.
#ifndef WEFT_PYTHON_BINDINGS_FOOTPRINT_H
#define WEFT_PYTHON_BINDINGS_FOOTPRINT_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

class Footprint {
public:
  /// Only fetched, never read: what lies there may be gone by then. Null is nothing.
  void add(const void *begin, size_t bytes);
  template <typename T> void add(const T *object) {
    add(static_cast<const void *>(object), sizeof(T));
  }

  /// To be called when everything has been added.
  void sort();

  bool empty() const { return lines.empty(); }
  void fetch() const;

private:
  std::vector<uintptr_t> lines;
};

} // namespace weft

#endif

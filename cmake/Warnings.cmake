# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Warnings and sanitizers for our own targets: target_link_libraries(x PRIVATE weft_options).
add_library(weft_options INTERFACE)
target_compile_options(weft_options INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_link_options(-fuse-ld=lld)
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE}
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                         -fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/sanitizer-ignorelist.txt)
  target_link_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE})
  set(is_executable $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  target_sources(weft_options INTERFACE
                 $<${is_executable}:${CMAKE_CURRENT_LIST_DIR}/SanitizerOptions.cpp>)
endif()

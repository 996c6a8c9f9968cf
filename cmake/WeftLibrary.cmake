# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# weft_compiler_library(NAME source... [DEPENDS target...] [LINK target...])
# One room of compiler/: a static library in LLVM's style (no exceptions, no RTTI) that
# shares one precompiled MLIR header with its siblings.
function(weft_compiler_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_compile_options(${name} PRIVATE -fno-exceptions -fno-rtti)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM PRIVATE weft_options)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(TARGET weft_pch)
    target_precompile_headers(${name} REUSE_FROM weft_pch)
  endif()
endfunction()

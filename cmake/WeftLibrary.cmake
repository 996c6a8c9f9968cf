# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# weft_compiler_library(NAME [DEPENDS target...] [LINK target...])
# One room of compiler/: a static library in LLVM's style (no exceptions, no RTTI) that
# shares one precompiled MLIR header with its siblings. A folder is a library: its sources are
# those in the folder and below it, looked up again by each build, so that no list repeats them.
function(weft_compiler_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} STATIC ${sources})
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

# Compiler settings shared by every target, and the helpers that declare libraries and tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# One code model for libraries and programs, so that they can share a precompiled header.
add_compile_options(-fPIC)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(REGARD_CCACHE ccache)
if(REGARD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header carries a time stamp; these settings let ccache use it all the same.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${REGARD_CCACHE})
endif()

add_library(regard_warnings INTERFACE)
target_compile_options(regard_warnings INTERFACE -Wall -Wextra -Wno-psabi
                       $<$<BOOL:${REGARD_WERROR}>:-Werror>)

if(REGARD_SANITIZER)
  add_compile_options(-fsanitize=${REGARD_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${REGARD_SANITIZER})
endif()

if(REGARD_TESTS)
  find_package(GTest REQUIRED)
endif()

# regard_library(NAME SOURCES... [LIBS...]): a static library of one room, alias regard::NAME.
function(regard_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(regard_${name} STATIC ${ARG_SOURCES})
  add_library(regard::${name} ALIAS regard_${name})
  target_include_directories(regard_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(regard_${name} PUBLIC ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:regard_warnings>)
endfunction()

# regard_test(NAME SOURCES... [LIBS...] [TORCH]): a GoogleTest program run by ctest, beside what it tests.
# It is told where the repository is (REGARD_SOURCE_DIR) and where the shared data is (REGARD_SHARED_DIR).
function(regard_test name)
  if(NOT REGARD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest GTest::gtest_main regard_warnings)
  target_compile_definitions(${name} PRIVATE REGARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             REGARD_SHARED_DIR="${PROJECT_SOURCE_DIR}/../shared")
  if(ARG_TORCH)
    regard_use_torch_pch(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# libtorch from the torch wheel in the project's Python environment (for the Python package: in the environment
# that builds it), or from -DREGARD_TORCH_PREFIX=DIR (the folder that holds share/cmake/Torch), and one
# precompiled header for the files that include it.

set(REGARD_TORCH_PREFIX "" CACHE PATH "Folder of another build of libtorch (holds share/cmake/Torch)")
if(REGARD_TORCH_PREFIX)
  set(_torch "${REGARD_TORCH_PREFIX}")
elseif(SKBUILD)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE _torch OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
else()
  file(GLOB _torch LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  if(NOT _torch)
    message(FATAL_ERROR "No torch in ${PROJECT_SOURCE_DIR}/.venv: run scripts/setup first, "
                        "or name another libtorch with -DREGARD_TORCH_PREFIX=DIR, "
                        "or build the engine alone with -DREGARD_TORCH=OFF")
  endif()
  list(GET _torch 0 _torch)
endif()
list(APPEND CMAKE_PREFIX_PATH "${_torch}")
find_package(Torch REQUIRED)
set_target_properties(torch PROPERTIES SYSTEM ON)

# regard_torch: what a target links to use libtorch. Its include folders are system ones (no warnings).
add_library(regard_torch INTERFACE)
target_include_directories(regard_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(regard_torch INTERFACE ${TORCH_LIBRARIES})
# The wheel's include folder also holds fmt's headers, of another version than the system's library.
target_compile_definitions(regard_torch INTERFACE FMT_HEADER_ONLY=1)

# at::parallel_for lies in torch's headers and uses more than one thread only where it is compiled with OpenMP. It has to
# be torch's own runtime, GCC's; Clang has another, whose threads would compete with torch's: there it stays on one.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(regard_torch INTERFACE -fopenmp)
  if(EXISTS "${_torch}/lib/libgomp.so.1")
    target_link_libraries(regard_torch INTERFACE "${_torch}/lib/libgomp.so.1")
  else()
    target_link_options(regard_torch INTERFACE -fopenmp)
  endif()
endif()

# The precompiled torch header, compiled once and reused by every target that asks for it.
# CONFIGURE leaves the file alone when it is already there: a newer one would compile everything again.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/torch_pch.cc" CONTENT "// Holds the precompiled torch header.\n")
add_library(regard_torch_pch OBJECT "${PROJECT_BINARY_DIR}/torch_pch.cc")
target_link_libraries(regard_torch_pch PRIVATE regard_torch)
target_precompile_headers(regard_torch_pch PRIVATE <torch/torch.h>)

# regard_use_torch_pch(TARGET): link libtorch and use the shared precompiled header.
function(regard_use_torch_pch target)
  target_link_libraries(${target} PUBLIC regard_torch)
  target_precompile_headers(${target} REUSE_FROM regard_torch_pch)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${_torch}/lib")
endfunction()

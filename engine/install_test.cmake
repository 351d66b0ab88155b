# Installs the engine of BUILD_DIR, builds EXAMPLE_DIR against it as another project would, and runs it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --component engine --prefix "${WORK_DIR}/prefix")
run(${CMAKE_COMMAND} -S "${EXAMPLE_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX}"
    "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix")
run(${CMAKE_COMMAND} --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/attend")
foreach(line "query 0 attends to  1.000 0.000 0.000 0.000" "query 3 attends to  0.333 0.312 0.219 0.135"
        "dv of value 0: 2.164, of value 3: 0.135"
        "wrong: k has 2 heads, which does not divide q's 1 heads")
  string(FIND "${output}" "${line}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "The example does not print \"${line}\":\n${output}")
  endif()
endforeach()

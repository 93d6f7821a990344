# cmake -DBUILD=folder -DSOURCE=tests/install -DWORK=folder -DCOMPILER=c++ -DGENERATOR=Ninja -P check.cmake
# Installs what was built to a prefix of its own, builds an application against it as a user would, and runs both.
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${code}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/application)
if(NOT output MATCHES "block_size 128, unroll 4")
  message(FATAL_ERROR "the application says: ${output}")
endif()
run(${WORK}/prefix/bin/ergotune --version)
# an application that launches finds the launcher, and needs nothing of the rest
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/../../examples/application -B ${WORK}/launching -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/launching)
run(${CMAKE_COMMAND} -E env XDG_CACHE_HOME=${WORK}/cache ${WORK}/launching/heat_tuned 64 64 4)
if(NOT output MATCHES "\"is_default\":true")
  message(FATAL_ERROR "the application that launches says: ${output}")
endif()
file(REMOVE_RECURSE ${WORK})

# Read by ctest after the tests of one program were found: those that need a quiet machine run alone, and say so.
foreach(test IN LISTS found_tests)
  if(test MATCHES "(^|/)Quiet")
    set_tests_properties("${test}" PROPERTIES RUN_SERIAL TRUE LABELS "quiet")
  endif()
endforeach()

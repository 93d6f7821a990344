# ergotune_embed(TARGET name=file ...)
# Builds files into TARGET as `extern const char ergotune_embedded_<name>[]` (zero-terminated) and
# `extern const unsigned long ergotune_embedded_<name>_size`, so that one binary carries its assets.
function(ergotune_embed target)
  foreach(pair ${ARGN})
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${pair}")
    set(name ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    set(output ${PROJECT_BINARY_DIR}/embedded/${name}.c)
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DINPUT=${file} -DOUTPUT=${output}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
      DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake VERBATIM)
    set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)  # those are C++
    target_sources(${target} PRIVATE ${output})
  endforeach()
endfunction()

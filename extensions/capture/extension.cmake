ergotune_extension(capture VERBS capture run COLD USES base)

# The libraries that are loaded into unmodified programs: small, with no exported symbols but the entry points.
foreach(interface opencl cuda)
  set(inject ${PROJECT_SOURCE_DIR}/extensions/capture/inject)
  file(GLOB injected CONFIGURE_DEPENDS ${inject}/${interface}_*.cpp ${inject}/session.cpp ${inject}/kernel_log.cpp)
  add_library(ergotune_inject_${interface} MODULE ${injected})
  set_target_properties(ergotune_inject_${interface} PROPERTIES OUTPUT_NAME ergotune-capture-${interface} DEFINE_SYMBOL ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(ergotune_inject_${interface} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/extensions)
  target_link_libraries(ergotune_inject_${interface} PRIVATE ergotune_capture ergotune_warnings)
  target_link_options(ergotune_inject_${interface} PRIVATE -Wl,--as-needed -Wl,--gc-sections -Wl,--exclude-libs,ALL)
  if(NOT ERGOTUNE_SANITIZER)
    target_link_options(ergotune_inject_${interface} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  target_link_libraries(ergotune_inject_${interface} PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
  ergotune_precompile(ergotune_inject_${interface} injected)
endforeach()

# ergotune_layer(NAME [COLD] [USES layer...] [LIBRARIES target...])
# One static library per folder of src/. USES names the layers below whose headers it may include; the linker then
# holds the layering: a layer that reaches up does not link. COLD: nothing in it is hot; a wheel, which everybody builds
# from nothing, compiles it with -O1 (a quarter less processor time).
function(ergotune_layer name)
  cmake_parse_arguments(ARG "COLD" "" "USES;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp
                                      ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*/*.cpp)
  add_library(ergotune_${name} STATIC ${sources})
  target_include_directories(ergotune_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_USES PREPEND ergotune_)
  target_link_libraries(ergotune_${name} PRIVATE ergotune_warnings PUBLIC ${ARG_USES} ${ARG_LIBRARIES})
  set(group layers)
  if(SKBUILD AND ARG_COLD)
    target_compile_options(ergotune_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    set(group cold_layers)  # a precompiled header is of one optimisation
  endif()
  ergotune_precompile(ergotune_${name} ${group})
  set_property(GLOBAL APPEND PROPERTY ERGOTUNE_LAYERS ${name})
endfunction()

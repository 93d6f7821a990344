# ergotune_unity(TARGET source...): with ERGOTUNE_UNITY several files are compiled as one where their names allow it
# (unity_groups.py), which takes less processor time for who builds everything once. For who changes a file it takes more.
function(ergotune_unity target)
  if(NOT ERGOTUNE_UNITY)
    return()
  endif()
  find_package(Python COMPONENTS Interpreter)
  if(NOT Python_Interpreter_FOUND)
    return()
  endif()
  execute_process(COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py ${ARGN} OUTPUT_VARIABLE groups
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" groups "${groups}")
  foreach(line ${groups})
    if(line MATCHES "^([0-9]+) (.+)$")
      set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${ERGOTUNE_UNITY_PREFIX}group${CMAKE_MATCH_1})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)  # an unnamed namespace of a file that is included is one's own
endfunction()

# ergotune_layer(NAME [COLD] [USES layer...] [LIBRARIES target...])
# One static library per folder of src/. USES names the layers below whose headers it may include; the linker then
# holds the layering: a layer that reaches up does not link. COLD: nothing in it is hot, or some µs a
# configuration are all that it costs; who builds everything once (a wheel, ERGOTUNE_UNITY) compiles it with -O1, a quarter less processor time.
function(ergotune_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp
                                      ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*/*.cpp)
  list(REMOVE_ITEM sources "" ${strategy_sources})
  ergotune_module(${name} "${sources}" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY ERGOTUNE_LAYERS ${name})
endfunction()

# ergotune_extension(NAME [VERBS verb...] [REGISTER] [COLD] [USES layer...] [LIBRARIES target...])
# The extension in extensions/NAME: the files of its folder are a static library, those of NAME/verbs become part of the command.
# VERBS names the verbs that it adds; REGISTER: it has a function register_NAME() that adds to the registries of the core.
function(ergotune_extension name)
  cmake_parse_arguments(EXTENSION "REGISTER;COLD" "" "VERBS;USES;LIBRARIES" ${ARGN})
  set(cold)
  if(EXTENSION_COLD)
    set(cold COLD)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/extensions/${name}/*.cpp)
  ergotune_module(${name} "${sources}" ${cold} USES ${EXTENSION_USES} LIBRARIES ${EXTENSION_LIBRARIES})
  file(GLOB verbs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/extensions/${name}/verbs/*.cpp)
  set_property(GLOBAL APPEND PROPERTY ERGOTUNE_EXTENSIONS ${name})
  set_property(GLOBAL APPEND PROPERTY ERGOTUNE_VERB_SOURCES ${verbs})
  set_property(GLOBAL APPEND PROPERTY ERGOTUNE_VERBS ${EXTENSION_VERBS})
  if(EXTENSION_REGISTER)
    set_property(GLOBAL APPEND PROPERTY ERGOTUNE_REGISTERED ${name})
  endif()
endfunction()

# What layers and extensions have in common.
function(ergotune_module name sources)
  cmake_parse_arguments(ARG "COLD" "" "USES;LIBRARIES" ${ARGN})
  add_library(ergotune_${name} STATIC ${sources})
  target_include_directories(ergotune_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                             PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/extensions)
  list(TRANSFORM ARG_USES PREPEND ergotune_)
  target_link_libraries(ergotune_${name} PRIVATE ergotune_warnings PUBLIC ${ARG_USES} ${ARG_LIBRARIES})
  set(group layers)
  if((SKBUILD OR ERGOTUNE_UNITY) AND ARG_COLD)
    target_compile_options(ergotune_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    set(group cold_layers)  # a precompiled header is of one optimisation
  endif()
  ergotune_precompile(ergotune_${name} ${group})
  ergotune_unity(ergotune_${name} ${sources})
endfunction()

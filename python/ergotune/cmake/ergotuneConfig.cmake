# find_package(ergotune REQUIRED COMPONENTS launcher) in an installed wheel, which contains the launcher alone.
if(NOT TARGET ergotune::launcher)
  add_library(ergotune::launcher SHARED IMPORTED)
  get_filename_component(ergotune_folder "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)
  set_target_properties(ergotune::launcher PROPERTIES
    IMPORTED_LOCATION "${ergotune_folder}/libergotune-launcher.so.0" IMPORTED_SONAME libergotune-launcher.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${ergotune_folder}/include" INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()
if(NOT ergotune_FIND_COMPONENTS STREQUAL "launcher")
  set(ergotune_FOUND FALSE)
  set(ergotune_NOT_FOUND_MESSAGE "a wheel contains the component launcher alone; libergotune comes with cmake --install")
endif()

# Install rules: the command, libergotune, its headers, and the package files for find_package(ergotune).
include(CMakePackageConfigHelpers)
install(TARGETS ergotune EXPORT ergotuneTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# A set of its own: applications that launch need nothing of the rest.
install(TARGETS ergotune-launcher ergotune-launcher-static EXPORT ergotuneLauncherTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH include_folder /${CMAKE_INSTALL_LIBDIR}/pkgconfig /${CMAKE_INSTALL_INCLUDEDIR})
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/ergotune-launcher.pc @ONLY CONTENT [[
Name: ergotune-launcher
Description: Launches kernels in tuned configurations
Version: @PROJECT_VERSION@
Libs: -L${pcfiledir}/.. -lergotune-launcher
Cflags: -I${pcfiledir}/@include_folder@
]])
install(FILES ${PROJECT_BINARY_DIR}/ergotune-launcher.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(EXPORT ergotuneLauncherTargets NAMESPACE ergotune:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ergotune)
foreach(program ergotune_command ergotuned)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
# man pages and shell completion, which the command writes when it is built
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})
foreach(interface opencl cuda hip)
  if(TARGET ergotune_inject_${interface})
    install(TARGETS ergotune_inject_${interface} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ergotune)
  endif()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ergotune DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(EXISTS ${PROJECT_SOURCE_DIR}/profiles)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiles ${PROJECT_SOURCE_DIR}/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/ergotune)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT ergotuneTargets NAMESPACE ergotune:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ergotune)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ergotuneConfig.cmake.in
  ${PROJECT_BINARY_DIR}/ergotuneConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ergotune)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ergotuneConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ergotuneConfig.cmake ${PROJECT_BINARY_DIR}/ergotuneConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ergotune)

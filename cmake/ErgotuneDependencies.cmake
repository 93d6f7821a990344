# Every third-party library ergotune uses, by its Debian package. Static where that is easy, so that one binary
# also runs on machines that have none of these packages.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)                 # libfmt-dev
find_package(nlohmann_json REQUIRED)       # nlohmann-json3-dev
find_package(Eigen3 REQUIRED NO_MODULE)    # libeigen3-dev
find_package(CLI11 REQUIRED)               # libcli11-dev
find_package(ZLIB REQUIRED)                # zlib1g-dev

function(ergotune_static_library target header archive)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  # found anew when another kind is asked for: a build folder may get the Python module later (quickstart, then test)
  string(MAKE_C_IDENTIFIER "${target}_${archive}" library)
  find_library(${library} NAMES ${archive} REQUIRED)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${${library}} ${ARGN})
  add_library(ergotune_dep::${target} ALIAS ${target})
endfunction()

if(ERGOTUNE_BUILD_PYTHON)  # Debian's archives are not position independent: an extension module takes the shared ones
  set(sqlite_archive sqlite3)
  set(zlib_archive z)
else()
  set(sqlite_archive libsqlite3.a)
  set(zlib_archive libz.a)
endif()
ergotune_static_library(sqlite sqlite3.h ${sqlite_archive} ${CMAKE_DL_LIBS} m Threads::Threads)   # libsqlite3-dev
ergotune_static_library(simdjson simdjson.h "libsimdjson.a;simdjson")                          # libsimdjson-dev
ergotune_static_library(zlib zlib.h ${zlib_archive})                                                    # zlib1g-dev
# libevent-dev: its HTTP server, for the live page. (Debian's libcpp-httplib is a shared library, with OpenSSL and brotli.)
ergotune_static_library(event event2/http.h "libevent.a;event")
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)                                         # libtomlplusplus-dev
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)                                                    # libxxhash-dev

add_library(ergotune_warnings INTERFACE)
# designated initialisers may leave out members that have defaults
target_compile_options(ergotune_warnings INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # false alarms in std::string and std::vector (GCC bugs 105329, 105651), no longer silenced by their place in a system
  # header once that header is precompiled
  target_compile_options(ergotune_warnings INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
                         -Wno-restrict)
endif()
if(ERGOTUNE_SANITIZER)
  add_compile_options(-fsanitize=${ERGOTUNE_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ERGOTUNE_SANITIZER})
endif()

# ergotune_embed_profiles(TARGET): compiles profiles/*.toml into TARGET, so that the command knows its devices wherever
# it is copied to. The files are installed too, for reading and as a start for one's own.
function(ergotune_embed_profiles target)
  file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/profiles/*.toml)
  set(generated ${PROJECT_BINARY_DIR}/generated/embedded_profiles.cpp)
  add_custom_command(OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${generated} -DFOLDER=${PROJECT_SOURCE_DIR}/profiles
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedProfiles.cmake
    DEPENDS ${profiles} ${PROJECT_SOURCE_DIR}/cmake/EmbedProfiles.cmake
    COMMENT "Embedding device profiles")
  target_sources(${target} PRIVATE ${generated})
endfunction()

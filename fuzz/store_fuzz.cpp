// A store is a file like any other: cut, damaged or made by somebody else it is read, or refused in words.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "ergotune/base/error.hpp"
#include "ergotune/store/recording.hpp"
#include "ergotune/store/store.hpp"

namespace {

const std::string& file_name() {
  static const std::string name = [] {
    std::string folder = "/tmp/ergotune_store_fuzz_XXXXXX";
    if (!::mkdtemp(folder.data())) ::abort();
    std::atexit([] { std::filesystem::remove_all(std::filesystem::path(file_name()).parent_path()); });
    return folder + "/store.db";
  }();
  return name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string& name = file_name();
  for (const char* end : {"-wal", "-shm", ".lock"}) ::unlink((name + end).c_str());
  if (std::FILE* file = std::fopen(name.c_str(), "wb")) {
    std::fwrite(data, 1, size, file);
    std::fclose(file);
  }
  try {
    const auto store = ergotune::Store::open(name, true);
    for (const auto& session : store.sessions()) {
      store.results(session.id);
      store.unfinished(session.id);
      store.document(session.id);
    }
  } catch (const ergotune::Error&) {
  }
  try {
    ergotune::load_recording(name);
  } catch (const ergotune::Error&) {
  }
  return 0;
}

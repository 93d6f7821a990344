// A store is a file like any other: cut, damaged or made by somebody else it is read, or refused in words.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "ergotune/error.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"

namespace {

/// A folder until the process ends.
struct Scratch {
  std::string folder = "/tmp/ergotune_store_fuzz_XXXXXX", store;
  Scratch() {
    if (!::mkdtemp(folder.data())) ::abort();
    store = folder + "/store.db";
  }
  ~Scratch() { std::filesystem::remove_all(folder); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Scratch scratch;
  const std::string& name = scratch.store;
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

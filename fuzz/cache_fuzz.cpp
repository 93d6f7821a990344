// Recordings of any content: caches, T4, CSV, gzip. A mistake is a UserError and nothing else; what is read
// is whole.
#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "ergotune/error.hpp"
#include "store/formats/export.hpp"
#include "store/formats/recording.hpp"

namespace {

/// One file, written anew for every input, in a folder of its own: what lies beside a recording is looked at as well.
struct Folder {
  Folder() {
    if (!::mkdtemp(name.data())) __builtin_trap();
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(name, error);
  }
  std::string name = "/tmp/ergotune_cache_fuzz_XXXXXX";
};

const std::string& file_name() {
  static const Folder folder;
  static const std::string name = folder.name + "/recording";
  return name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (std::FILE* file = std::fopen(file_name().c_str(), "wb")) {
    std::fwrite(data, 1, size, file);
    std::fclose(file);
  }
  try {
    const ergotune::Recording recording = ergotune::load_recording(file_name());
    if (recording.positions.size() != recording.size() * recording.parameters.size()) __builtin_trap();
    for (const auto& column : recording.columns) {
      if (column.value.size() != recording.size()) __builtin_trap();
    }
    const ergotune::ResultSet results = ergotune::result_set(recording);
    ergotune::to_kernel_tuner_cache(results);
    ergotune::to_t4_results(results);
    ergotune::to_csv(results);
  } catch (const ergotune::UserError&) {
  }
  return 0;
}

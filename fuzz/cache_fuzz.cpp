// Recordings of any content: caches, T4, CSV, gzip. A mistake is a UserError and nothing else; what is read
// is whole.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "ergotune/base/error.hpp"
#include "ergotune/store/export.hpp"
#include "ergotune/store/recording.hpp"

namespace {

/// One file, written anew for every input.
const std::string& file_name() {
  static const std::string name = [] {
    std::string text = "/tmp/ergotune_cache_fuzz_XXXXXX";
    const int descriptor = ::mkstemp(text.data());
    if (descriptor >= 0) ::close(descriptor);
    return text;
  }();
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

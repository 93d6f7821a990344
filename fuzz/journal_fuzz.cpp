// Journals are files that root replays: whatever is read parses to what can be written again, or is refused.
#include <cstdint>
#include <cstdlib>

#include "ergotune/base/error.hpp"
#include "power/journal.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto journal = ergotune::parse_journal(text);
    const auto again = ergotune::parse_journal(ergotune::format_journal(journal));
    if (again.steps.size() != journal.steps.size() || again.device_key != journal.device_key) std::abort();
  } catch (const ergotune::Error&) {
  }
  return 0;
}

// Journals are files that root replays: whatever is read parses to what can be written again, or is refused.
// Inputs that are JSON objects are also tried with a right header and checksum, so that the fuzzer gets
// behind those.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/journal.hpp"

namespace {

void try_parse(const std::string& text) {
  try {
    const auto journal = ergotune::parse_journal(text);
    const auto again = ergotune::parse_journal(ergotune::format_journal(journal));
    if (again.steps.size() != journal.steps.size() || again.pid != journal.pid) std::abort();
  } catch (const ergotune::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::ordered_json;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_parse(text);
  auto document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return 0;
  document["format"] = "ergotune-journal";
  document["version"] = 1;
  document.erase("checksum");
  document["checksum"] = ergotune::content_hash(document.dump(-1, ' ', true, Json::error_handler_t::replace));
  try_parse(document.dump(-1, ' ', true, Json::error_handler_t::replace));
  return 0;
}

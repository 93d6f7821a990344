// ergotuned's policy file: parsed or refused with a place, never anything else; and no rule without bounds in
// order.
#include <cstdint>
#include <cstdlib>

#include "ergotune/error.hpp"
#include "helper/helper_policy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto policy =
        ergotune::helper::parse_policy(std::string(reinterpret_cast<const char*>(data), size), "policy.toml");
    for (const auto& rule : policy.rules)
      for (const auto& [quantity, bounds] : rule.bounds)
        if (!(bounds.low >= 0 && bounds.low <= bounds.high)) std::abort();
  } catch (const ergotune::UserError&) {
  }
  return 0;
}

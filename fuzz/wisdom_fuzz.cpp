// Wisdom of any contents is read without a fault, and what was read is written and read as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kernel/wisdom.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune;
  const Wisdom wisdom = parse_wisdom({reinterpret_cast<const char*>(data), size}, "fuzz");
  const Wisdom again = parse_wisdom(to_text({"kernel", wisdom.records, {}}), "again");
  if (!again.warnings.empty() || again.records.size() != wisdom.records.size()) std::abort();
  for (const WisdomRecord& record : wisdom.records)
    for (const WisdomRecord& other : wisdom.records)
      (void)select_wisdom(wisdom.records,
                          {.device = record.device, .problem_size = other.problem_size, .objective = record.objective});
  std::vector<std::string> notes;
  (void)parse_wisdom(to_kernel_launcher(wisdom, notes), "launcher");
  return 0;
}

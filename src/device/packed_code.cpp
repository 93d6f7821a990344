#include "device/packed_code.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <tuple>

#include "base/messages/serialise.hpp"
#include "device/device.hpp"

namespace ergotune::device {
namespace {

constexpr std::string_view kMagic = "ergotune code 2\n";

struct FunctionAttribute {
  std::string_view option;
  int first, count;  ///< the driver's numbers, one for each value of a list
  int low, high;
  int preset;  ///< what a function has if nothing is set
};
constexpr FunctionAttribute kFunctionAttributes[] = {{"--shared-memory-carveout=", 9, 1, -1, 100, -1},
                                                     {"--cluster-size=", 11, 3, 1, 16, 1}};

/// The attributes that an option sets; none if its values are the preset ones.
std::map<int, int> attributes_in(const FunctionAttribute& known, std::string_view values) {
  std::map<int, int> attributes;
  bool changes = false;
  const char *at = values.data(), *const end = at + values.size();
  for (int i = 0; i < known.count; ++i) {
    int value = known.preset;
    if (i == 0 || at != end) {
      const auto [next, error] = std::from_chars(at, end, value);
      const bool is_last = next == end, goes_on = next != end && *next == ',' && i + 1 < known.count;
      if (error != std::errc() || value < known.low || value > known.high || !(is_last || goes_on))
        throw DeviceError(DeviceFault::compile,
                          fmt::format("{}{}: at most {} whole numbers from {} to {}, separated by commas", known.option,
                                      values, known.count, known.low, known.high));
      at = is_last ? end : next + 1;
    }
    attributes[known.first + i] = value;
    changes |= value != known.preset;
  }
  return changes ? attributes : std::map<int, int>();
}

}  // namespace

static auto fields(PackedCode& packed) {
  auto& [code, instructions, instructions_from, attributes] = packed;
  return std::tie(code, instructions, instructions_from, attributes);
}

std::string PackedCode::pack() const { return std::string(kMagic) + Writer()(*this).take(); }

PackedCode PackedCode::unpack(const std::string& bytes) {
  if (!bytes.starts_with(kMagic)) return {bytes};
  PackedCode packed;
  try {
    Reader reader(std::string_view(bytes).substr(kMagic.size()));
    reader(packed).end();
  } catch (const FormatError&) {
    return {bytes};
  }
  return packed;
}

std::map<int, int> take_function_attributes(std::vector<std::string>& options) {
  std::map<int, int> attributes;
  for (const FunctionAttribute& known : kFunctionAttributes)
    std::erase_if(options, [&](const std::string& option) {
      if (!option.starts_with(known.option)) return false;
      attributes.merge(attributes_in(known, std::string_view(option).substr(known.option.size())));
      return true;
    });
  return attributes;
}

}  // namespace ergotune::device

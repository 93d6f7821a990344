#include "space/space_names.hpp"

#include <fmt/format.h>

#include "ergotune/error.hpp"

namespace ergotune {

const Value* SpaceNames::constant(std::string_view name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

std::optional<std::uint32_t> SpaceNames::parameter(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

program::NameTable SpaceNames::table() const {
  program::NameTable names;
  names.parameter = [this](std::string_view name) { return parameter(name); };
  names.constant = [this](std::string_view name) { return constant(name); };
  return names;
}

void SpaceNames::unknown(const std::string& name, const std::string& where, const SourcePlace& place) const {
  std::vector<std::string> known;
  for (const auto& p : parameters_) known.push_back(p.name);
  for (const auto& [key, value] : constants_) known.push_back(key);
  const bool of_device =
      name.starts_with("device.") && constants_.lower_bound("device.") == constants_.lower_bound("device/");
  throw UserError(fmt::format("unknown name \"{}\" in {}{}", name, where,
                              of_device ? "; device limits are known once a device or a device profile is chosen"
                                        : suggestion(name, known)),
                  place);
}

}  // namespace ergotune

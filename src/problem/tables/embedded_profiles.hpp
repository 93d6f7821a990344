// The shipped device profiles, compiled in from profiles/*.toml.
#pragma once

#include <string_view>
#include <vector>

namespace ergotune {

struct EmbeddedProfile {
  std::string_view name;
  std::string_view text;
};

/// The profiles, sorted by name.
const std::vector<EmbeddedProfile>& embedded_profiles();

}  // namespace ergotune

// Wisdom files of Kernel Launcher (KernelTuner/kernel_launcher), version 1.0: configurations are lists in the order of
// the header's names; times are in ms; devices are known by name alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernel/wisdom.hpp"

namespace ergotune {

struct KernelLauncherHeader {
  std::string key, objective;
  std::vector<std::string> parameters;
  /// Throws std::exception with words for a header that is none.
  static KernelLauncherHeader read(const nlohmann::ordered_json& json);
  /// A record under this header; throws likewise.
  WisdomRecord record(const nlohmann::ordered_json& json) const;
};

/// A bool, number or text; throws for anything else.
Value wisdom_value(const nlohmann::ordered_json& json);
std::vector<std::int64_t> wisdom_sizes(const nlohmann::ordered_json& json);

}  // namespace ergotune

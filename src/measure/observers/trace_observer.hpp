// The observer "trace", which writes all sensor and GPU monitor readings over time to a file per configuration.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ergotune/observer.hpp"
#include "measure/energy/energy.hpp"

namespace ergotune {

struct TraceOptions {
  double before = 1, seconds = 2, after = 1;  ///< s
  /// Where traces are written: to `file` (one configuration), or to a file per configuration in `folder`.
  std::filesystem::path file, folder;
  double period = 0.005;  ///< s between reads of the GPU and of sensors without a known update period
};

/// Returns the path of a configuration's file in the folder; `configuration` is text such as "a=1,b=2".
std::filesystem::path trace_file(const std::filesystem::path& folder, const std::string& configuration);

/// Throws UserError if the folder cannot be created.
std::shared_ptr<Observer> make_trace_observer(EnergySources sources, TraceOptions options);

}  // namespace ergotune

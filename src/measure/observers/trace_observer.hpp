// The observer "trace": everything that sensors and GPU monitor say over time, into a file per configuration.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ergotune/observer.hpp"
#include "measure/energy/energy.hpp"

namespace ergotune {

struct TraceOptions {
  double before = 1, seconds = 2, after = 1;  ///< s
  /// Where traces go: this file (one configuration), else a file per configuration in this folder.
  std::filesystem::path file, folder;
  double period = 0.005;  ///< s between looks at the GPU and at sensors that tell no period
};

/// The file of a configuration ("a=1,b=2") in the folder.
std::filesystem::path trace_file(const std::filesystem::path& folder, const std::string& configuration);

/// Throws UserError where the folder cannot be made.
std::shared_ptr<Observer> make_trace_observer(EnergySources sources, TraceOptions options);

}  // namespace ergotune

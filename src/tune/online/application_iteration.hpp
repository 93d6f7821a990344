// Iterations of a workload in the application's own process, with one configuration at a time, on the application's
// buffers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "kernel/compile_cache.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/timing/loaded_iteration.hpp"

namespace ergotune {

struct Problem;

class ApplicationIteration {
 public:
  /// Opens the device and fills the buffers; `problem` must outlive this object.
  ApplicationIteration(const std::string& device, const Problem& problem, std::filesystem::path cache_folder);
  /// Compiles a configuration; another thread may do so while iterations run. Throws DeviceError or UserError.
  std::vector<Binary> compile(const Configuration& configuration);
  /// Loads what compile() returned. If this throws DeviceError or UserError, the previous configuration stays loaded.
  void load(const Configuration& configuration, const std::vector<Binary>& binaries);
  /// Runs one iteration and returns its device time in s.
  double run();

  ProblemBuffers& buffers() { return buffers_; }
  const ProblemBuffers& buffers() const { return buffers_; }

 private:
  const Problem& problem_;
  std::unique_ptr<Device> device_;
  Constants constants_;
  CachedCompiler compiler_;
  ProblemBuffers buffers_;
  std::unique_ptr<Marker> begin_, end_;
  std::unique_ptr<LoadedIteration> round_;
};

}  // namespace ergotune

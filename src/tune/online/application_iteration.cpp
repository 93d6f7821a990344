#include "tune/online/application_iteration.hpp"

#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"

namespace ergotune {

ApplicationIteration::ApplicationIteration(const std::string& device, const Problem& problem,
                                           std::filesystem::path cache_folder)
    : problem_(problem),
      device_(open_device(device, &problem)),
      constants_(problem.constants_for(device_->info().name, device_->info().properties)),
      compiler_(device_->make_compiler(), std::move(cache_folder)),
      buffers_(*device_, argument_lists(problem), constants_, nullptr, swapped_buffers(problem)),
      begin_(device_->make_marker()),
      end_(device_->make_marker()) {}

std::vector<Binary> ApplicationIteration::compile(const Configuration& configuration) {
  std::vector<Binary> binaries;
  for (const Kernel& kernel : problem_.kernels)
    binaries.push_back(
        compiler_.compile(make_compile_job(problem_, kernel, device_->info(), constants_, configuration)).binary);
  return binaries;
}

void ApplicationIteration::load(const Configuration& configuration, const std::vector<Binary>& binaries) {
  auto fresh = std::make_unique<LoadedIteration>(*device_, problem_, constants_, buffers_, configuration, binaries);
  round_ = std::move(fresh);
}

double ApplicationIteration::run() {
  device_->record(*begin_);
  round_->workload().launch(1);
  device_->record(*end_);
  device_->synchronise();
  return device_->seconds_between(*begin_, *end_);
}

}  // namespace ergotune

#include "device/cuda/cuda_multiprocessors.hpp"

#include <fmt/format.h>

namespace ergotune::cuda {
namespace {

/// Returns all SMs of a device as a resource that can be split; its type is 0 if the driver does not support it.
CUdevResource whole_of(CUdevice device) {
  CUdevResource whole{};
  if (!api().has_green_contexts() ||
      api().cuDeviceGetDevResource(device, &whole, kResourceMultiprocessors) != CUDA_SUCCESS)
    whole.type = 0;
  return whole;
}

}  // namespace

unsigned multiprocessor_unit(CUdevice device) {
  const CUdevResource whole = whole_of(device);
  if (whole.type != kResourceMultiprocessors) return 0;
  // For a request of one SM, the driver returns its smallest group.
  CUdevResource least{};
  unsigned groups = 1;
  if (api().cuDevSmResourceSplitByCount(&least, &groups, &whole, nullptr, 0, 1) != CUDA_SUCCESS || groups < 1) return 0;
  return least.sm.count;
}

GreenContext::GreenContext(CUdevice device, std::vector<CUdevResource> multiprocessors) {
  CUdevResourceDesc description = nullptr;
  check(api().cuDevResourceGenerateDesc(&description, multiprocessors.data(),
                                        static_cast<unsigned>(multiprocessors.size())),
        DeviceFault::unsupported, "cuDevResourceGenerateDesc");
  check(api().cuGreenCtxCreate(&context_, description, device, kGreenDefaultStream), DeviceFault::unsupported,
        "cuGreenCtxCreate");
}

GreenContext::~GreenContext() { api().cuGreenCtxDestroy(context_); }

CUstream GreenContext::make_stream(int priority) const {
  CUstream stream = nullptr;
  check(api().cuGreenCtxStreamCreate(&stream, context_, kStreamNonBlocking, priority), DeviceFault::unsupported,
        "cuGreenCtxStreamCreate");
  return stream;
}

void SmPartitions::split_sms() {
  if (unit_ > 0) return;
  const unsigned unit = multiprocessor_unit(device_);
  if (unit == 0)
    throw DeviceError(DeviceFault::unsupported,
                      "SM partitioning is not available here: it needs a driver of CUDA 12.5 or later "
                      "and a GPU that it takes apart");
  const CUdevResource whole = whole_of(device_);
  unsigned groups = 0;
  check(api().cuDevSmResourceSplitByCount(nullptr, &groups, &whole, nullptr, 0, unit), DeviceFault::unsupported,
        "cuDevSmResourceSplitByCount");
  groups_.resize(groups);
  check(api().cuDevSmResourceSplitByCount(groups_.data(), &groups, &whole, &rest_, 0, unit), DeviceFault::unsupported,
        "cuDevSmResourceSplitByCount");
  groups_.resize(groups);
  total_ = whole.sm.count;
  unit_ = unit;
}

std::shared_ptr<const GreenContext> SmPartitions::part(std::uint32_t first, std::uint32_t count) {
  split_sms();
  const std::uint32_t end = first + count, in_groups = static_cast<std::uint32_t>(groups_.size()) * unit_;
  const bool last = end == total_;
  if (first % unit_ != 0 || first > in_groups || (!last && (end % unit_ != 0 || end > in_groups)))
    throw DeviceError(DeviceFault::launch,
                      fmt::format("no kernel can have SMs {} to {} of {} for itself: this device partitions them in "
                                  "multiples of {}, up to {}; the last branch gets the rest",
                                  first + 1, end, total_, unit_, in_groups));
  std::weak_ptr<const GreenContext>& known = parts_[{first, count}];
  if (auto shared = known.lock()) return shared;
  std::vector<CUdevResource> resources(groups_.begin() + first / unit_,
                                       groups_.begin() + (last ? in_groups : end) / unit_);
  if (last && rest_.sm.count > 0) resources.push_back(rest_);
  auto made = std::make_shared<const GreenContext>(device_, std::move(resources));
  known = made;
  return made;
}

}  // namespace ergotune::cuda

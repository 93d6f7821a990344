// Online tuning of the launches with one key: what threads of the application and the thread of the launcher share.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "launcher/launch_table.hpp"
#include "launcher/online_search.hpp"

namespace ergotune::launcher {

class TunedKernel;

/// Where a driver's thread finds the kernel that it calls back; none once that is closed.
struct OnlineCallback {
  std::mutex mutex;
  TunedKernel* kernel = nullptr;
};

struct OnlineTuning {
  static constexpr std::uint64_t kNever = OnlineSearch::kNever;
  std::atomic<std::uint64_t> launches{0};
  /// The launch of this number, or the first after it, is measured. The thread that replaces it by kNever owns what
  /// follows until the queue has passed the launch.
  std::atomic<std::uint64_t> due{kNever};
  OnlineSearch::Step step;
  const Decision* tested = nullptr;  ///< what that launch runs
  bool compares = false;             ///< whether it runs on copies of the outputs, beside the application's own launch
  std::unique_ptr<Stopwatch> watch;
  int code = 0;            ///< of the launch
  bool copied = false;     ///< whether the outputs were
  bool disturbed = false;  ///< whether another thread has launched meanwhile
  /// Each buffer that the kernel writes, as the tested and as the application's own launch leaves it.
  struct Output {
    std::size_t position = 0;
    const Argument* argument = nullptr;
    std::unique_ptr<BufferCopy> tested, own;
  };
  std::vector<Output> outputs;

  // in the launcher's thread only
  std::unique_ptr<OnlineSearch> search;
  std::map<ConfigurationIndex, const Decision*> decisions;
  std::size_t failed = 0;  ///< configurations that do not compile, launch, or compute the same

  std::mutex mutex;
  std::string state;  ///< a JSON document for ergotune_kernel_why
};

}  // namespace ergotune::launcher

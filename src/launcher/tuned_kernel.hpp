// A kernel that an application launches: chooses, compiles, loads, launches.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"
#include "kernel/compile_cache.hpp"
#include "kernel/configure.hpp"
#include "kernel/wisdom.hpp"
#include "launcher/background.hpp"
#include "launcher/launch_capture.hpp"
#include "launcher/launch_table.hpp"

namespace ergotune::launcher {

struct KernelSettings {
  std::string backend, kernel, objective;
  std::vector<std::filesystem::path> wisdom;
  Constants constants;
  std::filesystem::path cache;
  bool background = false, clocks = false;
  std::function<void(const std::string&)> warn;
  std::string text;  ///< the problem file's, for captures
};

using Arguments = std::span<const ergotune_argument>;

class TunedKernel {
 public:
  /// Throws UserError for what cannot be launched on any device.
  TunedKernel(Problem problem, KernelSettings settings);
  ~TunedKernel();
  TunedKernel(const TunedKernel&) = delete;
  TunedKernel& operator=(const TunedKernel&) = delete;

  /// 0, or the driver's code; `error` says it in words. Throws for mistakes of the caller's.
  int launch(void* queue, Arguments arguments, std::string& error) {
    const LaunchKey key = key_of(queue, arguments);
    const std::uint64_t hash = key.hash();
    LaunchEntry* entry = table_.find(key, hash);
    const Decision* decision = entry ? entry->decision.load(std::memory_order_acquire) : nullptr;
    if (!decision || capturing_) return first_launch(key, hash, queue, arguments, error);
    const int code = decision->plan.code->launch(decision->plan, queue, arguments.data());
    return code == 0 ? 0 : failed_launch(*entry, *decision, code, queue, arguments, error);
  }
  /// Compiles and loads what such launches run, and waits for it. Throws where even the default does not compile.
  void prepare(void* queue, Arguments arguments);
  /// A JSON document (ergotune_kernel_why).
  std::string why(void* queue, Arguments arguments);
  void reload();

  /// "int32 float32 * struct:24": of the application's arguments.
  const std::string& signature() const { return signature_; }

 private:
  /// Code that is there, or that the thread which holds `mutex` is making.
  struct LoadedCode {
    std::mutex mutex;
    std::shared_ptr<Code> code;
    std::atomic<bool> ready{false};
  };
  /// Where kernels run.
  struct Site {
    DeviceInfo info;
    Constants constants;   ///< without what launches say
    std::mutex compiling;  ///< compilers are one thread's at a time; whoever compiles holds no other thread up
    std::mutex mutex;      ///< of all that follows, for moments
    std::unique_ptr<Compiler> compiler;
    std::string identity;
    std::map<std::string, LoadedCode> loaded;
    std::map<std::string, std::string> failed;  ///< a configuration's values -> what it did
    std::optional<Configuration> latest;        ///< what was decided last
  };
  /// What is to be compiled for a configuration here.
  struct Job {
    CompileJob job;
    std::string key;
  };

  LaunchKey key_of(void* queue, Arguments arguments) const;
  int first_launch(const LaunchKey& key, std::uint64_t hash, void* queue, Arguments arguments, std::string& error);
  int failed_launch(LaunchEntry& entry, const Decision& decision, int code, void* queue, Arguments arguments,
                    std::string& error);
  /// The launch, with everything before and after it on disk.
  int launch_captured(LaunchEntry& entry, const Decision& decision, void* queue, Arguments arguments);
  /// The entry's decision, made where there is none; `wait`: a final one.
  const Decision& decide(LaunchEntry& entry, bool wait);
  /// Something compiled that can run until `wanted` is; null where nothing is, or none is needed.
  std::unique_ptr<Decision> stopgap(Site& site, const LaunchKey& key, const Constants& constants,
                                    const Decision& wanted);
  /// Compiles and loads what is wanted; the default takes the place of what fails.
  void complete(std::unique_ptr<Decision>& wanted, Site& site, const Place& place, const Constants& constants);
  const Decision& settle(LaunchEntry& entry, Site& site, const Constants& constants, std::unique_ptr<Decision> wanted);
  bool improve_later(LaunchEntry& entry);
  void improve(LaunchEntry& entry);
  Site& site_at(const Place& place);
  Constants constants_at(const Site& site, const LaunchKey& key) const;
  std::unique_ptr<Decision> choose(Site& site, const Constants& constants) const;
  std::unique_ptr<Decision> choose_default(const Constants& constants, const std::string& reason) const;
  /// What is wrong with a record's configuration here; empty: nothing.
  std::string refusal(Site& site, const Constants& constants, const WisdomRecord& record) const;
  Job job_for(Site& site, const Constants& constants, const Configuration& configuration) const;
  /// True also for what another thread is loading from the disk.
  bool is_compiled(Site& site, const Job& job) const;
  void add_plan(Decision& decision, Site& site, const Place& place, const Constants& constants);
  std::shared_ptr<Code> code_for(Site& site, const Place& place, const Job& job);
  std::shared_ptr<const std::vector<WisdomRecord>> read_all_wisdom() const;
  std::string values_text(const Configuration& values) const { return describe(problem_.parameters, values); }
  void warn(const std::string& message) const { settings_.warn(name_ + ": " + message); }
  /// Each message once.
  void warn_once(const std::string& message) const;

  /// A scalar that decides something: its position, type, and the constant that it is.
  struct Bound {
    std::size_t position = 0;
    ElementType type = ElementType::int32;
    std::string constant;
  };

  Problem problem_;
  const Kernel* kernel_ = nullptr;
  KernelSettings settings_;
  std::string name_, signature_;
  const Native* native_ = nullptr;
  std::vector<Bound> bound_;
  std::vector<std::size_t> sizes_;            ///< bytes of each argument of the application's
  std::vector<std::size_t> positions_;        ///< of the kernel's arguments among them; local memory has none
  std::set<std::string, std::less<>> words_;  ///< of the code: constants among them are compiled in
  LaunchTable table_;
  mutable std::mutex mutex_;  ///< of the sites, of what they know, and of the wisdom
  std::map<std::pair<void*, void*>, std::unique_ptr<Site>> sites_;
  std::shared_ptr<const std::vector<WisdomRecord>> wisdom_;
  mutable std::set<std::string> reported_;
  std::mutex storing_;  ///< of what the cache knows of itself
  CompileCache cache_;
  CaptureSettings capture_;
  bool capturing_ = false;
  std::atomic<long> passed_{0};             ///< launches, while captures are wanted
  std::unique_ptr<Background> background_;  ///< last: it ends before what it works on
};

}  // namespace ergotune::launcher

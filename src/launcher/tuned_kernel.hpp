// A tuned kernel of an application: selects a configuration, compiles, loads and launches it.
#pragma once

#include <atomic>
#include <deque>
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
#include "launcher/held_clocks.hpp"
#include "launcher/launch_capture.hpp"
#include "launcher/launch_table.hpp"
#include "launcher/online.hpp"

namespace ergotune::launcher {

struct KernelSettings {
  std::string backend, kernel, objective;
  std::vector<std::filesystem::path> wisdom;
  bool wisdom_in_environment = false;  ///< `wisdom` is that of ERGOTUNE_WISDOM, whose folders must exist
  Constants constants;
  std::filesystem::path cache;
  bool background = false, clocks = false;
  double online = 0;  ///< bound of online tuning; 0: none
  std::function<void(const std::string&)> warn;
  std::string text;  ///< text of the problem file, for captures
};

using Arguments = std::span<const ergotune_argument>;

class TunedKernel {
 public:
  /// Throws UserError if the kernel cannot be launched on any device.
  TunedKernel(Problem problem, KernelSettings settings);
  ~TunedKernel();
  TunedKernel(const TunedKernel&) = delete;
  TunedKernel& operator=(const TunedKernel&) = delete;

  /// Returns 0 or the driver's code; `error` receives its message. Throws for mistakes of the caller.
  int launch(void* queue, Arguments arguments, std::string& error) {
    const LaunchKey key = key_of(queue, arguments);
    const std::uint64_t hash = key.hash();
    LaunchEntry* entry = table_.find(key, hash);
    const Decision* decision = entry ? entry->decision.load(std::memory_order_acquire) : nullptr;
    if (!decision || capturing_) return first_launch(key, hash, queue, arguments, error);
    if (decision->online) return launch_online(*entry, *decision, queue, arguments, error);
    follow_clock(*decision, queue);
    const int code = decision->plan.code->launch(decision->plan, queue, arguments.data());
    return code == 0 ? 0 : failed_launch(*entry, *decision, code, queue, arguments, error);
  }
  /// Compiles and loads the code for such launches, and waits for it. Throws if even the default configuration does not
  /// compile.
  void prepare(void* queue, Arguments arguments);
  /// Returns the JSON document of ergotune_kernel_why.
  std::string why(void* queue, Arguments arguments);
  void reload();

  /// The types of the application's arguments: "int32 float32 * struct:24".
  const std::string& signature() const { return signature_; }

 private:
  /// Loaded code, or code that the thread which holds `mutex` is loading.
  struct LoadedCode {
    std::mutex mutex;
    std::shared_ptr<Code> code;
    std::atomic<bool> ready{false};
  };
  /// A place where kernels run, and what is known about it.
  struct Site {
    DeviceInfo info;
    Constants constants;   ///< without the constants that launches determine
    std::mutex compiling;  ///< serialises the use of the compiler; does not block other threads
    std::mutex mutex;      ///< protects the members below; held briefly
    std::unique_ptr<Compiler> compiler;
    std::string identity;
    std::map<std::string, LoadedCode> loaded;
    std::map<std::string, std::string> failed;  ///< by values of a configuration: the message of its failure
    std::optional<Configuration> latest;        ///< the latest configuration that was decided
  };
  /// The compile job of a configuration, with its cache key.
  struct Job {
    CompileJob job;
    std::string key;
  };

  void follow_clock(const Decision& decision, void* queue) const {
    if (decision.held && decision.held->differ(decision.clock_mhz))
      decision.held->begin(*native_, queue, decision.clock_mhz, decision.seconds);
  }
  LaunchKey key_of(void* queue, Arguments arguments) const;
  int first_launch(const LaunchKey& key, std::uint64_t hash, void* queue, Arguments arguments, std::string& error);
  int failed_launch(LaunchEntry& entry, const Decision& decision, int code, void* queue, Arguments arguments,
                    std::string& error);
  /// Launches, and writes the contents of all arguments before and after to disk.
  int launch_captured(LaunchEntry& entry, const Decision& decision, void* queue, Arguments arguments);
  /// Returns the entry's decision, after making it if there is none; `wait`: waits for the final one.
  const Decision& decide(LaunchEntry& entry, bool wait);
  /// Returns a decision with compiled code that can run until `wanted` is ready; null if there is none or if none is
  /// needed.
  std::unique_ptr<Decision> interim_decision(Site& site, const LaunchKey& key, const Constants& constants,
                                             const Decision& wanted);
  /// Compiles and loads the wanted configuration; if that fails, replaces it by the default.
  void complete(std::unique_ptr<Decision>& wanted, Site& site, const Place& place, const Constants& constants);
  const Decision& settle(LaunchEntry& entry, Site& site, const Constants& constants, std::unique_ptr<Decision> wanted);
  void improve(LaunchEntry& entry);
  /// Queues a task for the launcher's thread; returns false if none can be created.
  bool later(std::function<void()> task);
  void begin_online(LaunchEntry& entry, OnlineTuning& online);
  int launch_online(LaunchEntry& entry, const Decision& decision, void* queue, Arguments arguments, std::string& error);
  /// Queues the measured launch, and returns the code of the application's own.
  int launch_measured(OnlineTuning& online, const Decision& decision, void* queue, Arguments arguments);
  // in the launcher's thread, of which an exception ends the tuning:
  void in_online(LaunchEntry& entry, OnlineTuning& online, const std::function<void()>& task);
  void open_search(LaunchEntry& entry, OnlineTuning& online);
  void end_measured(LaunchEntry& entry, OnlineTuning& online);
  void prepare_measured(LaunchEntry& entry, OnlineTuning& online);
  /// The code of a configuration; throws if it cannot be used here.
  const Decision& tested_decision(LaunchEntry& entry, OnlineTuning& online, const OnlineSearch::Step& step);
  /// Why the outputs of the tested launch are not those of the application's own; empty if they are.
  std::string difference(const OnlineTuning& online) const;
  /// All launches run the best; `ends`: and test no others. False if another decision was made since.
  bool run_from_now_on(LaunchEntry& entry, OnlineTuning& online, bool ends);
  void end_online(LaunchEntry& entry, OnlineTuning& online);
  void note_state(OnlineTuning& online, bool settled, const std::string& failure = {});
  Site& site_at(const Place& place);
  Constants constants_at(const Site& site, const LaunchKey& key) const;
  std::unique_ptr<Decision> choose(Site& site, const Constants& constants) const;
  std::unique_ptr<Decision> choose_default(const Constants& constants, const std::string& reason) const;
  /// Returns why a record's configuration cannot be used here; empty if it can.
  std::string refusal(Site& site, const Constants& constants, const WisdomRecord& record) const;
  Job job_for(Site& site, const Constants& constants, const Configuration& configuration) const;
  /// True also for code that another thread is loading from disk.
  bool is_compiled(Site& site, const Job& job) const;
  void add_plan(Decision& decision, Site& site, const Place& place, const Constants& constants);
  std::shared_ptr<Code> code_for(Site& site, const Place& place, const Job& job);
  std::shared_ptr<const std::vector<WisdomRecord>> read_all_wisdom() const;
  /// Which folders of ERGOTUNE_WISDOM do not exist; empty if all do.
  std::string missing_wisdom() const;
  std::string values_text(const Configuration& values) const { return describe(problem_.parameters, values); }
  void warn(const std::string& message) const { settings_.warn(name_ + ": " + message); }
  /// Emits each message only once.
  void warn_once(const std::string& message) const;

  /// A scalar argument that determines a constant: its position, its type, and the name of the constant.
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
  std::vector<std::size_t> sizes_;            ///< size in bytes of each argument of the application
  std::vector<std::size_t> positions_;        ///< positions of the kernel's arguments among them; local memory has none
  std::set<std::string, std::less<>> words_;  ///< identifiers in the code; constants among them are compiled in
  LaunchTable table_;
  mutable std::mutex mutex_;  ///< protects sites_ and wisdom_
  std::map<std::pair<void*, void*>, std::unique_ptr<Site>> sites_;
  std::shared_ptr<const std::vector<WisdomRecord>> wisdom_;
  mutable std::set<std::string> reported_;
  std::mutex storing_;  ///< protects the state of cache_
  CompileCache cache_;
  CaptureSettings capture_;
  bool capturing_ = false;
  std::atomic<long> passed_{0};      ///< number of launches while captures are enabled
  std::deque<OnlineTuning> online_;  ///< protected by mutex_
  std::shared_ptr<OnlineCallback> callback_ = std::make_shared<OnlineCallback>();
  std::unique_ptr<Background, Background::Delete>
      background_;  ///< declared last, so that it ends before the members that it uses
};

}  // namespace ergotune::launcher

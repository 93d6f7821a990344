// What tests use: a state file of one's own, the environment that points clients at it, loads, faults, and the truth.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "presets.hpp"

namespace fake_nvml {

class FakeNvml {
 public:
  /// `description` as for initialise(): "generation=hopper devices=2 virtual=1 ...".
  explicit FakeNvml(const std::string& description = "") {
    char path[] = "/tmp/ergotune-fake-nvml-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0) throw std::runtime_error("cannot make a state file for the fake NVML");
    close(file);
    path_ = path;
    state_ = map_state(path_, description);
    if (!state_) throw std::runtime_error("cannot map the state of the fake NVML");
  }
  ~FakeNvml() {
    munmap(static_cast<void*>(state_), sizeof(State));
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  /// The one of this process, begun anew: a library maps its state once per process, so all tests of one share it.
  static FakeNvml& shared(const std::string& description) {
    static std::optional<FakeNvml> instance;
    if (!instance) {
      instance.emplace(description);
    } else {
      const pthread_mutex_t mutex = instance->state().mutex;
      initialise(instance->state(), description);
      instance->state().mutex = mutex;
    }
    instance->use_here();
    return *instance;
  }

  const std::string& path() const { return path_; }
  /// For child processes.
  std::map<std::string, std::string> environment() const {
    return {{"ERGOTUNE_NVML", library()}, {"ERGOTUNE_FAKE_NVML_STATE", path_}};
  }
  /// For this process.
  void use_here() const {
    for (const auto& [name, value] : environment()) setenv(name.c_str(), value.c_str(), 1);
  }
#ifdef ERGOTUNE_BINARY_DIR
  static std::string library() { return ERGOTUNE_BINARY_DIR "/tests/fakes/nvml/libnvidia-ml.so.1"; }
#else
  static std::string library() { return "libnvidia-ml.so.1"; }
#endif

  State& state() { return *state_; }
  Gpu& gpu(int index = 0) { return state_->gpus[index]; }

  /// Re-starts the physics after the test changed a GPU's description (periods, physics).
  void restart_gpus() {
    Lock lock(*state_);
    for (int i = 0; i < kMaxDevices; ++i) start(state_->gpus[i], model_now(*state_));
  }
  /// Steady load while the queue is empty: 0 idle, 1 full.
  void set_activity(double activity, int index = 0) {
    Lock lock(*state_);
    advance(*state_, gpu(index), model_now(*state_));
    gpu(index).background_activity = activity;
  }
  /// Virtual time only.
  void pass(double seconds) {
    Lock lock(*state_);
    state_->virtual_time += seconds;
    for (int i = 0; i < state_->device_count; ++i) advance(*state_, gpu(i), state_->virtual_time);
  }
  double now() const { return model_now(*state_); }
  /// True energy in J up to now: what the sensors only approximate.
  double true_energy(int index = 0) {
    Lock lock(*state_);
    advance(*state_, gpu(index), model_now(*state_));
    return gpu(index).true_energy;
  }
  double true_energy_at(double time, int index = 0) {
    Lock lock(*state_);
    advance(*state_, gpu(index), model_now(*state_));
    return energy_at(gpu(index), time);
  }

  void add_fault(const std::string& function, int code, std::uint64_t after_calls = 0, std::uint64_t for_calls = 0,
                 double delay = 0) {
    Lock lock(*state_);
    if (state_->fault_count >= kMaxFaults) throw std::runtime_error("too many faults");
    Fault& f = state_->faults[state_->fault_count++];
    f = Fault{};
    set_text(f.function, sizeof f.function, function);
    f.code = code;
    f.after_calls = after_calls;
    f.for_calls = for_calls;
    f.delay = delay;
  }
  void clear_faults() {
    Lock lock(*state_);
    state_->fault_count = state_->corruption_count = 0;
  }
  /// From now on what `function` (or "field:186") reads is wrong in this way.
  void corrupt(const std::string& function, Corruption kind, std::uint64_t after = 0) {
    Lock lock(*state_);
    if (state_->corruption_count >= kMaxCorruptions) throw std::runtime_error("too many corruptions");
    CorruptionState& c = state_->corruptions[state_->corruption_count++];
    c = CorruptionState{};
    set_text(c.function, sizeof c.function, function);
    c.kind = kind;
    c.after = after;
  }
  /// The setter calls so far, oldest first (the last kSetterLog of them).
  std::vector<SetterCall> setter_calls() {
    Lock lock(*state_);
    std::vector<SetterCall> calls;
    const auto n = state_->setter_calls, first = n > kSetterLog ? n - kSetterLog : 0;
    for (auto i = first; i < n; ++i) calls.push_back(state_->setter_log[i % kSetterLog]);
    return calls;
  }

 private:
  std::string path_;
  State* state_ = nullptr;
};

}  // namespace fake_nvml

#include "evaluate/recorded/simulated.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/clock.hpp"
#include "base/process/environment.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/random.hpp"
#include "measure/execution_parameters.hpp"

extern "C" {
extern const char ergotune_embedded_full_load_toml[];
extern const unsigned long ergotune_embedded_full_load_toml_size;
extern const char ergotune_embedded_full_load_cl[];
extern const unsigned long ergotune_embedded_full_load_cl_size;
extern const char ergotune_embedded_full_load_c[];
extern const unsigned long ergotune_embedded_full_load_c_size;
}

namespace ergotune {
namespace {

class Simulated : public QueuedEvaluator {
 public:
  Simulated(const DeviceProfile& profile, const Problem& problem, const SearchSpace& space,
            const SimulationOptions& options)
      : device_(profile, problem, space.parameters(), options) {
    pace_ = std::strtod(environment_variable("ERGOTUNE_SIMULATED_PACE").c_str(), nullptr);
    Random random(options.seed);
    for (int i = 0; i < options.gpus; ++i) {
      const std::string id = fmt::format("sim:{}:{}", profile.name, i);
      gpus_.push_back({{id, id, profile.name, 0, 0, 0, false}, 1, 1});
      if (i == 0) continue;
      gpus_.back().time = std::exp(0.01 * random.normal());
      gpus_.back().power = std::exp(0.03 * random.normal());
    }
  }

  std::string description() const override {
    const std::string message = fmt::format("simulated {}", device_.profile().name);
    return gpus_.size() > 1 ? fmt::format("{} devices of {}", gpus_.size(), message) : message;
  }
  Provenance provenance() const override { return Provenance::simulated; }
  std::size_t capacity() const override { return gpus_.size(); }
  void set_journal(RunJournal* journal) override { journal_ = journal; }

  std::vector<DeviceShare> gpus() const override {
    std::vector<DeviceShare> shares;
    if (gpus_.size() < 2) return shares;
    for (const SimulatedGpu& gpu : gpus_) shares.push_back(gpu.share);
    return shares;
  }

 private:
  EvaluationResult answer(const EvaluationRequest& request) override {
    if (journal_) journal_->about_to_run(request, 0);
    if (pace_ > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(pace_ / static_cast<double>(gpus_.size())));
    EvaluationResult result;
    result.measurement = device_.measure(request.configuration, request.repeat ? ++repeats_ : 0);
    result.measurement.finished_at = wall_seconds();
    if (gpus_.size() > 1) result.gpu = ran_on(gpu_for(request), result.measurement);
    return result;
  }

  struct SimulatedGpu {
    DeviceShare share;
    double time = 1, power = 1;
  };

  SimulatedGpu& gpu_for(const EvaluationRequest& request) {
    for (SimulatedGpu& gpu : gpus_)
      if (gpu.share.gpu == request.gpu) return gpu;
    return gpus_[turn_++ % gpus_.size()];
  }
  static std::string ran_on(SimulatedGpu& gpu, Measurement& measurement) {
    const auto scale = [&](const char* name, double by) {
      const auto found = measurement.quantities.find(name);
      if (found == measurement.quantities.end()) return;
      found->second.value *= by;
      found->second.standard_error *= by;
    };
    scale("time", gpu.time);
    scale("power", gpu.power);
    scale("energy", gpu.time * gpu.power);
    ++gpu.share.results;
    gpu.share.busy_seconds += measurement.verify_seconds + measurement.measure_seconds;
    return gpu.share.gpu;
  }

  SimulatedDevice device_;
  std::vector<SimulatedGpu> gpus_;
  std::uint64_t repeats_ = 0, turn_ = 0;
  RunJournal* journal_ = nullptr;
  double pace_ = 0;  ///< s of real time for which a configuration occupies a GPU, for testing concurrency
};

class ProfileControl : public Control {
 public:
  explicit ProfileControl(DeviceProfile profile) : profile_(std::move(profile)) {}
  std::string id() const override { return "sim:" + profile_.name; }
  std::string device_key() const override { return id(); }
  bool permitted() override { return true; }
  std::vector<RestoreStep> snapshot() override { return {}; }
  std::string external_lock_sign() override { return {}; }
  std::vector<double> core_clocks_at(double) override { return core_clocks(profile_); }
  ControlResult set(ControlQuantity, double) override { return nothing_to_set(); }
  ControlResult restore(const RestoreStep&) override { return nothing_to_set(); }

  ControlRange range(ControlQuantity quantity) override {
    ControlRange range;
    range.supported = true;
    switch (quantity) {
      case ControlQuantity::core_clock_mhz:
        range.values = core_clocks(profile_);
        range.default_value = profile_.numbers.at("clock.boost_mhz");
        break;
      case ControlQuantity::memory_clock_mhz: {
        const auto list = profile_.lists.find("clock.memory_clocks_mhz");
        range.default_value = profile_.numbers.at("clock.memory_mhz");
        range.values = list != profile_.lists.end() ? list->second : std::vector{*range.default_value};
        break;
      }
      case ControlQuantity::power_limit_w:
        range.low = profile_.numbers.at("power.limit_min_w");
        range.high = profile_.numbers.at("power.limit_max_w");
        range.default_value = range.high;
        return range;
    }
    range.low = range.values.front();
    range.high = range.values.back();
    return range;
  }

 private:
  static ControlResult nothing_to_set() {
    return {ControlStatus::not_supported, "a simulated device takes its clocks from the configuration"};
  }
  DeviceProfile profile_;
};

}  // namespace

std::vector<double> core_clocks(const DeviceProfile& profile) {
  if (const auto list = profile.lists.find("clock.core_mhz"); list != profile.lists.end()) return list->second;
  for (const char* key : {"clock.core_min_mhz", "clock.core_max_mhz", "clock.core_step_mhz"}) {
    if (!profile.numbers.contains(key) || profile.numbers.at(key) <= 0) {
      throw UserError(fmt::format("the profile of {} has neither a list clock.core_mhz nor {}", profile.name, key));
    }
  }
  const double low = profile.numbers.at("clock.core_min_mhz"), high = profile.numbers.at("clock.core_max_mhz");
  const double step = profile.numbers.at("clock.core_step_mhz");
  std::vector<double> clocks;
  for (int i = 0; low + i * step <= high + 1e-6; ++i) clocks.push_back(low + i * step);
  return clocks;
}

std::unique_ptr<Control> make_profile_control(const DeviceProfile& profile) {
  return std::make_unique<ProfileControl>(profile);
}

void resolve_execution_parameters(Problem& problem, const DeviceProfile& profile,
                                  const std::map<ParameterKind, std::vector<double>>& suggested) {
  const auto control = make_profile_control(profile);
  resolve_execution_parameters(problem, *control, suggested);
}

std::unique_ptr<Evaluator> make_simulated(const DeviceProfile& profile, const Problem& problem,
                                          const SearchSpace& space, const SimulationOptions& options) {
  return std::make_unique<Simulated>(profile, problem, space, options);
}

Problem full_load_problem() {
  // The embedded problem file with the sources in place of the file name.
  std::string text(ergotune_embedded_full_load_toml, ergotune_embedded_full_load_toml_size);
  const auto begin = text.find("source = {");
  text.erase(begin, text.find('\n', begin) - begin);
  const std::string gpu(ergotune_embedded_full_load_cl, ergotune_embedded_full_load_cl_size);
  const std::string cpu(ergotune_embedded_full_load_c, ergotune_embedded_full_load_c_size);
  for (const auto& [language, source] : {std::pair{"opencl", gpu}, {"cuda", gpu}, {"c", cpu}}) {
    text += fmt::format("\n[kernel.source.{}]\ntext = '''\n{}'''\n", language, source);
  }
  return parse_problem(text, "full_load.toml");
}

}  // namespace ergotune

// Measures on a fake GPU in virtual time: its physics (tests/fakes/nvml/board_model.hpp) under the clocks and limits
// of a configuration, with the noise of a good sensor. Beside it the truth: where the GPU comes to rest in the end.
#pragma once

#include <cmath>
#include <functional>

#include "ergotune/random.hpp"
#include "evaluate/evaluator.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "measure/execution_parameters.hpp"

namespace ergotune::test {

/// What a launch of a configuration is.
struct GpuLoad {
  double mega_cycles = 20, seconds = 0, activity = 1;
};
using LoadOf = std::function<GpuLoad(const Configuration&)>;

class GpuEvaluator : public QueuedEvaluator {
 public:
  GpuEvaluator(fake_nvml::FakeNvml& nvml, std::vector<Parameter> parameters, LoadOf load, std::uint64_t seed)
      : nvml_(nvml), parameters_(std::move(parameters)), load_(std::move(load)), random_(seed) {}

  std::string description() const override { return "fake board"; }
  Provenance provenance() const override { return Provenance::measured; }
  void set_journal(RunJournal* journal) override { journal_ = journal; }

  Measurement measure(const Configuration& configuration) {
    set(configuration);
    const GpuLoad load = load_(configuration);
    auto& gpu = nvml_.gpu();
    fake_nvml::WorkItem work{};
    work.count = 1'000'000'000;
    work.mega_cycles = load.mega_cycles;
    work.seconds = load.seconds;
    work.activity = load.activity;
    work.high_fraction = 1;
    enqueue(nvml_.state(), gpu, work);
    nvml_.pass(0.6);  // settles
    const double energy = gpu.true_energy, done = gpu.work_done, began = nvml_.now();
    double clock = 0, span = 0;
    for (int i = 0; i < 20; ++i) {
      nvml_.pass(0.03);
      clock += gpu.clock_mhz / 20;
    }
    span = nvml_.now() - began;
    const double launches = gpu.work_done - done;
    const double joules = (gpu.true_energy - energy) / launches * (1 + kNoise * random_.normal());
    gpu.queue_head = gpu.queue_tail;
    Measurement m;
    const auto quantity = [](double value, double error) {
      return Quantity{value, error, 10, "fake board", "", Provenance::measured};
    };
    m.quantities["energy"] = quantity(joules, kNoise * joules);
    m.quantities["time"] = quantity(span / launches, 1e-4 * span / launches);
    m.quantities["power"] = quantity(joules * launches / span, kNoise * joules * launches / span);
    m.quantities["core_clock"] = quantity(clock * 1e6, 0);
    m.quantities["temperature"] = quantity(gpu.temperature, 0);
    if (tells_voltage) m.quantities["core_voltage"] = quantity(voltage(gpu, gpu.clock_mhz), 0);
    return m;
  }

  /// J of a launch once the GPU has come to rest: its temperature follows its power, and a limit its clock.
  double true_energy(const Configuration& configuration) {
    set(configuration);
    const GpuLoad load = load_(configuration);
    auto& gpu = nvml_.gpu();
    double clock = requested_clock(gpu), power = 0;
    const double grid = gpu.graphics_clocks[0] - gpu.graphics_clocks[1];
    for (;;) {
      double temperature = gpu.ambient;
      for (int i = 0; i < 30; ++i) {
        power = power_at(gpu, load.activity, clock, temperature);
        temperature = gpu.ambient + gpu.thermal_resistance * power;
      }
      if (power <= gpu.power_limit_mw * 1e-3 || clock - grid < bottom_clock(gpu)) break;
      clock -= grid;
    }
    return power * (load.mega_cycles / clock + load.seconds);
  }

  bool tells_voltage = false;

 private:
  static constexpr double kNoise = 0.003;

  EvaluationResult answer(const EvaluationRequest& request) override {
    if (journal_) journal_->about_to_run(request, 0);
    return {.measurement = measure(request.configuration)};
  }

  void set(const Configuration& configuration) {
    auto& gpu = nvml_.gpu();
    for (const auto& [quantity, value] : setting_of(parameters_, configuration)) {
      const auto number = static_cast<std::uint32_t>(std::llround(value));
      if (quantity == ControlQuantity::core_clock_mhz) {
        gpu.locked = 1;
        gpu.locked_min = gpu.locked_max = number;
      }
      if (quantity == ControlQuantity::power_limit_w) gpu.power_limit_mw = number * 1000;
    }
  }

  fake_nvml::FakeNvml& nvml_;
  std::vector<Parameter> parameters_;
  LoadOf load_;
  Random random_;
  RunJournal* journal_ = nullptr;
};

}  // namespace ergotune::test

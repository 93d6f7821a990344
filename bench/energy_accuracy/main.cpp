// How well does a short energy measurement agree with the steady state? Six kernels, each measured again and
// again in shuffled order, with 8 s references in between and the method of today's tools beside it. Reads
// sensors, launches kernels, changes no setting.
//
//   bench_energy_accuracy --seconds 400 --output out     on a GPU
//   bench_energy_accuracy --replay out --budget 0.8      judges the recorded traces again
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/random.hpp"
#include "kernel/configure.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/observers/observation.hpp"
#include "measure/timing/timing.hpp"
#include "measure/timing/workload.hpp"
#include "verdict.hpp"

namespace ergotune::bench {
namespace {

/// A problem in its default configuration, ready to launch.
struct Subject {
  Problem problem;
  Configuration configuration;
  std::unique_ptr<ProblemBuffers> buffers;
  std::unique_ptr<LoadedKernel> kernel;
  std::unique_ptr<Workload> workload;
  double launch_seconds = 0;
};

std::unique_ptr<Subject> prepare(Device& device, Compiler& compiler, const std::filesystem::path& file) {
  auto subject = std::make_unique<Subject>();
  subject->problem = load_problem(file);
  auto& problem = subject->problem;
  const Constants constants = problem.constants_for(device.info().name, device.info().properties);
  subject->configuration = default_values(problem);
  const Binary binary =
      compiler.compile(make_compile_job(problem, problem.kernel(), device.info(), constants, subject->configuration));
  subject->kernel = device.load(binary);
  subject->buffers = std::make_unique<ProblemBuffers>(device, argument_lists(problem), constants);
  const ConfigurationScope scope(problem.parameters, subject->configuration, constants);
  subject->kernel->bind(make_geometry(problem.kernel().launch, scope.scope()),
                        subject->buffers->bind(problem.kernel().arguments, scope.scope()));
  subject->workload = std::make_unique<KernelWorkload>(device, *subject->kernel);
  const MeasureOptions options;
  Timer timer(device, options);
  timer.once(*subject->workload);
  double best = timer.once(*subject->workload);
  for (int i = 0; i < 4; ++i) best = std::min(best, timer.once(*subject->workload));
  subject->launch_seconds = best;
  return subject;
}

/// The method in common use: the mean time of seven runs, then the median of the GPU's power readings over
/// a second.
void naive(Device& device, Subject& subject, Sensor& power, Run& run) {
  MarkerPool markers(device);
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    device.record(markers[0]);
    subject.workload->launch(1);
    device.record(markers[1]);
    device.synchronise();
    times.push_back(device.seconds_between(markers[0], markers[1]));
  }
  run.naive_time = mean(times);
  std::vector<Reading> readings;
  power.restart();
  const double end = host_seconds() + 1.0;
  const auto chunk = static_cast<std::size_t>(std::max(1.0, 0.005 / subject.launch_seconds));
  std::size_t recorded = 0, awaited = 0;
  while (host_seconds() < end) {
    while (recorded < awaited + 3) {
      subject.workload->launch(chunk);
      device.record(markers[2 + recorded++ % 4]);
    }
    power.read(readings);
    while (awaited < recorded && device.passed(markers[2 + awaited % 4])) ++awaited;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  device.synchronise();
  std::vector<double> watts;
  for (const auto& reading : readings) watts.push_back(reading.value);
  if (!watts.empty()) run.naive_power = median(watts);
}

struct Plan {
  double seconds = 400;
  int measurements = 10, rounds = 5;
  double reference_seconds = 8, budget = 1.0, heat_seconds = 15;
  std::vector<std::string> sensors;
};

class Experiment {
 public:
  Experiment(Device& device, std::vector<std::unique_ptr<Subject>> subjects, const Plan& plan, std::uint64_t seed)
      : device_(device), subjects_(std::move(subjects)), plan_(plan), random_(seed) {
    const auto& info = device.info();
    auto sources = energy_sources(plan.sensors, info.name, info.uuid, info.pci_address, info.is_cpu);
    for (const auto& sensor : sources.sensors)
      fmt::print(stderr, "sensor {} ({})\n", sensor->info().id, sensor->info().name);
    for (const auto& candidate : sources.sensors)
      if (!naive_sensor_ || candidate->info().id.ends_with("/average"))
        naive_sensor_ = open_sensor(candidate->info().id);
    EnergyOptions options;
    options.precision = 0;  // as long as the budget, so that shorter budgets can be judged from the traces
    options.budget = 1e9;
    options.keep_trace = true;
    meter_ = std::make_shared<EnergyMeter>(std::move(sources.sensors), std::move(sources.monitor), options);
    observation_.add(meter_);
  }

  std::vector<Run> run() {
    fmt::print(stderr, "heating the board for {:.0f} s\n", plan_.heat_seconds);
    stream(*subjects_.front(), plan_.heat_seconds / 2);
    stream(*subjects_.back(), plan_.heat_seconds / 2);
    std::vector<Run> runs;
    const std::size_t kernels = subjects_.size();
    for (int round = 0; round < plan_.rounds; ++round) {
      // Each round: a reference of every kernel, and its share of measurements and naive runs, shuffled
      // together.
      struct Item {
        std::size_t kernel;
        RunKind kind;
      };
      std::vector<Item> items;
      const int from = plan_.measurements * round / plan_.rounds, to = plan_.measurements * (round + 1) / plan_.rounds;
      for (std::size_t k = 0; k < kernels; ++k) {
        items.push_back({k, RunKind::reference});
        for (int i = from; i < to; ++i) {
          items.push_back({k, RunKind::measurement});
          items.push_back({k, RunKind::naive});
        }
      }
      random_.shuffle(std::span<Item>(items));
      for (const auto& item : items) runs.push_back(once(*subjects_[item.kernel], item.kind));
      fmt::print(stderr, "round {} of {} done after {:.0f} s\n", round + 1, plan_.rounds, host_seconds() - started_);
    }
    return runs;
  }

 private:
  LaunchStream stream(Subject& subject, double seconds) {
    ObservedConfiguration observed;
    observed.expected_launch_seconds = subject.launch_seconds;
    meter_->register_configuration(observed);
    return observation_.stream(device_, *subject.workload, subject.launch_seconds, seconds);
  }

  Run once(Subject& subject, RunKind kind) {
    Run run;
    run.id = next_id_++;
    run.kernel = subject.problem.name;
    run.kind = kind;
    run.started = host_seconds();
    if (kind == RunKind::naive) {
      if (naive_sensor_) naive(device_, subject, *naive_sensor_, run);
      return run;
    }
    stream(subject, kind == RunKind::reference ? plan_.reference_seconds : plan_.budget);
    run.trace = meter_->trace();
    return run;
  }

  Device& device_;
  std::vector<std::unique_ptr<Subject>> subjects_;
  Plan plan_;
  Random random_;
  std::unique_ptr<Sensor> naive_sensor_;
  std::shared_ptr<EnergyMeter> meter_;
  Observation observation_;
  int next_id_ = 0;
  double started_ = host_seconds();
};

int main_with(int argc, char** argv) {
  CLI::App app{"Accuracy of short energy measurements against 8 s references; changes no setting of the board."};
  Plan plan;
  std::string device_id, output = "energy-accuracy", replay;
  std::vector<std::string> files;
  std::filesystem::path folder = "examples/energy_kernels";
  std::uint64_t seed = 1;
  double budget = 1.0, record = 0;
  VerdictOptions verdict;
  verdict.energy.precision = 0;
  std::string only;
  app.add_option("--seconds", plan.seconds, "Time for the whole experiment, about");
  app.add_option("--output", output, "Folder for traces (CSV) and the table (energy-accuracy.json)");
  app.add_option("--replay", replay, "Judge the traces of this folder again; needs no board");
  app.add_option("--device", device_id, "Device (default: the best)");
  app.add_option("--kernels", folder, "Folder of the problems");
  app.add_option("--problem", files, "Problem files instead of the six of --kernels");
  app.add_option("--measurements", plan.measurements, "Measurements per kernel");
  app.add_option("--budget", budget, "Seconds of launches per measurement, settling included");
  app.add_option("--record", record, "Seconds recorded per measurement (at least the budget), for --replay");
  app.add_option("--reference", plan.reference_seconds, "Seconds of a reference");
  app.add_option("--precision", verdict.energy.precision,
                 "Stop a measurement early at this relative half-width; 0: never");
  app.add_option("--settle-at-least", verdict.energy.settle_at_least, "Seconds before a measurement may begin");
  app.add_option("--settle-at-most", verdict.energy.settle_at_most, "Share of the budget for settling");
  app.add_option("--sensor", plan.sensors, "Sensors by id (default: the device's own)");
  app.add_option("--only", only, "Judge with the sensors whose id ends in this only");
  app.add_option("--seed", seed, "Order of the runs");
  app.footer(
      "Example: bench_energy_accuracy --seconds 400 --output out\n"
      "         bench_energy_accuracy --replay out --budget 0.7 --only energy");
  CLI11_PARSE(app, argc, argv);
  verdict.budget = budget;
  std::vector<Run> runs;
  std::string device_name;
  if (!replay.empty()) {
    runs = read_traces(replay);
  } else {
    if (files.empty())
      for (const char* name : {"fma32", "tensor", "fp64", "copy", "divergent", "short"})
        files.push_back((folder / (std::string(name) + ".toml")).string());
    auto device = open_device(device_id);
    device_name = device->info().name;
    fmt::print(stderr, "device {} ({})\n", device->info().id, device_name);
    auto compiler = device->make_compiler();
    std::vector<std::unique_ptr<Subject>> subjects;
    for (const auto& file : files) {
      subjects.push_back(prepare(*device, *compiler, file));
      fmt::print(stderr, "{}: {:.4g} s a launch\n", subjects.back()->problem.name, subjects.back()->launch_seconds);
    }
    plan.budget = std::max(budget, record);
    // What the measurements leave is for references, which are spread over as many rounds as fit.
    const auto kernels = static_cast<double>(subjects.size());
    plan.heat_seconds = std::min(plan.heat_seconds, plan.seconds / 10);
    const double each = plan.budget + 1.15;
    const double left = plan.seconds - plan.heat_seconds - kernels * plan.measurements * each;
    plan.rounds = std::clamp(static_cast<int>(left / (kernels * (plan.reference_seconds + 0.1))), 2, plan.measurements);
    fmt::print(stderr, "{} kernels x {} measurements, {} references of {:.0f} s each, about {:.0f} s\n",
               subjects.size(), plan.measurements, plan.rounds, plan.reference_seconds,
               plan.heat_seconds + kernels * (plan.measurements * each + plan.rounds * plan.reference_seconds));
    runs = Experiment(*device, std::move(subjects), plan, seed).run();
    write_traces(output, runs);
  }
  if (!only.empty())
    for (auto& run : runs)
      std::erase_if(run.trace.sensors, [&](const SensorTrace& s) { return !s.info.id.ends_with(only); });
  auto document = judge(runs, verdict);
  document["device"] = device_name;
  document["budget_s"] = budget;
  if (replay.empty())
    std::ofstream(std::filesystem::path(output) / "energy-accuracy.json") << document.dump(1) << '\n';
  else
    fmt::print("{}\n", document.dump(1));
  return 0;
}

}  // namespace
}  // namespace ergotune::bench

int main(int argc, char** argv) {
  try {
    return ergotune::bench::main_with(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_energy_accuracy: {}\n", error.what());
    return 2;
  }
}

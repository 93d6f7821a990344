#include "tune/plans/device_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "evaluate/recorded/simulated.hpp"
#include "measure/execution_parameters.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
namespace {

/// The full-load problem for the device of `setup`, with core voltages if they can be read.
Problem load_for(const SetupOptions& setup) {
  Problem problem = full_load_problem();
  const bool live = !setup.run.device.starts_with("sim:") && !setup.run.device.starts_with("replay:");
  if (!live) return problem;
  // The GPU whose clock is set may not be identifiable as the device that the kernel runs on.
  std::string gpu;
  if (!setup.run.controls.empty() && !controls_forbidden()) {
    std::string why_not;
    if (const auto control = usable_control(setup.run.controls.front(), &why_not)) gpu = control->device_key();
  }
  ObserverSpec voltage{"core_voltage", {}, {}};
  if (gpu.starts_with("GPU-")) voltage.options["gpu"] = {Value(gpu)};
  problem.observers.push_back(voltage);
  return problem;
}

[[noreturn]] void refuse_one_clock(const PreparedSession& prepared) {
  std::string why;
  for (const std::string& note : prepared.notes) why += "\n  " + note;
  throw UserError(
      fmt::format("the clocks of {} cannot be set, so there is nothing to fit{}\nTry a recording: ergotune model "
                  "--from FILE, or a simulated device: --device sim:a100",
                  prepared.device.name, why));
}

/// The power limit in W that the device's monitor reads; nullopt: unknown.
std::optional<double> power_limit_of(const std::string& device_key) {
  const auto monitor = monitor_for_control(device_key.starts_with("GPU-") ? "nvml:" + device_key : device_key);
  return monitor ? monitor->read().power_limit_w : std::nullopt;
}

/// s since the epoch of the last sample of the sweep.
double last_measured(const Ledger& ledger) {
  double last = 0;
  for (const ConfigurationIndex index : ledger.order())
    last = std::max(last, ledger.find(index)->measurement.finished_at);
  return last > 0 ? last : wall_seconds();
}

}  // namespace

PowerModel fit_samples(const PowerSampling& sampling) {
  PowerModelOptions options;
  options.low_mhz = sampling.low_mhz;
  options.high_mhz = sampling.high_mhz;
  return fit_power_model(sampling.samples, options);
}

double max_power(const PowerSampling& sampling) {
  double most = 0;
  for (const auto* list : {&sampling.samples, &sampling.throttled})
    for (const PowerSample& sample : *list) most = std::max(most, sample.power_w);
  return most;
}

std::string load_error(const PowerSampling& sampling, std::optional<double> limit_watts) {
  constexpr double kLeastShare = 0.3;  // idle devices draw less; a kernel that loads the whole device draws half of the
                                       // limit or more
  constexpr double kLeastRise = 1.1, kWideRange = 1.5;  // least ratio of powers over the samples, and the ratio of
                                                        // clocks from which it is required
  constexpr const char* kElsewhere =
      "the load ran on another device than the one whose clock was set (--device names where it runs, --control whose "
      "clock is set)";
  const double most = max_power(sampling);
  if (limit_watts && most < kLeastShare * *limit_watts)
    return fmt::format("the power is {:.0f} W of at most {:.0f} W: {}", most, *limit_watts, kElsewhere);
  if (sampling.samples.empty()) return {};
  const auto [low, high] =
      std::minmax_element(sampling.samples.begin(), sampling.samples.end(),
                          [](const PowerSample& a, const PowerSample& b) { return a.clock_mhz < b.clock_mhz; });
  if (high->clock_mhz > kWideRange * low->clock_mhz && high->power_w < kLeastRise * low->power_w)
    return fmt::format("the power is {:.0f} W at {:.0f} MHz and {:.0f} W at {:.0f} MHz: {}", low->power_w,
                       low->clock_mhz, high->power_w, high->clock_mhz, kElsewhere);
  return {};
}

double optimal_clock(const DeviceModel& model) {
  return best_clock(model.model, model.sampling.supported_mhz).value_or(model.model.optimal_clock_mhz.value);
}

std::vector<double> suggested_clocks(const DeviceModel& model, double share) {
  if (!model.model.usable) return {};
  const auto& all = model.sampling.supported_mhz;
  const ClockRange range = suggested_range(model.model, share, all);
  std::vector<double> clocks;
  for (const double f : all) {
    if (f >= range.low_mhz - 1e-6 && f <= range.high_mhz + 1e-6) clocks.push_back(f);
  }
  if (clocks.empty()) clocks.push_back(optimal_clock(model));
  return clocks;
}

std::string driver_of_device(const std::string& gpu, const std::vector<std::string>& sensors) {
  try {
    for (const std::string& id : sensors) {
      if (const auto sensor = open_sensor(id); !sensor->info().driver.empty()) return sensor->info().driver;
    }
    for (const SensorInfo& info : list_sensors()) {
      if (info.uuid == gpu || info.pci_address == gpu) return info.driver;
    }
  } catch (const UserError&) {
    // the caller reports the error when it measures
  }
  return {};
}

namespace {

/// The control of a device that has been swept; null: its clocks cannot be set by that name.
std::unique_ptr<Control> control_of(const std::string& gpu) {
  if (gpu.starts_with("sim:")) return make_profile_control(load_device_profile(gpu.substr(4)));
  std::string why_not;
  try {
    return usable_control(gpu.starts_with("GPU-") ? "nvml:" + gpu : gpu, &why_not);
  } catch (const UserError&) {
    return nullptr;
  }
}

/// Three of the sampled core clocks at up to two memory clocks besides the default: those of at least half of the
/// highest, at which the device takes the same core clocks. Empty where the memory clock cannot be set.
std::vector<ExecutionParameterSpec> memory_sweep(const DeviceModel& model, Control& control) {
  const ControlRange memory = control.range(ControlQuantity::memory_clock_mhz);
  if (!memory.supported || memory.values.size() < 2 || model.sampling.samples.size() < 3) return {};
  std::vector<double> sampled;
  for (const PowerSample& sample : model.sampling.samples)
    sampled.push_back(*std::ranges::min_element(model.sampling.supported_mhz, [&](double a, double b) {
      return std::abs(a - sample.clock_mhz) < std::abs(b - sample.clock_mhz);
    }));
  const std::vector<double> cores = spaced_clocks(sampled, 3);
  std::vector<double> others;
  for (const double mhz : memory.values) {
    const std::vector<double> taken = control.core_clocks_at(mhz);
    const auto takes = [&](double core) { return std::ranges::find(taken, core) != taken.end(); };
    if (mhz != memory.default_value.value_or(memory.values.back()) && mhz >= 0.5 * memory.values.back() &&
        std::ranges::all_of(cores, takes))
      others.push_back(mhz);
  }
  if (others.empty()) return {};
  ExecutionParameterSpec core, other;
  core.choice = other.choice = ExecutionParameterSpec::Choice::list;
  other.kind = ParameterKind::memory_clock_mhz;
  for (const double mhz : cores) core.values.emplace_back(mhz);
  for (const double mhz : spaced_clocks(others, 2)) other.values.emplace_back(mhz);
  return {core, other};
}

/// Samples at other memory clocks, for the memory's term of the model.
void add_memory_samples(DeviceModel& model, const SetupOptions& setup, const DeviceModelOptions& options,
                        const RunInfo& run) {
  const auto control = control_of(model.of.gpu);
  Problem problem = load_for(setup);
  if (control) problem.execution_parameters = memory_sweep(model, *control);
  if (!control || problem.execution_parameters.empty()) return;
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  const auto ledger = prepared.open_ledger({}, options.interrupted);
  ledger->begin_run(run);
  sample_all(*ledger, options.sampling, model.sampling);
  ledger->end_run(ledger->interrupted() ? "interrupted" : "finished");
  if (ledger->interrupted()) throw Error("interrupted while the memory clock was varied");
}

}  // namespace

DeviceModel measure_device_model(const DeviceModelOptions& options) {
  SetupOptions setup = options.setup;
  setup.energy = true;
  PreparedSession prepared = prepare_session(load_for(setup), setup);
  for (const std::string& note : prepared.notes) {
    if (options.notify) options.notify("note: " + note);
  }
  if (prepared.space->size() < 3) refuse_one_clock(prepared);
  auto ledger = prepared.open_ledger({}, options.interrupted);
  RunInfo run;
  run.objective.text = "energy";
  run.plan = "model";
  run.seed = setup.run.seed;
  ledger->begin_run(run);
  DeviceModel model;
  model.of.gpu = prepared.gpu_key.empty() ? prepared.device.id : prepared.gpu_key;
  const auto limit = power_limit_of(model.of.gpu);
  const auto refuse = [&](const PowerSampling& sampling) {
    if (const std::string why = load_error(sampling, limit); !why.empty())
      throw UserError(fmt::format("no power model of {} can be fitted: {}", prepared.device.name, why));
  };
  SamplingOptions sampling = options.sampling;
  sampling.progress = [&](const PowerSample& sample, std::size_t done, std::size_t total) {
    if (options.sampling.progress) options.sampling.progress(sample, done, total);
    PowerSampling first;  // at the highest clock
    first.samples.push_back(sample);
    if (done == 1) refuse(first);
  };
  model.sampling = sample_clocks(*ledger, sampling);
  ledger->end_run(ledger->interrupted() ? "interrupted" : "finished");
  if (ledger->interrupted()) {
    throw Error(fmt::format("interrupted after {} of {} clocks{}", model.sampling.samples.size(),
                            options.sampling.count, prepared.store ? "; the same command goes on from there" : ""));
  }
  model.sampling.device = prepared.device.name;
  refuse(model.sampling);
  model.of.driver = driver_of_device(model.of.gpu, setup.run.sensors);
  model.made_at = last_measured(*ledger);
  ledger.reset();
  prepared.close();
  add_memory_samples(model, setup, options, run);
  model.model = fit_samples(model.sampling);
  constexpr double kFullLoad = 0.6;
  if (const double most = max_power(model.sampling); limit && most < kFullLoad * *limit) {
    model.sampling.notes.push_back(fmt::format(
        "the load drew at most {:.0f} of {:.0f} W: of kernels that draw more the model knows nothing", most, *limit));
  }
  return model;
}

DeviceModel model_of_gpu(const SetupOptions& options, const std::string& device, Control& control,
                         std::vector<std::string>& notes) {
  const ModelledDevice of{control.device_key(), driver_of_device(control.device_key(), options.run.sensors)};
  StoredDeviceModel stored = load_device_model(of, control.range(ControlQuantity::core_clock_mhz).values);
  if (!stored.note.empty()) notes.push_back(stored.note);
  if (stored.model) {
    if (const std::string why = load_error(stored.model->sampling, power_limit_of(of.gpu)); !why.empty()) {
      notes.push_back("the model of this device is fitted again: " + why);
      stored.model.reset();
    }
  }
  if (stored.model && stored.model->model.usable) {
    notes.push_back(fmt::format("clocks by the model of this device ({}): least energy at {:.0f} MHz",
                                iso_time(stored.model->made_at), optimal_clock(*stored.model)));
    return *std::move(stored.model);
  }
  DeviceModelOptions fresh;
  static_cast<SetupOptions&>(fresh.setup) = SetupOptions{};
  fresh.setup.run.device = device;
  fresh.setup.run.controls = options.run.controls;
  fresh.setup.take_over = options.take_over;
  fresh.setup.run.sensors = options.run.sensors;
  fresh.setup.worker_command = options.worker_command;
  fresh.setup.run.use_cache = options.run.use_cache;
  fresh.setup.run.cache_folder = options.run.cache_folder;
  // Stored beside the fit, so that a killed sweep continues.
  const std::filesystem::path file = device_model_file(of.gpu);
  if (!file.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(file.parent_path(), failure);
    if (!failure) fresh.setup.run.store = file.parent_path() / "model.db";
  }
  fresh.interrupted = options.interrupted;
  fresh.notify = options.notify;
  if (options.notify) {
    options.notify(
        "fitting the power-frequency model of this device first, with a kernel that loads all of it (about 20 s)");
    fresh.sampling.progress = [notify = options.notify](const PowerSample& sample, std::size_t done,
                                                        std::size_t total) {
      notify(fmt::format("{} of {}: {:.0f} MHz, {:.1f} W", done, total, sample.clock_mhz, sample.power_w));
    };
  }
  DeviceModel model = measure_device_model(fresh);
  if (!model.model.usable)
    throw UserError(
        fmt::format("no power model of {} can be fitted: {}; give clocks as \"all\", a number, a range or a list",
                    control.id(), model.model.why_not));
  if (!file.empty()) store_device_model(model);
  notes.push_back(fmt::format("the model of this device was fitted now: least energy at {:.0f} MHz{}",
                              optimal_clock(model), file.empty() ? "" : fmt::format("; kept in {}", file.string())));
  return model;
}

}  // namespace ergotune

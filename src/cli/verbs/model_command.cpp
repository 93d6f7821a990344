// ergotune model: power over the core clock, the ridge point, and the clock with the least energy.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "report/power_study.hpp"
#include "tune/plans/device_model.hpp"

namespace ergotune::cli {
namespace {

struct ModelArguments {
  std::optional<std::string> from, device, store;
  std::string figure;
  std::vector<std::string> controls, sensors;
  std::size_t count = 8;
  std::uint64_t seed = 1;
  double share = 0.1;
  bool spaced = false, no_store = false, no_resume = false, dry = false, json = false;
};

DeviceModel measure(const ModelArguments& arguments) {
  DeviceModelOptions options;
  SetupOptions& setup = options.setup;
  setup.run.device = arguments.device.value_or("");
  setup.run.controls = arguments.controls;
  setup.run.sensors = arguments.sensors;
  setup.run.seed = arguments.seed;
  // A sweep on a real GPU takes minutes: its results are stored.
  if (arguments.store) setup.run.store = *arguments.store;
  const bool simulated = setup.run.device.starts_with("sim:");
  if (setup.run.store.empty() && !simulated) setup.run.store = kDefaultStore;
  if (arguments.no_store) setup.run.store.clear();
  setup.resume = !arguments.no_resume;
  options.sampling.count = arguments.count;
  options.sampling.adaptive = !arguments.spaced;
  options.sampling.progress = [](const PowerSample& sample, std::size_t done, std::size_t total) {
    fmt::print(stderr, "{} of {}: {:.0f} MHz, {:.1f} W\n", done, total, sample.clock_mhz, sample.power_w);
  };
  options.interrupted = interruption();
  options.notify = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  DeviceModel model = measure_device_model(options);
  if (!simulated && !arguments.dry && model.model.usable) {
    const auto file = store_device_model(model);
    fmt::print(stderr, "Kept for this device and driver in {}; core_clock_mhz = \"model\" uses it\n", file.string());
  }
  return model;
}

std::string with_bounds(const Estimate& e, const char* format = "{:.0f}") {
  return fmt::format("{} [{}, {}]", fmt::format(fmt::runtime(format), e.value),
                     fmt::format(fmt::runtime(format), e.low), fmt::format(fmt::runtime(format), e.high));
}

void print_ridges(const RidgeComparison& ridges) {
  if (ridges.from_voltage && ridges.from_power)
    fmt::print("  ridge by voltage {} MHz, by power alone {} MHz\n", with_bounds(*ridges.from_voltage),
               with_bounds(*ridges.from_power));
}

/// Plots for the terminal: power as bars, energy per unit of work as marks.
void print_plot(const PowerSampling& sampling, const PowerModel& model) {
  std::vector<PowerSample> sorted = sampling.samples;
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.clock_mhz < b.clock_mhz; });
  double most_power = 0, most_energy = 0, least_energy = std::numeric_limits<double>::infinity();
  for (const PowerSample& s : sorted) {
    most_power = std::max(most_power, s.power_w);
    most_energy = std::max(most_energy, s.power_w / s.clock_mhz);
    least_energy = std::min(least_energy, s.power_w / s.clock_mhz);
  }
  constexpr double kColumns = 40;
  fmt::print("   MHz       W   model  {:<40}  energy per work, relative to the least\n", "power");
  for (const PowerSample& s : sorted) {
    const double energy = s.power_w / s.clock_mhz;
    const auto bar = static_cast<std::size_t>(kColumns * s.power_w / most_power);
    const auto mark = static_cast<std::size_t>(
        most_energy > least_energy ? 24 * (energy - least_energy) / (most_energy - least_energy) : 0);
    fmt::print("{:>6.0f} {:>7.1f} {:>7.1f}  {:<40}  {:>5.2f} {}*\n", s.clock_mhz, s.power_w, model.power(s),
               std::string(bar, '#'), energy / least_energy, std::string(mark, ' '));
  }
}

void print_for_people(const PowerSampling& sampling, const PowerModel& model, const ClockRange& range,
                      const RidgeComparison& ridges) {
  fmt::print("Power over the core clock: {}, {} samples, {}\n", sampling.source, model.samples,
             origin_of(sampling.provenance));
  if (!model.usable) {
    fmt::print("  {}\n", model.why_not);
    return;
  }
  if (model.found) {
    fmt::print("  ridge            {} MHz\n", with_bounds(model.ridge_mhz));
  } else {
    fmt::print("  no ridge:        {}\n", model.why_not);
  }
  fmt::print("  optimal clock    {} MHz (least energy per work, compute-bound; modelled)\n",
             with_bounds(model.optimal_clock_mhz));
  if (const auto best = best_clock(model, sampling.supported_mhz)) fmt::print("  of its clocks    {:.0f} MHz\n", *best);
  fmt::print("  suggested range  {:.0f}-{:.0f} MHz, {:.0f} % of the clocks left out\n", range.low_mhz, range.high_mhz,
             100 * range.removed_share);
  std::string conditions;
  if (const auto memory = range_of(sampling, &PowerSample::memory_clock_mhz))
    conditions += fmt::format(", memory at {:.0f}-{:.0f} MHz", memory->first, memory->second);
  if (const auto temperature = range_of(sampling, &PowerSample::temperature_c))
    conditions += fmt::format(", {:.0f}-{:.0f} degrees C", temperature->first, temperature->second);
  fmt::print("  valid for        {:.0f}-{:.0f} MHz, kernels of up to {:.0f} W{}\n", sampling.low_mhz, sampling.high_mhz,
             max_power(sampling), conditions);
  fmt::print("  idle power       {} W\n  dynamic power    {} mW/MHz\n", with_bounds(model.idle_w, "{:.1f}"),
             with_bounds({1e3 * model.dynamic_w_per_mhz.value, 1e3 * model.dynamic_w_per_mhz.low,
                          1e3 * model.dynamic_w_per_mhz.high},
                         "{:.1f}"));
  if (model.curve.voltage_slope_per_mhz > 0) {
    const Estimate& b = model.voltage_slope_per_mhz;
    fmt::print("  voltage slope    {} % per 100 MHz above the ridge{}\n",
               with_bounds({1e4 * b.value, 1e4 * b.low, 1e4 * b.high}, "{:.1f}"),
               model.voltage_measured ? ", from measured voltages" : "");
  }
  const auto print_term = [](const char* name, const std::optional<Estimate>& e, double scale, const char* unit) {
    if (e)
      fmt::print("  {:<15}  {} {}\n", name, with_bounds({scale * e->value, scale * e->low, scale * e->high}, "{:.1f}"),
                 unit);
  };
  print_term("memory clock", model.memory_w_per_mhz, 1e3,
             fmt::format("mW/MHz from {:.0f} MHz", model.memory_mhz).c_str());
  print_term("temperature", model.temperature_w_per_c, 1,
             fmt::format("W per degree from {:.0f} degrees C", model.temperature_c).c_str());
  print_ridges(ridges);
  if (model.max_power_w) fmt::print("  power cap        {} W\n", with_bounds(*model.max_power_w, "{:.1f}"));
  fmt::print("  (95 % intervals; the curve fits the samples to {:.1f} %)\n\n", 100 * model.relative_deviation);

  print_plot(sampling, model);
  for (const std::string& note : model.notes) fmt::print("note: {}\n", note);
}

void fit(const ModelArguments& arguments) {
  if (arguments.from && arguments.device) throw UserError("give either --from FILE or --device, not both");
  if (arguments.count < 3) throw UserError("--clocks must be at least 3 (5 to see a ridge)");
  if (!(arguments.share > 0 && arguments.share < 1)) throw UserError("--range is a share between 0 and 1, such as 0.1");
  PowerStudy study;
  if (arguments.from) {
    study = study_power(load_power_samples(*arguments.from), arguments.share);
  } else {
    DeviceModel measured = measure(arguments);
    study = study_power(std::move(measured.sampling), std::move(measured.model), arguments.share);
  }
  for (const std::string& note : study.sampling.notes) fmt::print(stderr, "note: {}\n", note);
  if (!study.sampling.samples.empty()) write_figure(arguments.figure, {power_chart(study)});
  if (arguments.json) {
    print_json(power_document(study));
  } else {
    print_for_people(study.sampling, study.model, study.range, study.ridges);
  }
}

}  // namespace

void add_model_command(Verb app) {
  auto arguments = std::make_shared<ModelArguments>();
  Verb verb = app.add_verb("model", "Power over the core clock: the ridge point and the clock with least energy");
  verb.add_option("--from", arguments->from,
                  "Fit recorded data: a Kernel Tuner cache with a clock and a power, a results database, or CSV with "
                  "clock_mhz,power_w[,time_s]");
  verb.add_option("-d,--device", arguments->device,
                  "Where to run the full-load kernel: cuda:0, sim:a100 ... (the best)");
  verb.add_option("-n,--clocks", arguments->count, "How many clocks to sample (8)");
  verb.add_flag("--spaced", arguments->spaced,
                "Space all of them evenly instead of looking where the model is least sure");
  verb.add_option("--range", arguments->share, "Half-width of the suggested range (0.1)");
  verb.add_option("--control", arguments->controls, "The control that sets the clock (the device's own)");
  verb.add_option("--sensor", arguments->sensors, "Sensors to measure with (the device's own)");
  verb.add_option("--seed", arguments->seed, "Seed of a simulated device's noise (1)");
  verb.add_option("--store", arguments->store, "Where live samples are kept (ergotune.db)");
  verb.add_flag("--no-store", arguments->no_store, "Keep no samples");
  verb.add_flag("--no-resume", arguments->no_resume, "Measure anew what is stored");
  verb.add_flag("--dry-run", arguments->dry, "Do not keep the fit for \"model\" in problem files");
  add_figure_option(verb, arguments->figure, "power and energy over the clock");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune model --from cache.json\n"
      "  ergotune model --from samples.csv --json\n"
      "  ergotune model --device sim:h100 --figure power.svg\n"
      "In Python: ergotune.model(\"cuda:0\")");
  verb.callback([arguments] { fit(*arguments); });
}

}  // namespace ergotune::cli

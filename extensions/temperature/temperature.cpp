#include "temperature/temperature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/energy.hpp"
#include "power/sensors/stored_calibration.hpp"
#include "problem/tables/quantity.hpp"
#include "report/result_document.hpp"
#include "tune/session/single_configuration.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kFewest = 8;
/// A slope from a smaller span would show noise rather than the GPU.
constexpr double kLeastSpan = 3;  // °C
/// Chips report whole degrees.
constexpr double kResolution = 1;

bool has_power_cap(const Measurement& run) {
  return std::ranges::any_of(run.warnings,
                             [](const std::string& warning) { return warning.find("power cap") != std::string::npos; });
}

std::vector<double> values_of(const std::vector<Measurement>& runs, const std::string& name) {
  std::vector<double> values;
  for (const Measurement& run : runs)
    if (const auto value = run.value(name)) values.push_back(*value);
  return values;
}

std::string devices_error(const TemperatureStudy& study) {
  if (!study.slopes.contains("power")) return "too few runs with power and temperature";
  if (study.capped)
    return "the device was at its power limit, where power cannot show what the temperature does; take a kernel that "
           "needs less, or a lower clock";
  if (study.hottest - study.coolest < kLeastSpan)
    return fmt::format("the temperature moved by {:.1f} degrees only; --rest lets the device cool in between",
                       study.hottest - study.coolest);
  return {};
}

}  // namespace

std::optional<TemperatureSlope> slope_over_temperature(std::span<const double> celsius, std::span<const double> values,
                                                       double resolution) {
  const std::size_t n = std::min(celsius.size(), values.size());
  if (n < kFewest) return std::nullopt;
  const LineFit line = fit_line(celsius.first(n), values.first(n));
  TemperatureSlope out;
  out.count = n;
  out.mean = mean(values.first(n));
  out.mean_temperature = mean(celsius.first(n));
  double spread = 0, squares = 0;
  std::vector<double> scores;  // x - mean, times the residual
  for (std::size_t i = 0; i < n; ++i) {
    const double x = celsius[i] - out.mean_temperature, residual = values[i] - line.intercept - line.slope * celsius[i];
    spread += x * x;
    squares += residual * residual;
    scores.push_back(x * residual);
  }
  if (!(spread > 1e-9)) return std::nullopt;
  double sum = 0;
  const auto lags = static_cast<std::size_t>(std::cbrt(static_cast<double>(n)));
  for (std::size_t lag = 0; lag <= lags; ++lag) {
    double product = 0;
    for (std::size_t i = lag; i < n; ++i) product += scores[i] * scores[i - lag];
    sum += (lag == 0 ? 1.0 : 2 * (1 - static_cast<double>(lag) / static_cast<double>(lags + 1))) * product;
  }
  const double degrees = static_cast<double>(n - 2);
  out.slope = line.slope;
  // A negative estimate of the correlation must not make the interval shorter than for independent runs.
  const double independent = squares / degrees / spread;
  const double scatter = std::max(sum * static_cast<double>(n) / degrees / (spread * spread), independent);
  const auto [coolest, hottest] =
      std::minmax_element(celsius.begin(), celsius.begin() + static_cast<std::ptrdiff_t>(n));
  const double coarse = out.slope * std::sqrt(2.0 / 12) * resolution / (*hottest - *coolest);
  out.standard_error = std::sqrt(scatter + coarse * coarse);
  const double half = half_width_95(out.standard_error, degrees);
  out.low = out.slope - half;
  out.high = out.slope + half;
  out.deviation = std::sqrt(squares / degrees);
  return out;
}

TemperatureStudy study_temperature(const std::vector<Measurement>& runs) {
  TemperatureStudy study;
  for (const Measurement& run : runs) {
    if (usable(run.status) && run.value("temperature") && run.value("energy")) {
      study.runs.push_back(run);
      study.capped = study.capped || has_power_cap(run);
    } else {
      ++study.failed;
    }
  }
  const std::vector<double> celsius = values_of(study.runs, "temperature");
  if (!celsius.empty()) {
    const auto [coolest, hottest] = std::minmax_element(celsius.begin(), celsius.end());
    study.coolest = *coolest;
    study.hottest = *hottest;
  }
  for (const char* name : {"energy", "power", "time", "core_clock"}) {
    const std::vector<double> values = values_of(study.runs, name);
    if (values.size() != celsius.size()) continue;
    if (const auto slope = slope_over_temperature(celsius, values, kResolution)) study.slopes[name] = *slope;
  }
  study.why_not = devices_error(study);
  return study;
}

double energy_at(const TemperatureStudy& study, const Measurement& run, double celsius) {
  const auto slope = study.slopes.find("energy");
  const double per_degree = slope == study.slopes.end() ? 0 : slope->second.slope;
  return *run.value("energy") - per_degree * (*run.value("temperature") - celsius);
}

EnergyScatter scatter_of(const TemperatureStudy& study, double celsius) {
  std::vector<double> measured, corrected;
  for (const Measurement& run : study.runs) {
    measured.push_back(*run.value("energy"));
    corrected.push_back(energy_at(study, run, celsius));
  }
  if (measured.size() < 2) return {};
  return {std::sqrt(variance(measured)) / mean(measured), std::sqrt(variance(corrected)) / mean(corrected)};
}

namespace {

using Json = nlohmann::ordered_json;

/// Requests the same configuration repeatedly, with rests in which the GPU cools, until there are enough runs or time
/// is up.
class Repeated : public Source {
 public:
  Repeated(ConfigurationIndex index, const TemperatureOptions& options)
      : index_(index), options_(options), began_(host_seconds()) {}

  std::vector<ConfigurationRequest> next(std::size_t) override {
    if (under_way_ || runs_.size() >= options_.runs) return {};
    if (options_.rest > 0 && !runs_.empty() && runs_.size() % options_.every == 0) rest();
    if (!stop().empty()) return {};
    under_way_ = true;
    ConfigurationRequest wanted;
    wanted.index = index_;
    wanted.kind = RowKind::confirmation;  // measured even if it is known
    wanted.objective_quantity = "energy";
    return {wanted};
  }
  void take(const ConfigurationRequest&, const Measurement& measurement, bool) override {
    under_way_ = false;
    runs_.push_back(measurement);
    SessionProgress now;
    now.evaluated = runs_.size();
    now.total = options_.runs;
    now.seconds = host_seconds() - began_;
    now.seconds_left =
        now.seconds / static_cast<double>(runs_.size()) * static_cast<double>(options_.runs - runs_.size());
    if (options_.seconds > 0)
      now.seconds_left = std::min(*now.seconds_left, std::max(0.0, options_.seconds - now.seconds));
    if (options_.progress) options_.progress(now);
  }
  std::string stop() override {
    // Stop after three failures instead of trying hundreds of times.
    if (runs_.size() >= 3 && std::ranges::none_of(runs_, [](const Measurement& m) { return usable(m.status); }))
      return "it does not work";
    return options_.seconds > 0 && host_seconds() - began_ >= options_.seconds ? "time is up" : std::string();
  }
  const std::vector<Measurement>& runs() const { return runs_; }
  double seconds() const { return host_seconds() - began_; }

 private:
  void rest() const {
    const double end = host_seconds() + options_.rest;
    while (host_seconds() < end && !(options_.interrupted && options_.interrupted->load()))
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  ConfigurationIndex index_;
  const TemperatureOptions& options_;
  double began_;
  bool under_way_ = false;
  std::vector<Measurement> runs_;
};

Json slope_document(const std::string& name, const TemperatureSlope& line) {
  return {{"unit", unit_of(name)},
          {"mean", line.mean},
          {"slope_per_degree", line.slope},
          {"low", line.low},
          {"high", line.high},
          {"percent_per_degree", 100 * line.slope / line.mean},
          {"significant", line.significant()},
          {"deviation", line.deviation}};
}

std::string csv_of(const TemperatureStudy& study, std::optional<double> at) {
  std::string text = "finished_at,temperature_c,energy_j,energy_standard_error_j,power_w,time_s,core_clock_hz";
  text += at ? ",corrected_energy_j\n" : "\n";
  for (const Measurement& run : study.runs) {
    const auto reported = [&](const char* name) {
      const auto value = run.value(name);
      return value ? fmt::format("{:.9g}", *value) : std::string();
    };
    text += fmt::format("{:.3f},{},{},{:.4g},{},{},{}", run.finished_at, reported("temperature"), reported("energy"),
                        run.standard_error("energy"), reported("power"), reported("time"), reported("core_clock"));
    text += at ? fmt::format(",{:.9g}\n", energy_at(study, run, *at)) : "\n";
  }
  return text;
}

/// Energy over temperature with the fitted line; with `celsius`, also the energy corrected to that temperature.
Chart chart_of(const PreparedSession& prepared, const TemperatureStudy& study, std::optional<double> celsius) {
  Chart chart;
  chart.title = fmt::format("Energy over temperature: {} on {}", prepared.problem.name, prepared.device.name);
  chart.x_label = "temperature (°C)";
  chart.y_label = "energy of one round (J)";
  chart.note = fmt::format("points: measured, {} runs of one configuration; line and corrected energies: modelled",
                           study.runs.size());
  ChartSeries measured{"measured", {}, {}, false, false, {}}, corrected{"", {}, {}, false, false, {}};
  for (const Measurement& run : study.runs) {
    measured.x.push_back(*run.value("temperature"));
    measured.y.push_back(*run.value("energy"));
    if (!celsius) continue;
    corrected.x.push_back(measured.x.back());
    corrected.y.push_back(energy_at(study, run, *celsius));
  }
  chart.series.push_back(std::move(measured));
  if (const auto found = study.slopes.find("energy"); found != study.slopes.end()) {
    const TemperatureSlope& line = found->second;
    const auto at = [&](double t) { return line.mean + line.slope * (t - line.mean_temperature); };
    chart.series.push_back({fmt::format("{:+.2f} % per °C", 100 * line.slope / line.mean),
                            {study.coolest, study.hottest},
                            {at(study.coolest), at(study.hottest)},
                            true,
                            false,
                            {}});
  }
  if (celsius) {
    corrected.name = fmt::format("at {:g} °C, modelled", *celsius);
    chart.series.push_back(std::move(corrected));
  }
  return chart;
}

/// Stores the change of power with temperature for corrected_energy: it is a property of the GPU, not of the kernel.
std::filesystem::path keep(const PreparedSession& prepared, const std::vector<std::string>& sensors,
                           const TemperatureStudy& study) {
  const DeviceInfo& device = prepared.device;
  const EnergySources sources = energy_sources(sensors, device.name, device.uuid, device.pci_address, device.is_cpu);
  const TemperatureSlope& power = study.slopes.at("power");
  return store_temperature_coefficient(sources.sensors.front()->info(),
                                       {power.slope, power.standard_error, study.coolest, study.hottest});
}

PreparedSession prepare(Problem problem, SetupOptions setup, const TemperatureOptions& options) {
  problem.objective = ObjectiveSpec{};
  problem.objective.text = "energy";
  if (setup.run.device.starts_with("sim:") || setup.run.device.starts_with("replay:"))
    throw UserError("temperature measures a device that is here; a simulation or a recording has no temperature");
  setup.energy = true;
  setup.run.jobs = 1;
  // Worker processes would keep the GPU warm during a rest.
  setup.in_process = setup.in_process || options.rest > 0;
  setup.interrupted = options.interrupted;
  return prepare_session(std::move(problem), setup);
}

[[noreturn]] void report_no_slope(const std::vector<Measurement>& runs, const TemperatureStudy& found) {
  const auto failed = std::ranges::find_if(runs, [](const Measurement& m) { return !usable(m.status); });
  throw Error(fmt::format("no slope from {} runs: {}", runs.size(),
                          failed != runs.end() ? to_string(failed->status) + ": " + failed->message
                          : found.runs.size() < 8
                              ? "eight with energy and temperature are needed at least"
                              : "the temperature did not change at all; a rest lets the device cool in between"));
}

}  // namespace

TemperatureRun run_temperature(Problem problem, SetupOptions setup, const TemperatureOptions& options) {
  if (options.runs < 8) throw UserError("--runs must be at least 8, and a few hundred to see a slope");
  if (options.every < 1) throw UserError("--every must be at least 1");
  TemperatureRun run;
  run.prepared = prepare(std::move(problem), setup, options);
  const ConfigurationIndex index = named_configuration(run.prepared, options.configuration);
  run.configuration = run.prepared.space->configuration(index);
  const auto ledger = run.prepared.open_ledger({}, options.interrupted);
  Repeated repeated(index, options);
  ledger->drive(repeated);
  run.seconds = repeated.seconds();
  run.study = study_temperature(repeated.runs());
  if (run.study.slopes.empty()) report_no_slope(repeated.runs(), run.study);
  if (run.study.why_not.empty() && !options.dry) run.kept = keep(run.prepared, setup.run.sensors, run.study);
  if (!options.csv.empty()) write_named_file(options.csv, csv_of(run.study, options.at));
  if (!options.figure.empty())
    write_named_file(options.figure, to_svg({chart_of(run.prepared, run.study, options.at)}));
  return run;
}

Json temperature_document(const TemperatureRun& run, const TemperatureOptions& options) {
  const PreparedSession& prepared = run.prepared;
  const TemperatureStudy& study = run.study;
  Json document{{"problem", prepared.problem.name},
                {"device", prepared.device.id},
                {"device_name", prepared.device.name},
                {"provenance", to_string(prepared.evaluator->provenance())},
                {"configuration", to_json(prepared.space->parameters(), run.configuration)},
                {"runs", study.runs.size()},
                {"failed", study.failed},
                {"seconds", run.seconds},
                {"coolest_c", study.coolest},
                {"hottest_c", study.hottest},
                {"over_temperature", Json::object()},
                {"coefficient", nullptr},
                {"corrected", nullptr}};
  for (const auto& [name, line] : study.slopes) document["over_temperature"][name] = slope_document(name, line);
  if (study.why_not.empty()) {
    const TemperatureSlope& power = study.slopes.at("power");
    document["coefficient"] = {{"watts_per_degree", power.slope},
                               {"low", power.low},
                               {"high", power.high},
                               {"kept_in", run.kept.empty() ? Json(nullptr) : Json(run.kept.string())}};
  } else {
    document["why_not"] = study.why_not;
  }
  if (options.at && study.slopes.contains("energy")) {
    const EnergyScatter scatter = scatter_of(study, *options.at);
    const TemperatureSlope& energy = study.slopes.at("energy");
    document["corrected"] = {{"celsius", *options.at},
                             {"provenance", to_string(Provenance::modelled)},
                             {"energy", energy.mean + energy.slope * (*options.at - energy.mean_temperature)},
                             {"scatter_measured", scatter.measured},
                             {"scatter_corrected", scatter.corrected}};
  }
  return document;
}

}  // namespace ergotune

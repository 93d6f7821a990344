#include "report/power_study.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "report/result_document.hpp"
#include "tune/plans/device_model.hpp"
#include "tune/session/single_configuration.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Estimate& estimate) {
  return {{"value", number_or_null(estimate.value)},
          {"low", number_or_null(estimate.low)},
          {"high", number_or_null(estimate.high)}};
}

/// What a sample knows of its conditions, by its name in the document.
const std::pair<const char*, std::optional<double> PowerSample::*> kConditions[] = {
    {"memory_clock_mhz", &PowerSample::memory_clock_mhz}, {"temperature_c", &PowerSample::temperature_c}};

Json ridges_document(const RidgeComparison& ridges) {
  return {{"from_voltage_mhz", ridges.from_voltage ? to_json(*ridges.from_voltage) : Json(nullptr)},
          {"from_power_mhz", ridges.from_power ? to_json(*ridges.from_power) : Json(nullptr)}};
}

/// The trace's file if the user names none; removed when the verb ends.
struct ScratchFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("ergotune-trace-{}.csv", ::getpid());
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

Json series_document(const TraceSeries& series, double load_seconds) {
  Json one{{"series", series.name}, {"values", series.time.size()}};
  if (const auto settling = settling_of(series, load_seconds)) {
    one["before"] = number_or_null(settling->before);
    one["final"] = number_or_null(settling->final);
    one["most"] = number_or_null(settling->most);
    one["band"] = number_or_null(settling->band);
    one["settling_seconds"] = settling->seconds ? Json(*settling->seconds) : Json(nullptr);
    one["drift_per_second"] = number_or_null(settling->drift);
  }
  return one;
}

}  // namespace

std::optional<std::pair<double, double>> range_of(const PowerSampling& sampling,
                                                  std::optional<double> PowerSample::*condition) {
  std::optional<std::pair<double, double>> range;
  for (const PowerSample& sample : sampling.samples) {
    const auto value = sample.*condition;
    if (!value) return std::nullopt;
    if (!range) range = {*value, *value};
    range = {std::min(range->first, *value), std::max(range->second, *value)};
  }
  return range;
}

PowerStudy study_power(PowerSampling sampling, PowerModel model, double share) {
  if (!(share > 0 && share < 1)) throw UserError("the suggested range is a share between 0 and 1, such as 0.1");
  PowerStudy study{std::move(sampling), std::move(model), {}, {}};
  study.ridges = compare_ridges(study.sampling.samples);
  if (study.model.usable) study.range = suggested_range(study.model, share, study.sampling.supported_mhz);
  return study;
}

PowerStudy study_power(PowerSampling sampling, double share) {
  PowerModel model = fit_samples(sampling);
  return study_power(std::move(sampling), std::move(model), share);
}

std::string origin_of(Provenance provenance) {
  return provenance == Provenance::replayed ? "recorded" : to_string(provenance);
}

Json power_document(const PowerStudy& study) {
  const auto& [sampling, model, ridges, range] = study;
  const auto best = model.usable ? best_clock(model, sampling.supported_mhz) : std::nullopt;
  Json document{{"found", model.found},
                {"ridge_mhz", model.found ? to_json(model.ridge_mhz) : Json(nullptr)},
                {"optimal_clock_mhz", model.usable ? to_json(model.optimal_clock_mhz) : Json(nullptr)},
                {"best_supported_clock_mhz", best ? Json(*best) : Json(nullptr)},
                {"suggested_range_mhz", model.usable ? Json::array({range.low_mhz, range.high_mhz}) : Json(nullptr)},
                {"removed_share", model.usable ? Json(range.removed_share) : Json(nullptr)},
                {"valid_for", model.usable ? Json{{"clock_mhz", {sampling.low_mhz, sampling.high_mhz}},
                                                  {"power_w", max_power(sampling)}}
                                           : Json(nullptr)}};
  for (const auto& [name, member] : kConditions)
    if (const auto range = range_of(sampling, member); range && model.usable)
      document["valid_for"][name] = {range->first, range->second};
  Json parameters = Json::object();
  if (model.usable) {
    parameters["idle_w"] = to_json(model.idle_w);
    parameters["dynamic_w_per_mhz"] = to_json(model.dynamic_w_per_mhz);
    if (model.curve.voltage_slope_per_mhz > 0)
      parameters["voltage_slope_per_mhz"] = to_json(model.voltage_slope_per_mhz);
    if (model.max_power_w) parameters["max_power_w"] = to_json(*model.max_power_w);
    if (model.memory_w_per_mhz) parameters["memory_w_per_mhz"] = to_json(*model.memory_w_per_mhz);
    if (model.temperature_w_per_c) parameters["temperature_w_per_c"] = to_json(*model.temperature_w_per_c);
    // Where the curve of the core clock holds; a term adds to it.
    if (model.memory_mhz > 0) parameters["memory_clock_mhz"] = model.memory_mhz;
    if (model.temperature_c > 0) parameters["temperature_c"] = model.temperature_c;
  }
  document["parameters"] = std::move(parameters);
  document["ridges"] = ridges_document(ridges);
  document["why_not"] = model.why_not.empty() ? Json(nullptr) : Json(model.why_not);
  document["relative_deviation"] = model.relative_deviation;
  document["voltage_measured"] = model.voltage_measured;
  document["source"] = sampling.source;
  document["device"] = sampling.device;
  document["provenance"] = to_string(sampling.provenance);
  Json samples = Json::array();
  for (std::size_t i = 0; i < sampling.samples.size(); ++i) {
    const PowerSample& s = sampling.samples[i];
    samples.push_back({{"clock_mhz", s.clock_mhz},
                       {"power_w", s.power_w},
                       {"time_s", number_or_null(sampling.time_s[i])},
                       {"voltage_v", s.voltage_v ? Json(*s.voltage_v) : Json(nullptr)},
                       {"memory_clock_mhz", s.memory_clock_mhz ? Json(*s.memory_clock_mhz) : Json(nullptr)},
                       {"temperature_c", s.temperature_c ? Json(*s.temperature_c) : Json(nullptr)},
                       {"modelled_power_w", model.usable ? Json(model.power(s)) : Json(nullptr)}});
  }
  document["samples"] = std::move(samples);
  document["throttled"] = Json::array();
  for (const PowerSample& s : sampling.throttled)
    document["throttled"].push_back({{"clock_mhz", s.clock_mhz}, {"power_w", s.power_w}});
  Json notes = sampling.notes;
  for (const std::string& note : model.notes) notes.push_back(note);
  document["notes"] = std::move(notes);
  return document;
}

Chart power_chart(const PowerStudy& study) {
  const PowerSampling& sampling = study.sampling;
  const PowerModel& model = study.model;
  Chart chart;
  chart.title = "Power and energy over the core clock" + (sampling.device.empty() ? "" : ": " + sampling.device);
  chart.x_label = "core clock (MHz)";
  chart.y_label = "power (W)";
  chart.right_label = "energy per 10^6 cycles (J)";
  chart.note = fmt::format("points: {}; lines: modelled", origin_of(sampling.provenance));
  ChartSeries power{"power", {}, {}, false, false, {}}, energy{"energy per work", {}, {}, false, true, {}};
  for (const PowerSample& s : sampling.samples) {
    power.x.push_back(s.clock_mhz);
    power.y.push_back(s.power_w);
    energy.x.push_back(s.clock_mhz);
    energy.y.push_back(s.power_w / s.clock_mhz);
  }
  const auto ends = std::minmax_element(power.x.begin(), power.x.end());
  const double low = *ends.first, high = *ends.second;
  chart.series = {std::move(power), std::move(energy)};
  if (model.usable) {
    ChartSeries curve{"modelled power", {}, {}, true, false, {}}, cost{"modelled energy", {}, {}, true, true, {}};
    constexpr int kPoints = 120;
    for (int i = 0; i <= kPoints; ++i) {
      const double f = low + (high - low) * i / kPoints;
      curve.x.push_back(f);
      curve.y.push_back(model.curve.power(f));
      cost.x.push_back(f);
      cost.y.push_back(model.curve.energy_per_megacycle(f));
    }
    chart.series.push_back(std::move(curve));
    chart.series.push_back(std::move(cost));
    if (model.found) chart.bands.push_back({model.ridge_mhz.low, model.ridge_mhz.high, "ridge"});
  }
  return chart;
}

RecordedTrace record_trace(ProblemFile problem, SetupOptions setup, const TraceRequest& request) {
  ScratchFile scratch;
  const std::filesystem::path file = request.csv.empty() ? scratch.path : std::filesystem::absolute(request.csv);
  ObserverSpec spec{"trace", {}, {}};
  spec.options["file"] = {Value(file.string())};
  spec.options["before"] = {Value(request.before)};
  spec.options["seconds"] = {Value(request.seconds)};
  spec.options["after"] = {Value(request.after)};
  for (const std::string& sensor : problem.run.sensors) spec.options["sensors"].emplace_back(sensor);
  // The energy observer would read the same sensors.
  std::erase_if(problem.observers,
                [](const ObserverSpec& other) { return other.name == "trace" || other.name == "energy"; });
  problem.observers.push_back(std::move(spec));
  problem.objective = ObjectiveSpec{};
  problem.objective.text = "time";
  if (setup.run.device.starts_with("sim:") || setup.run.device.starts_with("replay:"))
    throw UserError("trace records a device that is here; a simulation or a recording has no power over time");
  setup.run.sensors.clear();
  setup.energy = false;
  setup.run.jobs = 1;
  const double all = request.before + request.seconds + request.after;
  setup.run.energy_seconds = std::max(setup.run.energy_seconds, request.seconds);  // sets how long a stream may be
  setup.run.time_limit = std::max(setup.run.time_limit, 2 * all + 30);
  RecordedTrace recorded{prepare_session(std::move(problem), setup), {}, {}, {}};
  PreparedSession& prepared = recorded.prepared;
  if (setup.notify)
    for (const std::string& note : prepared.notes) setup.notify("note: " + note);
  const ConfigurationIndex index = named_configuration(prepared, request.configuration);
  recorded.configuration = prepared.space->configuration(index);
  if (setup.notify) setup.notify(fmt::format("recording for about {:.0f} s", all + 1));
  {
    const auto ledger = prepared.open_ledger({}, setup.interrupted);
    ListSource single({index});
    ledger->drive(single);
    const ConfigurationResult* entry = ledger->find(index);
    if (entry == nullptr) throw Error("interrupted");
    recorded.measurement = entry->measurement;
  }
  const auto text = read_file(file);
  if (text && usable(recorded.measurement.status)) recorded.trace = trace_from_csv(*text, {file.string(), 0, 0});
  return recorded;
}

Json trace_document(const RecordedTrace& recorded) {
  const auto& [prepared, configuration, measurement, recording] = recorded;
  const PowerTrace& trace = *recording;
  Json document{{"problem", prepared.problem.name},
                {"device", prepared.device.id},
                {"device_name", prepared.device.name},
                {"provenance", "measured"},
                {"configuration", to_json(prepared.space->parameters(), configuration)},
                {"load_seconds", trace.load_seconds},
                {"launches", trace.launches}};
  for (const char* key : {"power", "gpu", "reasons"}) document[key] = Json::array();
  for (const TraceSeries& series : trace.power)
    document["power"].push_back(series_document(series, trace.load_seconds));
  for (const TraceSeries& series : trace.gpu) document["gpu"].push_back(series_document(series, trace.load_seconds));
  for (const auto& reason : trace.reasons)
    document["reasons"].push_back({{"reason", reason.name}, {"from", reason.from}, {"to", reason.to}});
  return document;
}

Chart trace_chart(const RecordedTrace& recorded) {
  const PreparedSession& prepared = recorded.prepared;
  const PowerTrace& trace = *recorded.trace;
  Chart chart;
  chart.title = fmt::format("Power over time: {} on {}", prepared.problem.name, prepared.device.name);
  chart.x_label = "time from the first launch (s)";
  chart.y_label = "power (W)";
  chart.right_label = "core clock (MHz)";
  chart.note = fmt::format("measured; {} launches in {:.2f} s; each line includes its sensor's own window",
                           trace.launches, trace.load_seconds);
  for (const TraceSeries& series : trace.power)
    chart.series.push_back({series.name, series.time, series.value, true, false, {}});
  if (const TraceSeries* clock = trace.find("core_clock_mhz"))
    chart.series.push_back({"core clock", clock->time, clock->value, true, true, {}});
  chart.bands.push_back({0, trace.load_seconds, "launches"});
  return chart;
}

}  // namespace ergotune

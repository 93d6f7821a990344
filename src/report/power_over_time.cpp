#include "report/power_over_time.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "report/result_json.hpp"
#include "tune/session/named_configuration.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

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
  if (setup.tell)
    for (const std::string& note : prepared.notes) setup.tell("note: " + note);
  const ConfigurationIndex index = named_configuration(prepared, request.configuration, request.problem_file);
  recorded.configuration = prepared.space->configuration(index);
  if (setup.tell) setup.tell(fmt::format("recording for about {:.0f} s", all + 1));
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

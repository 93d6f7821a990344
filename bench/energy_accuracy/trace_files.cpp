#include "trace_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "ergotune/error.hpp"

namespace ergotune::bench {
namespace {

/// Rows of a CSV file, header skipped. Our own files only: no quotes, no commas inside.
std::vector<std::vector<std::string>> rows_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw UserError(fmt::format("cannot read {}", file.string()));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    rows.push_back(std::move(cells));
  }
  return rows;
}
double number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

struct File {
  explicit File(const std::filesystem::path& path) : handle(std::fopen(path.c_str(), "w")) {
    if (!handle) throw UserError(fmt::format("cannot write {}", path.string()));
  }
  ~File() { std::fclose(handle); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::FILE* handle;
};

}  // namespace

std::string to_string(RunKind kind) {
  switch (kind) {
    case RunKind::measurement:
      return "measurement";
    case RunKind::reference:
      return "reference";
    case RunKind::naive:
      return "naive";
  }
  return {};
}

void write_traces(const std::filesystem::path& folder, const std::vector<Run>& runs) {
  std::filesystem::create_directories(folder);
  File sensors(folder / "sensors.csv"), readings(folder / "readings.csv"), marks(folder / "marks.csv"),
      gpu(folder / "board.csv"), all(folder / "runs.csv");
  fmt::print(sensors.handle, "sensor,kind,unit_step,update_period,window,lag,gain,offset,repeatability\n");
  // A naive run reads no sensor of the meter.
  const auto traced = std::ranges::find_if(runs, [](const Run& r) { return !r.trace.sensors.empty(); });
  if (traced != runs.end())
    for (const auto& s : traced->trace.sensors)
      fmt::print(sensors.handle, "{},{},{},{},{},{},{},{},{}\n", s.info.id, static_cast<int>(s.info.kind),
                 s.info.unit_step, s.info.update_period, s.info.window, s.info.lag, s.info.gain, s.info.offset,
                 s.info.repeatability);
  fmt::print(readings.handle, "run,sensor,time_s,value\n");
  fmt::print(marks.handle, "run,host_time_s,host_late_s,device_s,launches\n");
  fmt::print(gpu.handle, "run,time_s,core_clock_mhz,memory_clock_mhz,temperature_c,power_w,power_limit_w,reasons\n");
  fmt::print(all.handle, "run,kernel,kind,started_s,queued_at_s,settled_at_s,naive_power_w,naive_time_s\n");
  for (const auto& run : runs) {
    fmt::print(all.handle, "{},{},{},{:.6f},{:.6f},{:.6f},{:.6g},{:.9g}\n", run.id, run.kernel, to_string(run.kind),
               run.started, run.trace.stream.queued_at, run.trace.settled_at, run.naive_power, run.naive_time);
    for (std::size_t s = 0; s < run.trace.sensors.size(); ++s) {
      // A polled value that does not change says nothing: only the polls on both sides of a change are kept.
      const auto& r = run.trace.sensors[s].readings;
      for (std::size_t i = 0; i < r.size(); ++i) {
        const bool changes =
            i == 0 || i + 1 == r.size() || r[i].value != r[i - 1].value || r[i + 1].value != r[i].value;
        if (changes) fmt::print(readings.handle, "{},{},{:.6f},{:.9g}\n", run.id, s, r[i].time, r[i].value);
      }
    }
    for (const auto& m : run.trace.stream.marks)
      fmt::print(marks.handle, "{},{:.7f},{:.7f},{:.9f},{}\n", run.id, m.host_time, m.host_late, m.device_seconds,
                 m.launches);
    for (const auto& [time, state] : run.trace.gpu) {
      std::string reasons;
      for (const auto& reason : state.clock_reasons) reasons += (reasons.empty() ? "" : "+") + reason;
      fmt::print(gpu.handle, "{},{:.4f},{},{},{},{:.5g},{:.5g},{}\n", run.id, time, state.core_clock_mhz.value_or(0),
                 state.memory_clock_mhz.value_or(0), state.temperature_c.value_or(0), state.power_w.value_or(0),
                 state.power_limit_w.value_or(0), reasons);
    }
  }
}

std::vector<Run> read_traces(const std::filesystem::path& folder) {
  std::vector<SensorTrace> sensors;
  for (const auto& row : rows_of(folder / "sensors.csv")) {
    SensorTrace trace;
    trace.info.id = row.at(0);
    trace.info.kind = static_cast<SensorKind>(std::stoi(row.at(1)));
    trace.info.unit_step = number(row.at(2));
    trace.info.update_period = number(row.at(3));
    trace.info.window = number(row.at(4));
    trace.info.lag = number(row.at(5));
    trace.info.repeatability = number(row.at(8));
    sensors.push_back(trace);
  }
  std::vector<Run> runs;
  std::map<int, std::size_t> at;
  for (const auto& row : rows_of(folder / "runs.csv")) {
    Run run;
    run.id = std::stoi(row.at(0));
    run.kernel = row.at(1);
    for (const auto kind : {RunKind::measurement, RunKind::reference, RunKind::naive})
      if (to_string(kind) == row.at(2)) run.kind = kind;
    run.started = number(row.at(3));
    run.trace.stream.queued_at = number(row.at(4));
    run.trace.settled_at = number(row.at(5));
    run.naive_power = number(row.at(6));
    run.naive_time = number(row.at(7));
    run.trace.sensors = sensors;
    at[run.id] = runs.size();
    runs.push_back(std::move(run));
  }
  for (const auto& row : rows_of(folder / "readings.csv"))
    runs[at.at(std::stoi(row.at(0)))]
        .trace.sensors.at(static_cast<std::size_t>(std::stoi(row.at(1))))
        .readings.push_back({number(row.at(2)), number(row.at(3))});
  for (const auto& row : rows_of(folder / "marks.csv"))
    runs[at.at(std::stoi(row.at(0)))].trace.stream.marks.push_back(
        {number(row.at(1)), number(row.at(2)), number(row.at(3)), static_cast<std::uint64_t>(std::stoull(row.at(4)))});
  for (const auto& row : rows_of(folder / "board.csv")) {
    DeviceState state;
    state.core_clock_mhz = number(row.at(2));
    state.memory_clock_mhz = number(row.at(3));
    state.temperature_c = number(row.at(4));
    if (const double limit = number(row.at(6)); limit > 0) state.power_limit_w = limit;
    if (row.size() > 7) {  // a last cell that is empty is not there
      std::istringstream reasons(row[7]);
      for (std::string reason; std::getline(reasons, reason, '+');) state.clock_reasons.push_back(reason);
    }
    runs[at.at(std::stoi(row.at(0)))].trace.gpu.emplace_back(number(row.at(1)), state);
  }
  return runs;
}

}  // namespace ergotune::bench

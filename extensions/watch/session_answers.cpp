// The answers of SessionView.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"
#include "kernel/configure.hpp"
#include "measure/energy/power_trace.hpp"
#include "measure/observers/trace_observer.hpp"
#include "report/result_document.hpp"
#include "store/formats/json_values.hpp"
#include "watch/session_view.hpp"

namespace ergotune::serve {
namespace {

/// The name under which the observer stores it: workers do not know the names of execution parameters.
std::string called(const std::vector<Parameter>& parameters, const Configuration& configuration, bool all_names) {
  std::string message;
  for (std::size_t i = 0; i < configuration.size(); ++i) {
    if (i > 0) message += ',';
    if (all_names || parameters[i].kind == ParameterKind::code) message += parameters[i].name + "=";
    message += configuration[i].to_string();
  }
  return message;
}

/// Looks in the folder named by the problem's observer, relative to the store's folder or absolute; nullopt if there is
/// no readable trace.
std::optional<PowerTrace> stored_trace(const Problem& problem, const std::vector<Parameter>& parameters,
                                       const Configuration& configuration, const std::filesystem::path& store) {
  for (const ObserverSpec& observer : problem.observers) {
    if (observer.name != "trace") continue;
    const auto option = observer.options.find("folder");
    std::filesystem::path folder = "traces";
    if (option != observer.options.end() && !option->second.empty()) folder = option->second.front().to_string();
    for (const bool all_names : {false, true}) {
      const auto file = trace_file(folder_of(store) / folder, called(parameters, configuration, all_names));
      const auto text = read_file(file);
      if (!text) continue;
      try {
        return trace_from_csv(*text, {file.string(), 0, 0});
      } catch (const UserError&) {
        return std::nullopt;
      }
    }
  }
  return std::nullopt;
}

using Object = nlohmann::ordered_json;

/// A document is recomputed only after this multiple of the time that it took, so that requests of pages never occupy a
/// core.
constexpr double kRest = 20;
constexpr double kLeastRest = 1;

Object run_json(const RunInfo& run) {
  return {{"run", run.id},
          {"objective", run.objective.text},
          {"strategy", run.strategy},
          {"plan", run.plan},
          {"seed", run.seed},
          {"phase", run.phase},
          {"started_at", run.started_at},
          {"ended_at", run.ended_at},
          {"ended", run.ended},
          {"confirmed", run.confirmed}};
}

/// The device's id in "name (id)".
std::string device_id(const std::string& device) {
  const std::size_t open = device.rfind('(');
  return open == device.npos || !device.ends_with(')') ? device : device.substr(open + 1, device.size() - open - 2);
}

Object macros_of(const Problem& problem, const std::vector<Parameter>& parameters, const Configuration& configuration) {
  Object kernels = Object::array();
  for (const Kernel& kernel : problem.kernels) {
    Object macros = Object::object();
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (const auto name = macro_name(kernel, parameters[p]); !name.empty())
        macros[std::string(name)] = to_json(configuration[p]);
    kernels.push_back(
        {{"kernel", kernel.name.empty() ? kernel.function.text() : kernel.name}, {"macros", std::move(macros)}});
  }
  return kernels;
}

}  // namespace

std::string SessionView::results(std::int64_t after, std::size_t limit, std::int64_t& last) const {
  const auto begin = std::upper_bound(log_.begin(), log_.end(), std::pair(after, ~std::size_t{0}));
  const auto count = std::min<std::size_t>(limit, static_cast<std::size_t>(log_.end() - begin));
  std::set<std::size_t> changed;
  for (auto it = begin; it != begin + static_cast<std::ptrdiff_t>(count); ++it) changed.insert(it->second);
  last = count > 0 ? (begin + static_cast<std::ptrdiff_t>(count - 1))->first : std::max(after, std::int64_t{0});
  const bool more = begin + static_cast<std::ptrdiff_t>(count) != log_.end();
  return fmt::format("{{\"after\":{},\"last\":{},\"more\":{},\"total\":{},\"results\":{}}}", after, last, more, size(),
                     columns_json(source_.recording, *objective_, {changed.begin(), changed.end()},
                                  {.seconds = &source_.seconds, .stages = &stages_, .gpus = &gpus_}));
}

std::optional<std::string> SessionView::worked_out(Work& work, const std::optional<std::string>& objective,
                                                   bool findings) {
  using namespace std::chrono_literals;
  if (objective) (void)report_objective(source_.recording, objective);  // reports an invalid objective at once
  if (work.future.valid()) {
    if (work.future.wait_for(0s) != std::future_status::ready) return std::nullopt;
    work.text = work.future.get();
    work.cost = host_seconds() - work.done_at;
    work.done_at = host_seconds();
  }
  const std::string wanted = objective.value_or("");
  const bool same = !work.text.empty() && work.objective == wanted;
  const bool rests = host_seconds() - work.done_at < std::max(kLeastRest, kRest * work.cost) && live_;
  if (same && (work.last == last() || rests)) return work.text;
  work.objective = wanted;
  work.last = last();
  work.done_at = host_seconds();
  work.future = std::async(std::launch::async, [copy = source_, objective, findings] {
    try {
      const RankedResults ranked = rank_source(copy, objective);
      return json_text(findings ? report_findings(copy, ranked) : report_document(copy, ranked));
    } catch (const std::exception& error) {
      return json_text(Object{{"error", error.what()}});
    }
  });
  return std::nullopt;
}

std::optional<std::string> SessionView::head(const std::optional<std::string>& objective) {
  const auto document = worked_out(head_, objective, false);
  if (!document) return std::nullopt;
  Object runs = Object::array();
  for (const RunInfo& run : runs_) runs.push_back(run_json(run));
  return fmt::format("{{\"session\":{},\"store\":{},\"last\":{},\"runs\":{},\"document\":{}}}", session_,
                     json_text(Object(file_.string())), last(), json_text(runs), *document);
}

std::optional<std::string> SessionView::findings(const std::optional<std::string>& objective) {
  return worked_out(findings_, objective, true);
}

std::string SessionView::configuration(std::size_t row) {
  if (row >= size()) throw UserError(fmt::format("this session has no configuration {}", row));
  const Recording& recording = source_.recording;
  const Configuration configuration = recording.configuration(row);
  const std::vector<StoredRow> rows = scan_.whole(counted_[row]);
  const std::vector<StoredRow> counting = current_rows(rows, runs_);
  Object document{{"configuration", to_json(recording.parameters, configuration)}};
  if (!counting.empty()) document.update(to_json(counting.front().measurement));
  const auto value = counting.empty() ? std::nullopt : objective_->value(counting.front().measurement);
  document["objective"] = value ? Object(*value) : Object(nullptr);
  document["confirmation_repeats"] = counting.empty() ? 0 : counting.front().rounds;
  document["measurements"] = Object::array();
  for (const StoredRow& one : rows) {
    Object entry{{"row", one.id},
                 {"kind", to_string(one.kind)},
                 {"run", one.run},
                 {"stage", one.stage},
                 {"device", one.gpu},
                 {"finished_at", one.measurement.finished_at},
                 {"compile_seconds", one.measurement.compile_seconds},
                 {"verify_seconds", one.measurement.verify_seconds},
                 {"measure_seconds", one.measurement.measure_seconds},
                 {"times", one.measurement.times}};
    entry.update(to_json(one.measurement));
    document["measurements"].push_back(std::move(entry));
  }
  document["trace"] = nullptr;
  if (const auto trace =
          problem_ ? stored_trace(*problem_, recording.parameters, configuration, file_) : std::nullopt) {
    document["trace"] = {{"load_seconds", trace->load_seconds},
                         {"launches", trace->launches},
                         {"power", Object::array()},
                         {"gpu", Object::array()}};
    for (const auto& [where, list] : {std::pair("power", &trace->power), std::pair("gpu", &trace->gpu)})
      for (const TraceSeries& series : *list)
        document["trace"][where].push_back({{"name", series.name}, {"time", series.time}, {"value", series.value}});
  }
  document["macros"] = problem_ ? macros_of(*problem_, recording.parameters, configuration) : Object::array();
  Object code = Object::object();
  for (std::size_t p = 0; p < recording.parameters.size(); ++p)
    if (problem_ && recording.parameters[p].values.size() > 1)
      code[recording.parameters[p].name] = to_json(configuration[p]);
  document["command"] = nullptr;
  if (problem_ && !problem_->file.empty())
    document["command"] = shell_command({"ergotune", "measure", problem_->file.string(), "--device",
                                         device_id(recording.device), "--config", json_text(code)});
  return json_text(document);
}

void SessionView::find_live() {
  const std::string prefix = file_.filename().string() + "-live-";
  if (live_ && live_->owner_lives() && !live_->state().empty()) {
    std::error_code gone;
    if (std::filesystem::exists(live_path_, gone)) return;
  }
  live_.reset();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(file_), error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    auto file = LiveFile::open(entry.path());
    if (!file || !file->owner_lives()) continue;
    const Object state = Object::parse(file->state(), nullptr, false);
    if (!state.is_object() || state.value("session", std::int64_t{0}) != session_) continue;
    on_cpu_ = state.value("on_cpu", false);
    live_path_ = entry.path();
    live_ = std::move(file);
    return;
  }
}

std::string SessionView::state() {
  if (host_seconds() - looked_at_ > 1) {
    looked_at_ = host_seconds();
    find_live();
  }
  std::string live = live_ ? live_->state() : std::string();
  // a session that has ended is not live, though its process may still exist
  if (live.empty() || !Object::accept(live) || (!runs_.empty() && runs_.back().ended_at > 0)) live = "null";
  return fmt::format("{{\"live\":{},\"run\":{},\"rows\":{},\"last\":{}}}", live,
                     runs_.empty() ? "null" : json_text(run_json(runs_.back())), size(), last());
}

std::string SessionView::samples(std::uint64_t& next) const {
  if (!live_) return {};
  const std::vector<LiveSample> list = live_->samples(next);
  if (list.empty()) return {};
  Object t = Object::array(), power = t, core = t, memory = t, heat = t, window = t, reasons = t, writer = t;
  const auto number = [](float value) {
    return std::isfinite(value) ? Object(std::round(value * 1000.0) / 1000.0) : Object(nullptr);
  };
  for (const LiveSample& sample : list) {
    t.push_back(std::round(sample.time * 1000) / 1000);
    power.push_back(number(sample.power_w));
    core.push_back(number(sample.core_mhz));
    memory.push_back(number(sample.memory_mhz));
    heat.push_back(number(sample.temperature_c));
    window.push_back(sample.window);
    writer.push_back(sample.writer);
    reasons.push_back(std::string(sample.reasons));
  }
  return json_text(Object{{"next", next},
                          {"time", t},
                          {"power_w", power},
                          {"core_mhz", core},
                          {"memory_mhz", memory},
                          {"temperature_c", heat},
                          {"window", window},
                          {"runner", writer},
                          {"reasons", reasons}});
}

std::string SessionView::log(std::uint64_t& next) const {
  const std::uint64_t end = lines_before_ + lines_.size();
  if (next >= end) return {};
  std::string out = "[";
  for (std::uint64_t n = std::max(next, lines_before_); n < end; ++n) {
    if (out.size() > 1) out += ',';
    out += lines_[n - lines_before_];
  }
  next = end;
  return out + "]";
}

bool SessionView::ask(const std::string& what) {
  find_live();
  if (!live_) return false;
  if (what == "resume") live_->take_back(kPause);
  if (what == "pause") live_->ask(kPause);
  if (what == "stop") live_->ask(kStopAfterCurrent);
  if (what == "confirm") live_->ask(kConfirmNow);
  return true;
}

bool SessionView::quiet() const { return live_ && on_cpu_ && live_->measuring(); }

}  // namespace ergotune::serve

#include "watch/session_view.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "ergotune/error.hpp"
#include "report/result_document.hpp"
#include "search/ranking.hpp"
#include "store/formats/json_values.hpp"
#include "store/result_set.hpp"
#include "store/sqlite/stored_session.hpp"

namespace ergotune::serve {
namespace {

constexpr std::size_t kMostLines = 300;

SessionInfo session_of(const Store& store, std::int64_t number) {
  const auto info = store.session_info(number);
  if (!info) throw UserError(fmt::format("this store has no session {}", number), {store.file().string(), 0, 0});
  return *info;
}

/// Device and inode number of a file; zeros if it does not exist.
std::pair<std::uint64_t, std::uint64_t> identity_of(const std::filesystem::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 ? std::pair<std::uint64_t, std::uint64_t>{info.st_dev, info.st_ino}
                                          : std::pair<std::uint64_t, std::uint64_t>{};
}

}  // namespace

SessionView::SessionView(std::filesystem::path file, std::int64_t session)
    : file_(std::filesystem::absolute(file)),
      identity_(identity_of(file_)),
      session_(session),
      store_(Store::open(file_, true)),
      scan_(file_, session) {
  const SessionInfo info = session_of(store_, session_);
  Recording& recording = source_.recording;
  recording.file = file_;
  recording.name = info.problem;
  recording.device = info.device;
  recording.objective = info.objective;
  try {
    problem_ = stored_problem(store_, session_);
  } catch (const UserError& error) {
    recording.warnings.push_back(error.message());
  }
  recording.parameters = stored_parameters(info, problem_);
  if (problem_) {
    recording.restrictions = problem_->restrictions;
    recording.restrictions_known = true;
    recording.metrics = problem_->metrics;
    if (info.runs == 0) recording.objective = problem_->objective;
  }
  value_of_.resize(recording.parameters.size());
  for (std::size_t p = 0; p < recording.parameters.size(); ++p)
    for (std::size_t v = 0; v < recording.parameters[p].values.size(); ++v)
      value_of_[p].emplace(recording.parameters[p].values[v], static_cast<std::uint32_t>(v));
  source_.store = file_;
  add_session(source_, info, store_.environment(session_));
  objective_ = std::make_unique<Objective>(report_objective(recording, std::nullopt));
  refresh_runs();
  find_live();
}

SessionView::~SessionView() = default;

bool SessionView::stands() const { return identity_of(file_) == identity_; }

void SessionView::refresh_runs() {
  std::vector<RunInfo> runs = store_.runs(session_);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool fresh = i >= runs_.size();
    const RunInfo& run = runs[i];
    if (fresh) {
      note(run.started_at, "phase",
           fmt::format("run {} begins: {} by {}", run.id, run.objective.text,
                       run.plan.empty() ? run.strategy : "plan " + run.plan));
    } else if (run.phase != runs_[i].phase) {
      note(wall_seconds(), "phase", run.phase);
    }
    if (run.ended_at > 0 && (fresh || runs_[i].ended_at == 0)) note(run.ended_at, "phase", "ended: " + run.ended);
  }
  runs_ = std::move(runs);
  if (runs_.empty() || runs_.back().objective == source_.recording.objective) return;
  // The new run may have another objective.
  source_.recording.objective = runs_.back().objective;
  objective_ = std::make_unique<Objective>(report_objective(source_.recording, std::nullopt));
  best_.reset();
}

RecordedColumn& SessionView::column(std::string_view name, bool is_metric) {
  const auto [place, added] = column_of_.emplace(std::string(name), source_.recording.columns.size());
  if (added) {
    RecordedColumn fresh;
    fresh.name = std::string(name);
    fresh.is_metric = is_metric;
    fresh.value.assign(size(), NAN);
    fresh.standard_error.assign(size(), 0);
    fresh.n.assign(size(), 1);
    fresh.degrees.assign(size(), 0);
    fresh.origins.push_back({{}, {}, source_.recording.provenance});
    fresh.origin.assign(size(), 0);
    source_.recording.columns.push_back(std::move(fresh));
  }
  return source_.recording.columns[place->second];
}

std::size_t SessionView::row_of(const RowSummary& lean) {
  if (const auto known = row_of_.find(lean.configuration); known != row_of_.end()) return known->second;
  const Configuration configuration = configuration_from(lean.configuration);
  const std::size_t row = size();
  row_of_.emplace(lean.configuration, row);
  Recording& recording = source_.recording;
  for (std::size_t p = 0; p < recording.parameters.size(); ++p) {
    const Value value = p < configuration.size() ? configuration[p] : Value();
    auto& values = recording.parameters[p].values;
    const auto [known, fresh] = value_of_[p].emplace(value, static_cast<std::uint32_t>(values.size()));
    if (fresh) values.push_back(value);
    recording.positions.push_back(known->second);
  }
  recording.statuses.push_back(lean.status);
  for (RecordedColumn& one : recording.columns) {
    one.value.push_back(NAN);
    one.standard_error.push_back(0);
    one.n.push_back(1);
    one.degrees.push_back(0);
    one.origin.push_back(0);
  }
  for (auto* costs :
       {&recording.compile_seconds, &recording.verify_seconds, &recording.run_seconds, &recording.framework_seconds})
    costs->push_back(0);
  if (first_at_ == 0) first_at_ = lean.finished_at;
  source_.seconds.push_back(lean.finished_at - first_at_);
  stages_.push_back(lean.stage);
  gpus_.push_back(lean.gpu);
  counted_.emplace_back();
  return row;
}

void SessionView::set_cells(std::size_t row, const RowSummary& lean) {
  Recording& recording = source_.recording;
  recording.statuses[row] = lean.status;
  recording.messages.erase(row);
  if (!lean.message.empty()) recording.messages[row] = lean.message;
  for (RecordedColumn& one : recording.columns) one.value[row] = NAN;
  for (const RowSummary::Cell& cell : lean.cells) {
    RecordedColumn& one = column(cell.name, cell.is_metric);
    one.value[row] = cell.value;
    one.standard_error[row] = std::isfinite(cell.standard_error) ? cell.standard_error : 0;
    one.n[row] = cell.n;
    one.degrees[row] = cell.degrees;
    if (cell.is_metric) continue;
    const Origin origin{std::string(cell.method), std::string(cell.sensor), cell.provenance};
    const auto found = std::ranges::find(one.origins, origin);
    one.origin[row] = static_cast<std::uint32_t>(found - one.origins.begin());
    if (found == one.origins.end()) one.origins.push_back(origin);
  }
  recording.compile_seconds[row] = static_cast<float>(lean.compile_seconds);
  recording.verify_seconds[row] = static_cast<float>(lean.verify_seconds);
  recording.run_seconds[row] = static_cast<float>(lean.measure_seconds);
  recording.framework_seconds[row] = static_cast<float>(lean.tuner_seconds);
}

void SessionView::take(const RowSummary& lean) {
  const bool known = row_of_.contains(lean.configuration);
  // a row of a configuration without a measurement
  if (!known && lean.kind != RowKind::search && lean.kind != RowKind::confirmed) return;
  const std::size_t row = row_of(lean);
  counted_[row].push_back(lean.id);
  log_.emplace_back(lean.id, row);
  if (known) {
    again_.push_back(row);
    return;
  }
  set_cells(row, lean);
  if (!usable(lean.status)) {
    note(lean.finished_at, "failure",
         fmt::format("{}: {} ({})", to_string(lean.status), most_informative_line(lean.message),
                     describe(source_.recording.parameters, source_.recording.configuration(row))));
    return;
  }
  const auto value = objective_->value(source_.recording.measurement(row));
  const bool larger = objective_->direction() == Direction::maximise;
  if (!value || objective_->kind() == Objective::Kind::pareto ||
      (best_ && (larger ? *value <= *best_ : *value >= *best_)))
    return;
  best_ = value;
  note(lean.finished_at, "best",
       fmt::format("{} {:.5g} {}: {}", objective_->name(), *value, objective_->unit(),
                   describe(source_.recording.parameters, source_.recording.configuration(row))));
}

/// Determines the row that counts for a configuration with several rows.
void SessionView::recount(std::size_t row) {
  const std::vector<StoredRow> counting = current_rows(scan_.whole(counted_[row]), runs_);
  if (counting.empty()) return;
  const StoredRow& counts = counting.front();
  RowSummary lean;
  lean.status = counts.measurement.status;
  lean.message = counts.measurement.message;
  for (const auto& [name, quantity] : counts.measurement.quantities)
    lean.cells.push_back({name, quantity.value, static_cast<float>(quantity.standard_error),
                          static_cast<std::uint32_t>(std::max<std::int64_t>(quantity.n, 1)), false,
                          static_cast<float>(quantity.degrees), quantity.method, quantity.sensor, quantity.provenance});
  for (const auto& [name, value] : counts.measurement.metrics)
    lean.cells.push_back({name,
                          value,
                          static_cast<float>(counts.measurement.standard_error(name)),
                          1,
                          true,
                          static_cast<float>(counts.measurement.degrees(name)),
                          {},
                          {}});
  lean.compile_seconds = counts.measurement.compile_seconds;
  lean.verify_seconds = counts.measurement.verify_seconds;
  lean.measure_seconds = counts.measurement.measure_seconds;
  lean.tuner_seconds = counts.measurement.tuner_seconds;
  set_cells(row, lean);
  Recording& recording = source_.recording;
  recording.confirmations.erase(row);
  if (counts.confirmed_for || counts.searched)
    recording.confirmations[row] = {counts.confirmed_for, counts.rounds, counts.certainty, counts.searched};
}

bool SessionView::update(std::size_t limit) {
  refresh_runs();
  const std::size_t taken = scan_.after(scanned_, limit, [this](const RowSummary& row) {
    scanned_ = row.id;
    try {
      if (row.damaged) throw Error("status or quantities");
      take(row);
    } catch (const Error& error) {
      note(row.finished_at, "failure",
           fmt::format("row {} of the store is damaged and left out: {}", row.id, error.what()));
    }
  });
  for (const std::size_t row : std::set<std::size_t>(again_.begin(), again_.end())) recount(row);
  again_.clear();
  return taken == limit;
}

void SessionView::note(double time, const char* level, std::string text) {
  const nlohmann::ordered_json line{
      {"n", lines_before_ + lines_.size()}, {"time", time}, {"level", level}, {"text", std::move(text)}};
  lines_.push_back(json_text(line));
  if (lines_.size() <= kMostLines) return;
  lines_.pop_front();
  ++lines_before_;
}

}  // namespace ergotune::serve

#include "report/ranked_results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/statistics.hpp"
#include "tune/ledger/energy_by_time.hpp"
#include "tune/plans/device_model.hpp"

namespace ergotune {
namespace {

/// Positions of the rows with a value of the objective; for a configuration that was recorded twice, the first usable
/// row.
std::vector<std::size_t> usable_rows(const ResultSet& results, const Objective& objective) {
  std::vector<std::size_t> rows;
  std::set<Configuration> seen;
  for (std::size_t row = 0; row < results.rows.size(); ++row)
    if (objective.value(results.rows[row].measurement) && seen.insert(results.rows[row].configuration).second)
      rows.push_back(row);
  return rows;
}

Confidence confidence_of(const RankedResults& ranked, const std::vector<std::size_t>& usable) {
  Confidence out;
  if (ranked.objective.kind() == Objective::Kind::pareto || ranked.best.empty()) return out;
  std::vector<MeasuredTwice> pairs;
  for (const std::size_t row : usable)
    if (const StoredRow& twice = ranked.results.rows[row]; twice.rounds > 0 && twice.searched)
      pairs.emplace_back(&*twice.searched, &twice.measurement);
  out.search_repeats = repeatability_of(ranked.objective, pairs);
  const StoredRow& winner = ranked.results.rows[ranked.best.front()];
  if (!ranked.is_confirmed(ranked.best.front())) return out;
  out.confirmation_repeats = winner.rounds;
  if (!winner.certainty) return out;
  out.probability_best = winner.certainty->probability_best;
  if (ranked.objective.kind() == Objective::Kind::single) out.expected_loss = winner.certainty->expected_loss;
  return out;
}

/// The results known to a ledger, whose entries are moved.
ResultSet results_of(const PreparedSession& prepared, Ledger& ledger) {
  ResultSet results;
  results.problem = prepared.problem.name;
  results.attributes = prepared.problem.all_attributes();
  results.device_name = prepared.device.name;
  results.device_id = prepared.device.id;
  results.device = results.device_name + " (" + results.device_id + ")";
  results.goal = prepared.objective->spec();
  results.objective = prepared.objective->name();
  results.provenance = prepared.evaluator->provenance();
  results.parameters = prepared.space->parameters();
  results.metrics = prepared.problem.metrics;
  results.space = prepared.space->size();
  if (prepared.store) {
    results.store = prepared.store->file();
    results.session = prepared.store_session;
  }
  for (ConfigurationResult& entry : ledger.take_entries()) {
    StoredRow& row = results.rows.emplace_back();
    row.configuration = prepared.space->configuration(entry.index);
    row.measurement = std::move(entry.measurement);
    row.gpu = std::move(entry.gpu);
    row.rounds = entry.rounds;
    row.confirmed_for = std::move(entry.confirmed_for);
    row.certainty = entry.certainty;
    row.searched = std::move(entry.searched);
  }
  return results;
}

/// Set if the best clock is at an end of the range that the model suggests: the optimum of this kernel may lie beyond
/// it.
struct ModelEdge {
  std::string parameter;
  double clock = 0;             ///< MHz
  bool lowest = false;          ///< else it is the highest clock
  std::vector<double> widened;  ///< these clocks and those of the device up to a tenth beyond this end
};

std::optional<ModelEdge> model_edge(const PreparedSession& prepared, const RankedResults& ranked) {
  if (!prepared.device_model || ranked.best.empty()) return std::nullopt;
  const auto& parameters = prepared.space->parameters();
  const Configuration& best = ranked.results.rows[ranked.best.front()].configuration;
  const auto& supported = prepared.device_model->sampling.supported_mhz;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind != ParameterKind::core_clock_mhz || parameters[i].values.size() < 2 || supported.empty())
      continue;
    ModelEdge edge{parameters[i].name, best[i].as_real(), false, {}};
    for (const Value& value : parameters[i].values) edge.widened.push_back(value.as_real());
    const auto [low, high] = std::minmax_element(edge.widened.begin(), edge.widened.end());
    constexpr double kClockStep = 0.02;  // clocks closer than this count as equal, as in plans
    edge.lowest = edge.clock - *low <= *high - edge.clock;
    const double end = edge.lowest ? *low : *high;
    if (std::abs(edge.clock - end) > kClockStep * end) continue;
    std::vector<double> beyond;
    for (const double f : supported)
      if (edge.lowest ? f < end - 0.5 : f > end + 0.5) beyond.push_back(f);
    if (beyond.empty()) continue;
    std::ranges::sort(beyond, [&](double a, double b) { return std::abs(a - end) < std::abs(b - end); });
    for (const double f : beyond)
      if (f == beyond.front() || std::abs(f - end) <= 0.1 * end) edge.widened.push_back(f);
    std::ranges::sort(edge.widened);
    return edge;
  }
  return std::nullopt;
}

/// Empty if the best clock is inside the searched range.
std::string note_of_model_edge(const std::optional<ModelEdge>& edge) {
  if (!edge) return {};
  return fmt::format(
      "the best clock, {:.0f} MHz, is at the {} end of what was searched around the optimum of the device's model: "
      "this kernel's optimum may lie beyond; {} = \"all\" looks there",
      edge->clock, edge->lowest ? "lower" : "upper", edge->parameter);
}

/// The remaining budget; nullopt if it is spent or unknown.
std::optional<Budget> remaining_budget(Budget budget, const SessionResult& run) {
  if (budget.joules > 0 || (budget.evaluations > 0 && run.evaluated >= budget.evaluations) ||
      (budget.seconds > 0 && run.seconds >= budget.seconds))
    return std::nullopt;
  if (budget.evaluations > 0) budget.evaluations -= run.evaluated;
  if (budget.seconds > 0) budget.seconds -= run.seconds;
  return budget;
}

/// Opens the session again with the widened range of clocks.
void widen(PreparedSession& prepared, const ModelEdge& edge, const RankedResults& ranked) {
  if (prepared.announce)
    prepared.announce(
        fmt::format("the best clock, {:.0f} MHz, is at the {} end of the range: {:.0f} to {:.0f} MHz are searched",
                    edge.clock, edge.lowest ? "lower" : "upper", edge.widened.front(), edge.widened.back()));
  const auto with_clocks = std::move(prepared.with_clocks);
  const auto model = prepared.device_model;
  std::vector<std::string> notes = std::move(prepared.notes);
  std::vector<StoredRow> known;
  if (!prepared.store) known = ranked.results.rows;
  prepared.close();
  prepared = with_clocks(edge.widened);
  prepared.with_clocks = with_clocks;
  prepared.device_model = model;
  prepared.notes = std::move(notes);
  prepared.known = std::move(known);
}

/// Names the kernels and their grids: "the kernel "add", its grid (global = [N])".
std::string described_kernels(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names, grids;
  for (const Kernel& kernel : kernels) {
    names.push_back(fmt::format("\"{}\"", kernel.function.text()));
    const auto& sizes = kernel.launch.global.empty() ? kernel.launch.grid : kernel.launch.global;
    std::vector<std::string> texts;
    for (const Expression& size : sizes) texts.push_back(size.text());
    if (!texts.empty())
      grids.push_back(
          fmt::format("{} = [{}]", kernel.launch.global.empty() ? "grid" : "global", fmt::join(texts, ", ")));
  }
  std::string text = fmt::format("the kernel{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ", "));
  if (!grids.empty())
    text += fmt::format(", {} ({}), which may leave out a part of the output",
                        grids.size() == 1 ? "its grid" : "their grids", fmt::join(grids, "; "));
  return text;
}

/// With a wrong reference, correct configurations fail verification.
std::string note_of_disagreement(const PreparedSession& prepared, const RankedResults& ranked) {
  const Verification& verification = prepared.original.verification;
  if (verification.kind == Verification::Kind::none || !prepared.live) return {};
  const auto failures = ranked.failures();
  if (failures.empty() || !failures.front().message.starts_with("output "))
    return {};  // the failure is not one of
                // comparison
  const auto count = [&](Status status) {
    const auto found = ranked.statuses.find(to_string(status));
    return found == ranked.statuses.end() ? std::uint64_t{0} : found->second;
  };
  const std::uint64_t right = count(Status::ok) + count(Status::not_converged);
  if (verification.kind == Verification::Kind::first_correct)
    return count(Status::wrong_result) <= right
               ? std::string()
               : "most configurations compute something else than the reference, which is the first one that ran (the "
                 "default, where it does); if that one is wrong, the others may be right: name a reference in "
                 "[verification]";
  if (right > 0) return {};
  const std::string name =
      verification.kind == Verification::Kind::files ? "the files of [verification.files]"
      : verification.reference == nullptr
          ? "the reference of [verification]"
          : fmt::format("{} (\"{}\")",
                        verification.kind == Verification::Kind::kernel ? "[verification.kernel]"
                                                                        : "[verification.host_function]",
                        verification.reference->function.text());
  return fmt::format(
      "no configuration computes what {} does, not even the default: check {}, and the reference with the order of its "
      "arguments",
      name, described_kernels(prepared.original.kernels));
}

}  // namespace

RankedResults rank_results(ResultSet results, Objective objective) {
  RankedResults ranked{std::move(results), std::move(objective), {}, {}, {}, {}, {}};
  ranked.results.objective = ranked.objective.name();
  const auto& rows = ranked.results.rows;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    ++ranked.statuses[to_string(rows[row].measurement.status)];
    if (!ranked.default_row && is_default(ranked.results.parameters, rows[row].configuration)) ranked.default_row = row;
  }
  const std::vector<std::size_t> usable = usable_rows(ranked.results, ranked.objective);
  std::vector<const Measurement*> measurements;
  for (const std::size_t row : usable) measurements.push_back(&rows[row].measurement);
  const auto confirmed = [&](std::size_t i) { return ranked.is_confirmed(usable[i]); };
  for (const Ranked& entry : rank(ranked.objective, measurements, confirmed))
    ranked.best.push_back(usable[entry.position]);
  ranked.confidence = confidence_of(ranked, usable);
  if (usable.empty() || ranked.objective.kind() == Objective::Kind::pareto) return ranked;
  std::vector<double> values;
  for (const std::size_t row : usable) values.push_back(*ranked.expected_value(row));
  if (!ranked.confidence.search_repeats.scatter()) ranked.median = median(values);
  return ranked;
}

RankedResults rank_results(ResultSet results, const std::optional<std::string>& objective) {
  if (objective) results.goal = {*objective, std::nullopt, {}};
  std::set<std::string> names;
  for (const StoredRow& row : results.rows)
    for (const auto& [name, quantity] : row.measurement.quantities) names.insert(name);
  Objective parsed = Objective::parse(results.goal, with_names(results.metrics, {names.begin(), names.end()}));
  return rank_results(std::move(results), std::move(parsed));
}

ResultSet load_results(const std::filesystem::path& file, std::int64_t session) {
  std::error_code error;
  // Store::open() reports a store that does not exist.
  if (!is_store(file) && std::filesystem::exists(file, error)) return result_set(load_recording(file));
  const Store store = Store::open(file, true);
  ResultSet results = result_set(store, session);
  results.sessions = store.sessions();
  return results;
}

RankedResults load_ranked(const std::filesystem::path& file, std::int64_t session,
                          const std::optional<std::string>& objective) {
  RankedResults ranked = rank_results(load_results(file, session), objective);
  if (!objective) return ranked;
  std::vector<const Measurement*> all;
  for (const StoredRow& row : ranked.results.rows) all.push_back(&row.measurement);
  validate_measured_quantities(ranked.objective, all);
  return ranked;
}

std::vector<RankedResults> load_all_ranked(const std::filesystem::path& file, std::int64_t session,
                                           const std::optional<std::string>& objective) {
  std::vector<RankedResults> all;
  if (session == 0 && is_store(file)) {
    const Store store = Store::open(file, true);
    std::vector<SessionInfo> sessions = store.sessions();
    std::ranges::stable_sort(sessions,
                             [](const SessionInfo& a, const SessionInfo& b) { return a.worked_at > b.worked_at; });
    for (const SessionInfo& info : sessions) all.push_back(rank_results(result_set(store, info.id), objective));
  }
  if (all.empty()) all.push_back(load_ranked(file, session, objective));
  return all;
}

std::vector<std::size_t> RankedResults::shown() const {
  constexpr std::size_t kShown = 10;
  const bool front = objective.kind() == Objective::Kind::pareto;
  return {best.begin(), front ? best.end() : best.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, best.size()))};
}

Importance RankedResults::importance() const {
  if (objective.kind() == Objective::Kind::pareto) return {};
  std::vector<Judged> judged;
  for (std::size_t row = 0; row < results.rows.size(); ++row)
    if (!is_screened(row)) judged.push_back({results.rows[row].configuration, value(row)});
  return importance_of(results.parameters, std::move(judged));
}

std::optional<Unconfirmed> RankedResults::unconfirmed(std::size_t row) const {
  if (best.empty() || !is_confirmed(best.front()) || is_confirmed(row) || !usable(measurement(row).status))
    return std::nullopt;
  return ergotune::unconfirmed(objective, measurement(row), measurement(best.front()), confidence.search_repeats);
}

bool RankedResults::is_behind_by_clock(std::size_t row) const {
  return !best.empty() && objective.kind() == Objective::Kind::single && was_held_down(measurement(row)) &&
         is_confirmed(row) == is_confirmed(best.front()) &&
         objective.better(measurement(row), measurement(best.front()));
}

std::uint64_t RankedResults::failed() const {
  const auto without =
      std::ranges::count_if(results.rows, [&](const StoredRow& row) { return !objective.value(row.measurement); });
  return static_cast<std::uint64_t>(without) - screened();
}

static std::optional<Gain> gain_of(double best, std::optional<double> other, Direction direction) {
  if (!other || !(best > 0) || !(*other > 0)) return std::nullopt;
  const double factor = direction == Direction::maximise ? best / *other : *other / best;
  return std::isfinite(factor) ? std::optional(Gain{factor}) : std::nullopt;
}

std::optional<double> RankedResults::expected_value(std::size_t row) const {
  const std::optional<double> own = value(row);
  return own && results.rows[row].rounds == 0 ? *own * confidence.search_repeats.factor : own;
}

std::optional<Gain> RankedResults::gain_over_default() const {
  if (best.empty() || !default_row || !value(best.front())) return std::nullopt;
  auto gain = gain_of(*expected_value(best.front()), expected_value(*default_row), objective.direction());
  if (!gain || best.front() == *default_row) return gain;
  const auto interval = [&](std::size_t row) { return measurement(row).half_width(objective.quantity()); };
  gain->half_width = gain->factor * ratio_half_width(*value(best.front()), interval(best.front()), *value(*default_row),
                                                     interval(*default_row));
  return gain;
}

bool RankedResults::is_gain_uncertain() const {
  const auto is_vague = [&](std::size_t row) {
    const auto own = value(row);
    return own && measurement(row).half_width(objective.quantity()) >= std::abs(*own);
  };
  return !best.empty() && default_row && (is_vague(*default_row) || is_vague(best.front()));
}

std::optional<Gain> RankedResults::gain_over_median() const {
  return best.empty() || !value(best.front()) ? std::nullopt
                                              : gain_of(*expected_value(best.front()), median, objective.direction());
}

bool RankedResults::is_screened(std::size_t row) const {
  return !best.empty() && objective.needs("energy") && lacks_energy(measurement(row));
}

std::uint64_t RankedResults::screened() const {
  std::uint64_t count = 0;
  for (std::size_t row = 0; row < results.rows.size(); ++row) count += is_screened(row);
  return count;
}

std::vector<FailureGroup> RankedResults::failures() const {
  FailureGroups groups;
  for (std::size_t row = 0; row < results.rows.size(); ++row) {
    const Measurement& failed = measurement(row);
    if (value(row) || is_screened(row)) continue;
    groups.add(row, failed.status,
               failed.message.empty() && usable(failed.status) ? "no value for the objective " + objective.name()
                                                               : failed.message);
  }
  return groups.list();
}

std::vector<std::string> RankedResults::notes() const {
  std::vector<std::string> notes = results.notes;
  if (best.empty() || objective.kind() == Objective::Kind::pareto) return notes;
  const auto& warnings = measurement(best.front()).warnings;
  notes.insert(notes.end(), warnings.begin(), warnings.end());
  if (std::string note = repeats_note(confidence.search_repeats, confidence.confirmation_repeats); !note.empty())
    notes.push_back(std::move(note));
  return notes;
}

std::optional<BestResult> RankedResults::winner() const {
  if (best.empty()) return std::nullopt;
  const StoredRow& row = results.rows[best.front()];
  // The default over itself is certain, however wide its interval.
  const bool certain = best.front() == default_row || !is_gain_uncertain();
  const std::optional<Gain> gain = certain ? gain_over_default() : std::nullopt;
  return BestResult{results.problem,
                    results.device,
                    results.objective,
                    results.constants,
                    results.parameters,
                    row.configuration,
                    row.measurement,
                    confidence.confirmation_repeats,
                    confidence.probability_best,
                    objective.kind() == Objective::Kind::pareto ? best.size() : 0,
                    gain ? std::optional(gain->factor) : std::nullopt,
                    gain ? gain->half_width : 0,
                    default_row ? configuration_text(*default_row) : "",
                    results.metrics};
}

TunedSession tune_session(PreparedSession& prepared, const SessionOptions& options) {
  SessionOptions own = options;
  std::optional<TunedSession> tuned;
  std::optional<ModelEdge> edge;
  while (true) {
    std::unique_ptr<Ledger> ledger = prepared.open_ledger(own.retry, own.interrupted, own.further_metrics);
    SessionResult run = run_session(prepared, *ledger, own);
    const bool interrupted = ledger->interrupted();
    const std::optional<Budget> left = remaining_budget(own.budget, run);
    if (tuned) {
      run.evaluated += tuned->run.evaluated;
      run.resumed = tuned->run.resumed;
      run.retried = tuned->run.retried;
      run.seconds += tuned->run.seconds;
      run.waited += tuned->run.waited;
      run.tuner_seconds += tuned->run.tuner_seconds;
    }
    tuned.emplace(TunedSession{
        rank_results(results_of(prepared, *ledger), *prepared.objective), std::move(run), prepared.notes, {}});
    edge = model_edge(prepared, tuned->ranked);
    if (!edge || !left || interrupted || !prepared.with_clocks) break;
    own.budget = *left;
    own.retry.clear();
    if (prepared.store) prepared.store->flush();
    ledger.reset();
    widen(prepared, *edge, tuned->ranked);
  }
  for (const std::string& note :
       {note_of_drift(tuned->run), note_of_disagreement(prepared, tuned->ranked), note_of_model_edge(edge)})
    if (!note.empty()) tuned->findings.push_back(note);
  if (prepared.store) prepared.store->flush();
  return *std::move(tuned);
}

}  // namespace ergotune

#include "search/objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ergotune/problem.hpp"
#include "measure/metrics.hpp"
#include "problem/program.hpp"
#include "problem/tables/quantity.hpp"
#include "search/objective_text.hpp"
#include "search/pareto.hpp"

namespace ergotune {

using search::kBestPrefix;
using search::ObjectiveText;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The specification without a leading direction, if there is a single term, which holds the direction.
ObjectiveSpec without_direction(ObjectiveSpec spec, const ObjectiveText& text) {
  if (text.terms.size() > 1) return spec;
  spec.direction = text.terms.front().direction;
  const std::size_t begin = spec.text.find_first_not_of(" \t");
  const std::size_t space = begin == std::string::npos ? begin : spec.text.find_first_of(" \t", begin);
  const std::size_t rest = space == std::string::npos ? space : spec.text.find_first_not_of(" \t", space);
  if (rest == std::string::npos || spec.text[rest] == '(') return spec;
  const std::string first = spec.text.substr(begin, space - begin);
  for (const char* word : {"max", "min", "maximise", "minimise", "maximize", "minimize"}) {
    if (first == word) return {spec.text.substr(rest), spec.direction, spec.place};
  }
  return spec;
}

/// Sets the direction of terms for which none is written.
void settle_directions(ObjectiveText& text, const ObjectiveSpec& spec, const std::vector<Metric>& metrics) {
  for (search::ObjectiveTerm& term : text.terms) {
    if (term.has_direction) continue;
    const auto better = search::direction_of_expression(term.expression, metrics);
    if (!better)
      throw UserError(fmt::format("objective \"{}\": neither a unit nor a quantity defines whether more of \"{}\" is "
                                  "better, or less; write \"max {}\" "
                                  "or \"min {}\"",
                                  spec.text, term.expression.text(), term.expression.text(), term.expression.text()),
                      spec.place);
    term.direction = *better;
  }
}

// A measurement evaluated by the objective.
struct EvaluatedMeasurement {
  bool ok = false;
  std::vector<double> turned;  // per term, smaller is better
  std::vector<double> errors, degrees;
  double violation = 0;  // summed relative excess over the conditions; 0 when all hold
  double slack = 0;      // summed relative distance from the conditions that hold
};

bool is_name(const Expression& expression) {
  return expression.names().size() == 1 && expression.names().front() == expression.text();
}

}  // namespace

struct Objective::State {
  ObjectiveSpec spec;
  ObjectiveText text;
  Kind kind = Kind::single;
  std::string unit;
  /// Measured quantities on which the objective depends, through metrics.
  std::vector<std::string> quantities;
  /// Names that the text contains directly.
  std::vector<std::string> names;
  /// Names used in best(NAME).
  std::vector<std::string> bests;
  /// best(NAME) so far.
  std::map<std::string, double> best;
  /// Counts changes that invalidate earlier outcomes.
  std::uint64_t revision = 0;
  /// Largest value returned so far: a configuration that violates a condition gets a larger one.
  double largest_told = -kInfinity;
  /// Lexicographic: the distinct transformed values of all usable measurements, and the upper end of the band of each
  /// level except the last, among the measurements within the bands of the levels before it.
  std::set<std::vector<double>> history;
  std::vector<double> bands;

  bool largest_is_best(const std::string& name) const {
    return std::find(text.best_is_largest.begin(), text.best_is_largest.end(), name) != text.best_is_largest.end();
  }

  void note_best(const std::string& name, double value) {
    const auto [it, is_new] = best.try_emplace(name, value);
    if (is_new) return;
    const double before = it->second;
    it->second = largest_is_best(name) ? std::max(before, value) : std::min(before, value);
    if (it->second != before && std::find(bests.begin(), bests.end(), name) != bests.end()) ++revision;
  }

  /// Values of the inputs of an expression; nullopt if the measurement lacks one.
  std::optional<std::vector<UncertainInput>> inputs(const Expression& expression, const Measurement& m) const {
    std::vector<UncertainInput> list;
    for (const std::string& name : expression.names()) {
      UncertainInput input{name, Value(), 0};
      if (name.rfind(kBestPrefix, 0) == 0) {
        const std::string of = name.substr(std::string_view(kBestPrefix).size());
        const auto known = best.find(of);
        const auto own = m.value(of);
        if (known == best.end() && !own) return std::nullopt;
        input.value = known != best.end() ? known->second : *own;
      } else {
        const auto value = m.value(name);
        if (!value || !std::isfinite(*value)) return std::nullopt;
        input.value = *value;
        input.standard_error = m.standard_error(name);
        input.degrees = m.degrees(name);
      }
      list.push_back(std::move(input));
    }
    return list;
  }

  std::optional<Uncertain> value_of(const Expression& expression, const Measurement& m) const {
    // Most objectives are one name, and results are compared more often than anything else is computed.
    const std::string& name = expression.text();
    if (const auto value = is_name(expression) ? m.value(name) : std::nullopt) {
      const double error = m.standard_error(name);
      return error > 0 && std::isfinite(error) ? Uncertain{*value, error, m.degrees(name)} : Uncertain{*value};
    }
    auto in = inputs(expression, m);
    return in ? propagate(expression, *in) : std::nullopt;
  }

  bool plausible(const Measurement& m) const {
    if (!usable(m.status)) return false;
    for (const std::string& name : quantities) {
      const auto value = m.value(name);
      const bool present = m.quantities.count(name) > 0 || m.metrics.count(name) > 0;
      if (present && (!value || (must_be_positive(name) && !(*value > 0)))) return false;
    }
    return true;
  }

  EvaluatedMeasurement look(const Measurement& m) const {
    EvaluatedMeasurement result;
    if (!plausible(m)) return result;
    for (const auto& term : text.terms) {
      const auto value = value_of(term.expression, m);
      if (!value) return result;
      result.turned.push_back(term.direction == Direction::maximise ? -value->value : value->value);
      result.errors.push_back(value->standard_error);
      result.degrees.push_back(value->degrees);
    }
    for (const auto& condition : text.conditions) {
      const auto left = value_of(condition.left, m), right = value_of(condition.right, m);
      if (!left || !right) return result;
      const double scale = std::max({std::abs(left->value), std::abs(right->value), 1e-300});
      if (condition.strict ? left->value < right->value : left->value <= right->value) {
        result.slack += (right->value - left->value) / scale;
        continue;
      }
      result.violation += std::max((left->value - right->value) / scale, 1e-9);
    }
    result.ok = true;
    return result;
  }

  /// Adds values to the history; true if that moved a band.
  bool note_levels(const std::vector<double>& turned) {
    const bool first = history.empty();
    if (!history.insert(turned).second) return false;
    if (!first && turned.front() > bands.front()) return false;  // beyond the first band it bounds nothing
    std::vector<double> ends;
    std::vector<const std::vector<double>*> in_band;
    for (const auto& values : history) in_band.push_back(&values);
    for (std::size_t level = 0; level + 1 < text.terms.size(); ++level) {
      double lowest = kInfinity;
      for (const auto* values : in_band) lowest = std::min(lowest, (*values)[level]);
      const double end = lowest + text.terms[level].tolerance * std::abs(lowest);
      ends.push_back(end);
      std::erase_if(in_band, [&](const auto* values) { return (*values)[level] > end; });
    }
    const bool moved = !first && ends != bands;
    bands = std::move(ends);
    return moved;
  }

  /// Reduces a lexicographic outcome to one value: within the first level's band the last level decides, scaled to a
  /// small part of the band's width.
  double folded(const std::vector<double>& turned) const {
    const double value = turned.front(), end = bands.front();
    if (value > end || end == 0) return value;
    const double own = turned.back();
    double lowest = own;
    for (const auto& values : history)
      if (values.front() <= end) lowest = std::min(lowest, values.back());
    const double excess = lowest != 0 ? std::max(0.0, (own - lowest) / std::abs(lowest)) : 0.0;
    return end - std::abs(end) * text.terms.front().tolerance * (1 - std::min(excess, 1.0));
  }

  bool lexicographically_better(const std::vector<double>& a, const std::vector<double>& b) const {
    for (std::size_t level = 0; level < a.size(); ++level) {
      if (level < bands.size() && a[level] <= bands[level] && b[level] <= bands[level]) continue;
      if (a[level] != b[level]) return a[level] < b[level];
    }
    return a < b;  // equal in all deciding levels: the better one within the bands
  }

  /// Compares two evaluated measurements, both usable.
  bool better(const EvaluatedMeasurement& a, const EvaluatedMeasurement& b) const {
    if (a.violation > 0 || b.violation > 0) return a.violation < b.violation;
    if (kind == Kind::pareto) return dominates(a.turned, b.turned);
    if (kind == Kind::lexicographic) return lexicographically_better(a.turned, b.turned);
    // Of equal ones, prefer the one that satisfies the conditions by a larger margin.
    return a.turned.front() != b.turned.front() ? a.turned.front() < b.turned.front() : a.slack > b.slack;
  }
};

Objective::Objective(std::unique_ptr<State> state) : state_(std::move(state)) {}
Objective::Objective(const Objective& other) : state_(std::make_unique<State>(*other.state_)) {}
Objective& Objective::operator=(const Objective& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
Objective::Objective(Objective&&) noexcept = default;
Objective& Objective::operator=(Objective&&) noexcept = default;
Objective::~Objective() = default;

Objective Objective::parse(const ObjectiveSpec& spec, const std::vector<Metric>& metrics) {
  auto state = std::make_unique<State>();
  state->spec = spec;
  state->text = search::parse_objective_text(spec);
  const ObjectiveText& text = state->text;
  if (text.form == ObjectiveText::Form::pareto)
    state->kind = Kind::pareto;
  else if (text.form == ObjectiveText::Form::lexicographic)
    state->kind = Kind::lexicographic;
  else
    state->kind = text.conditions.empty() ? Kind::single : Kind::constrained;

  std::set<std::string> direct;
  auto collect = [&](const Expression& expression) {
    for (std::string name : expression.names()) {
      if (name.rfind(kBestPrefix, 0) == 0) {
        name = name.substr(std::string_view(kBestPrefix).size());
        state->bests.push_back(name);
      }
      direct.insert(name);
    }
  };
  for (const auto& term : text.terms) collect(term.expression);
  for (const auto& condition : text.conditions) {
    collect(condition.left);
    collect(condition.right);
  }
  state->names.assign(direct.begin(), direct.end());
  if (direct.empty())
    throw UserError(
        fmt::format("objective \"{}\" names no quantity; write for example \"time\" or \"energy\"", spec.text),
        spec.place);

  // Follow metrics to measured quantities. Observers may add quantities of any name: a name that resembles no known one
  // is accepted as a quantity.
  std::vector<std::string> known;
  for (const QuantityInfo& quantity : ergotune::quantities()) known.emplace_back(quantity.name);
  std::map<std::string, const Metric*> by_name;
  for (const Metric& metric : metrics) {
    known.push_back(metric.name);
    by_name.emplace(metric.name, &metric);
  }
  std::set<std::string> quantities, visited;
  std::vector<std::string> open(direct.begin(), direct.end());
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!visited.insert(name).second) continue;
    const bool is_direct = direct.count(name) > 0;
    if (const auto metric = by_name.find(name); metric != by_name.end()) {
      for (const auto& below : metric->second->expression.names())
        if (below != name) open.push_back(below);
    } else if (quantity_info(name) != nullptr) {
      quantities.insert(name);
    } else if (is_direct) {
      if (const auto near = nearest_name(name, known); !near.empty())
        throw UserError(
            fmt::format("objective \"{}\": no quantity or metric \"{}\"{}", spec.text, name, suggestion(name, known)),
            spec.place);
      quantities.insert(name);
    }
  }
  state->quantities.assign(quantities.begin(), quantities.end());
  settle_directions(state->text, spec, metrics);
  state->spec = without_direction(state->spec, text);
  state->unit = search::unit_of_expression(text.terms.front().expression, metrics);
  return Objective(std::move(state));
}

Objective::Kind Objective::kind() const { return state_->kind; }
const ObjectiveSpec& Objective::spec() const { return state_->spec; }
std::string Objective::title() const {
  return count() == 1 && state_->text.terms.size() == 1 && direction() == Direction::maximise ? "max " + name()
                                                                                              : name();
}
const std::string& Objective::unit() const { return state_->unit; }
std::string Objective::quantity() const {
  const Expression& first = state_->text.terms.front().expression;
  return is_name(first) ? first.text() : std::string();
}
const std::string& Objective::name() const { return state_->spec.text; }
Direction Objective::direction() const { return state_->text.terms.front().direction; }
std::size_t Objective::count() const { return state_->kind == Kind::pareto ? state_->text.terms.size() : 1; }
std::uint64_t Objective::revision() const { return state_->revision; }
std::vector<std::string> Objective::quantities() const { return state_->quantities; }
bool Objective::needs(const std::string& quantity) const {
  const auto& list = state_->quantities;
  return std::find(list.begin(), list.end(), quantity) != list.end();
}

void Objective::forget() {
  state_->best.clear();
  state_->history.clear();
  state_->bands.clear();
  state_->largest_told = -kInfinity;
}

Outcome Objective::outcome(const Measurement& measurement) {
  Outcome outcome;
  State& state = *state_;
  outcome.block_need = measurement.value("block_need").value_or(0);
  if (!state.plausible(measurement)) return outcome;
  for (const std::string& name : state.names)
    if (const auto value = measurement.value(name)) state.note_best(name, *value);
  const EvaluatedMeasurement look = state.look(measurement);
  if (!look.ok) return outcome;
  outcome.ok = true;
  if (state.kind == Kind::lexicographic && state.note_levels(look.turned)) ++state.revision;
  if (state.kind == Kind::pareto) {
    outcome.values = look.turned;
    outcome.standard_errors = look.errors;
    outcome.degrees = look.degrees;
  } else {
    double value = state.kind == Kind::lexicographic ? state.folded(look.turned) : look.turned.front();
    state.largest_told = std::max(state.largest_told, value);
    if (look.violation > 0) value = state.largest_told + std::abs(state.largest_told) * look.violation;
    outcome.values = {value};
    outcome.standard_errors = {look.errors.front()};
    outcome.degrees = {look.degrees.front()};
  }
  if (std::all_of(outcome.standard_errors.begin(), outcome.standard_errors.end(), [](double e) { return e == 0; }))
    outcome.standard_errors.clear(), outcome.degrees.clear();
  constexpr std::string_view kOfKernel = "time.";
  for (const auto& [name, quantity] : measurement.quantities)
    if (name.starts_with(kOfKernel)) outcome.kernel_times[name.substr(kOfKernel.size())] = quantity.value;
  return outcome;
}

bool Objective::better(const Measurement& a, const Measurement& b) const {
  const EvaluatedMeasurement left = state_->look(a), right = state_->look(b);
  if (!left.ok || !right.ok) return left.ok && !right.ok;
  return state_->better(left, right);
}

bool Objective::violates_condition(const Measurement& measurement) const {
  return state_->kind == Kind::constrained && state_->look(measurement).violation > 0;
}

std::vector<std::size_t> Objective::order(std::span<const Measurement* const> measurements) const {
  std::vector<EvaluatedMeasurement> looks;
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    looks.push_back(state_->look(*measurements[i]));
    if (looks.back().ok) usable.push_back(i);
  }
  if (state_->kind != Kind::pareto) {
    std::stable_sort(usable.begin(), usable.end(),
                     [&](std::size_t a, std::size_t b) { return state_->better(looks[a], looks[b]); });
    return usable;
  }
  std::vector<std::vector<double>> points;
  for (const std::size_t i : usable) points.push_back(std::move(looks[i].turned));
  std::vector<std::size_t> front = pareto_front(points);
  for (std::size_t& position : front) position = usable[position];
  return front;
}

std::optional<double> Objective::value(const Measurement& measurement) const {
  const EvaluatedMeasurement look = state_->look(measurement);
  if (!look.ok) return std::nullopt;
  return direction() == Direction::maximise ? -look.turned.front() : look.turned.front();
}

std::vector<Metric> with_names(std::vector<Metric> metrics, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool known = quantity_info(name) ||
                       std::any_of(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
    if (!known) metrics.push_back({name, Expression::constant(0), ""});
  }
  return metrics;
}

std::vector<std::string> column_names(const Recording& recording) {
  std::vector<std::string> names;
  for (const RecordedColumn& column : recording.columns) names.push_back(column.name);
  return names;
}

std::vector<Metric> known_metrics(const Problem& problem) {
  std::vector<std::string> names;
  if (problem.program)
    for (const auto& [name, pattern] : problem.program->output) names.push_back(name);
  return with_names(problem.metrics, names);
}

}  // namespace ergotune

#include "report/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>

#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/random.hpp"
#include "problem/tables/quantity.hpp"
#include "report/result_document.hpp"
#include "search/importance.hpp"
#include "search/models/gaussian_process.hpp"
#include "store/formats/json_values.hpp"
#include "store/sqlite/stored_session.hpp"
#include "tune/session/single_configuration.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

/// Values without which nothing is modelled, and those that a model is made of at most.
constexpr std::size_t kFewest = 10, kMost = 1000;
/// Configurations of a large space among which the best are looked for.
constexpr std::size_t kPool = 20000;
/// By which the intervals are calibrated.
constexpr int kHalves = 8;
constexpr double kTwoSided = 1.959964;  // standard deviations that hold 95 %

/// Errors over deviations where one half of the observations is predicted by a process that is fitted to the other: the
/// deviations of the whole process, whose length scales were fitted to what it predicts, are too small.
std::vector<double> errors_of_halves(const SearchSpace& space,
                                     const std::vector<std::pair<double, ConfigurationIndex>>& observed) {
  std::vector<std::size_t> order(observed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(1);
  std::vector<double> errors;
  for (int half = 0; half < kHalves; ++half) {
    if (half % 2 == 0)
      random.shuffle(std::span(order));
    else
      std::ranges::reverse(order);
    search::GaussianProcess process(space);
    std::vector<double> known, values;
    std::vector<ConfigurationIndex> left_out;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto& [value, index] = observed[order[i]];
      if (2 * i >= order.size()) {
        left_out.push_back(index);
        values.push_back(value);
      } else {
        process.observe(index);
        known.push_back(value);
      }
    }
    process.set_values(known);
    process.fit(3);
    process.set_pool(left_out);
    std::vector<float> mean, deviation;
    process.predict(mean, deviation);
    for (std::size_t i = 0; i < values.size(); ++i)
      errors.push_back(std::abs(values[i] - static_cast<double>(mean[i])) / static_cast<double>(deviation[i]));
  }
  return errors;
}

}  // namespace

struct Predictor::Model {
  explicit Model(const SearchSpace& space) : process(space) {}
  search::GaussianProcess process;
  double widening = 1;  ///< of the deviations where nothing was measured, so that 95 % lie within 1.96 of them
};

Predictor::~Predictor() = default;

Predictor::Predictor(const SearchSpace& space, Known known) : space_(space), known_(std::move(known)) {
  std::map<std::string, std::vector<std::pair<double, ConfigurationIndex>>> values;
  for (const auto& [index, quantities] : known_)
    for (const auto& [name, value] : quantities)
      if (value > 0) values[name].emplace_back(std::log(value), index);
  for (auto& [name, list] : values) {
    if (list.size() < kFewest) continue;
    std::ranges::sort(list);
    if (list.size() > kMost) {  // the best half of them, and an even selection of the others
      const std::size_t rest = list.size() - kMost / 2;
      for (std::size_t i = 0; i < kMost / 2; ++i) list[kMost / 2 + i] = list[kMost / 2 + i * rest / (kMost / 2)];
      list.resize(kMost);
    }
    auto model = std::make_unique<Model>(space_);
    std::vector<double> logarithms;
    for (const auto& [value, index] : list) {
      model->process.observe(index);
      logarithms.push_back(value);
    }
    model->process.set_values(logarithms);
    model->process.fit(3);
    model->process.refit_pool();
    const std::vector<search::GaussianProcess::LeftOut> left_out = model->process.leave_one_out();
    std::vector<double> errors, deviations;
    for (const search::GaussianProcess::LeftOut& one : left_out) {
      errors.push_back(std::abs(std::expm1(one.error)));
      deviations.push_back(std::abs(one.error) / one.deviation);
    }
    const double widening = quantile(deviations, 0.95) / kTwoSided;
    model->widening = std::max(widening, quantile(errors_of_halves(space_, list), 0.95) / kTwoSided);
    const auto within = std::ranges::count_if(deviations, [&](double d) { return d <= kTwoSided * widening; });
    QuantityModel& described = models_[name];
    described.median_error = median(errors);
    described.coverage = static_cast<double>(within) / static_cast<double>(deviations.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      described.left_out.push_back(
          {list[i].second,
           std::exp(list[i].first),
           {std::exp(list[i].first - left_out[i].error), std::exp(kTwoSided * widening * left_out[i].deviation)}});
    processes_[name] = std::move(model);
  }
}

std::vector<Prediction> Predictor::at(const std::vector<ConfigurationIndex>& list) const {
  std::vector<Prediction> predictions(list.size());
  std::unordered_map<ConfigurationIndex, const std::map<std::string, double>*> measured;
  for (const auto& [index, values] : known_) measured[index] = &values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    predictions[i].index = list[i];
    if (const auto found = measured.find(list[i]); found != measured.end()) predictions[i].measured = *found->second;
  }
  std::vector<float> mean, deviation;
  for (const auto& [name, model] : processes_) {
    model->process.set_pool(list);
    model->process.predict(mean, deviation);
    for (std::size_t i = 0; i < list.size(); ++i)
      predictions[i].values[name] = {std::exp(mean[i]), std::exp(kTwoSided * model->widening * deviation[i])};
  }
  return predictions;
}

/// Removes configurations with a value that failed in every one of those that are known.
static void leave_out_failing(std::vector<ConfigurationIndex>& list, const SearchSpace& space,
                              const Predictor::Known& known) {
  std::vector<Judged> judged;
  for (const auto& [index, values] : known)
    judged.push_back({space.configuration(index), values.empty() ? std::nullopt : std::optional(0.0)});
  const std::vector<Importance::NeverWorkedValue> failing = ruled_out(space.parameters(), judged);
  if (failing.empty()) return;
  std::erase_if(list, [&](ConfigurationIndex index) {
    const Configuration configuration = space.configuration(index);
    return std::ranges::any_of(failing,
                               [&](const auto& value) { return configuration[value.parameter] == value.value; });
  });
}

std::vector<Prediction> Predictor::best(const std::string& quantity, std::size_t count, bool largest) const {
  if (!processes_.contains(quantity)) return {};
  Random random(1);
  std::vector<ConfigurationIndex> pool = space_.sample_distinct(kPool, random);
  std::vector<std::pair<double, ConfigurationIndex>> leading;
  for (const auto& [index, values] : known_)
    if (const auto found = values.find(quantity); found != values.end()) leading.emplace_back(found->second, index);
  std::ranges::sort(leading);
  if (largest) std::ranges::reverse(leading);
  std::vector<ConfigurationIndex> near;
  for (std::size_t i = 0; i < std::min<std::size_t>(10, leading.size()); ++i) {
    space_.neighbours(leading[i].second, Neighbourhood::hamming, near);
    pool.insert(pool.end(), near.begin(), near.end());
  }
  std::ranges::sort(pool);
  pool.erase(std::unique(pool.begin(), pool.end()), pool.end());
  std::unordered_map<ConfigurationIndex, bool> tried;
  for (const auto& [index, values] : known_) tried[index] = true;
  std::erase_if(pool, [&](ConfigurationIndex index) { return tried.contains(index); });
  leave_out_failing(pool, space_, known_);
  std::vector<float> mean, deviation;
  const auto& process = processes_.at(quantity)->process;
  processes_.at(quantity)->process.set_pool(pool);
  process.predict(mean, deviation);
  if (largest)
    for (float& value : mean) value = -value;
  std::vector<std::size_t> order(pool.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) { return std::pair(mean[a], a) < std::pair(mean[b], b); });
  std::vector<ConfigurationIndex> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back(pool[order[i]]);
  return at(best);
}

/// The space that a session searched. What functions of a program restrict or generate is known where the session has
/// listed it.
static SearchSpace searched_space(const Problem& problem, const Constants& constants, const Json& environment,
                                  const std::string& file) {
  const bool functions =
      std::ranges::any_of(problem.restrictions, [](const auto& r) { return !r.function_names.empty(); }) ||
      std::ranges::any_of(problem.parameters, [](const auto& p) { return p.values.empty() && !p.range; });
  if (!functions) return problem.build_space(constants);
  const Json listed = environment.is_object() ? environment.value("valid_configurations", Json()) : Json();
  if (!listed.is_array())
    throw UserError(
        "restrictions or values of this session's space are functions of a program, which are not stored, and the "
        "space is too large to be listed: write them as expressions",
        {file, 0, 0});
  std::vector<Configuration> list;
  std::vector<std::set<Value>> values(problem.parameters.size());
  for (const Json& row : listed) {
    Configuration& configuration = list.emplace_back();
    for (const Json& value : row) configuration.push_back(value_from(value));
    if (configuration.size() != values.size()) throw UserError("the stored space is damaged", {file, 0, 0});
    for (std::size_t p = 0; p < values.size(); ++p) values[p].insert(configuration[p]);
  }
  std::vector<Parameter> parameters = problem.parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (parameters[p].values.empty()) parameters[p].values.assign(values[p].begin(), values[p].end());
  return SearchSpace::from_configurations(std::move(parameters), list);
}

PredictedSession predicted_session(const std::filesystem::path& file, std::int64_t number) {
  const Store store = Store::open(file, true);
  const SessionInfo session = pick_session(store, number);
  const auto problem = stored_problem(store, session.id);
  if (!problem)
    throw UserError("this session's problem was not stored, so that its space is not known", {file.string(), 0, 0});
  const Json environment = Json::parse(store.environment(session.id), nullptr, false);
  Constants properties;
  std::string device;
  if (environment.is_object()) {
    device = environment.value("device", "");
    const Json listed = environment.value("properties", Json::object());
    for (const auto& [name, value] : listed.items()) properties[name] = value_from(value);
  }
  PredictedSession predicted{
      problem->name,
      device,
      to_string(session.provenance),
      session.objective.text,
      searched_space(*problem, problem->constants_for(device, properties), environment, file.string()),
      {},
      unit_of(session.objective.text, problem->metrics),
      session.objective.direction == Direction::maximise};
  for (const StoredRow& row : store.results(session.id)) {
    const auto index = predicted.space.index_of(row.configuration);
    if (!index) continue;
    std::map<std::string, double>& values =
        predicted.known.emplace_back(*index, std::map<std::string, double>{}).second;
    if (!usable(row.measurement.status)) continue;
    for (const std::string& name : {std::string("time"), std::string("energy"), session.objective.text})
      if (const auto value = row.measurement.value(name)) values[name] = *value;
  }
  return predicted;
}

std::string quantity_of_choice(const PredictedSession& session, const Predictor& predictor, const std::string& asked) {
  if (predictor.models().empty())
    throw UserError(fmt::format(
        "{} configurations of this session worked, and a model needs {}: measure more, or name another session",
        std::ranges::count_if(session.known, [](const auto& entry) { return !entry.second.empty(); }), kFewest));
  const bool modelled = predictor.models().contains(session.objective);
  const std::string quantity = !asked.empty() ? asked
                               : modelled     ? session.objective
                                              : predictor.models().rbegin()->first;
  if (!predictor.models().contains(quantity))
    throw UserError(fmt::format("too few values of \"{}\" are stored to model it", quantity));
  return quantity;
}

std::vector<Prediction> chosen_predictions(const PredictedSession& session, const Predictor& predictor,
                                           const PredictionRequest& request) {
  const std::string quantity = quantity_of_choice(session, predictor, request.quantity);
  std::vector<ConfigurationIndex> named;
  for (const std::string& text : request.configurations) {
    const auto index = session.space.index_of(configuration_of_text(text, session.space.parameters()));
    if (!index) throw UserError(fmt::format("{}: it is not in the search space of {}", text, session.problem));
    named.push_back(*index);
  }
  return named.empty() ? predictor.best(quantity, request.top, session.is_largest(quantity)) : predictor.at(named);
}

Json prediction_document(const PredictedSession& session, const Predictor& predictor,
                         const std::vector<Prediction>& list) {
  Json document{{"problem", session.problem},
                {"device_name", session.device},
                {"provenance", "modelled"},
                {"models", Json::object()},
                {"predictions", Json::array()}};
  for (const auto& [name, model] : predictor.models())
    document["models"][name] = {{"configurations", model.left_out.size()},
                                {"provenance", session.provenance},
                                {"median_error", model.median_error},
                                {"coverage", model.coverage}};
  for (const Prediction& one : list) {
    Json entry{{"configuration", to_json(session.space.parameters(), session.space.configuration(one.index))}};
    for (const auto& [name, value] : one.values)
      entry["modelled"][name] = {
          {"value", value.value}, {"low", value.value / value.factor}, {"high", value.value * value.factor}};
    for (const auto& [name, value] : one.measured) entry[session.provenance][name] = value;
    document["predictions"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace ergotune

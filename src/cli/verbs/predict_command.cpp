// ergotune predict: what configurations that were not measured would need.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "ergotune/error.hpp"
#include "report/prediction.hpp"
#include "report/result_json.hpp"
#include "tune/session/named_configuration.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PredictArguments {
  std::string store = kDefaultStore, quantity;
  std::int64_t session = 0;
  std::vector<std::string> configurations;
  std::size_t top = 5;
  bool json = false;
};

std::string unit_of(const std::string& quantity) { return quantity == "energy" ? "J" : "s"; }

void print(const PredictedSession& session, const Predictor& predictor, const std::vector<Prediction>& list) {
  fmt::print("{} on {}\n", session.problem, session.device);
  for (const auto& [name, model] : predictor.models())
    fmt::print(
        "  {:<6} modelled from {}: each predicted from the others, the median error is {:.2g} %, and {:.0f} % lie "
        "within the interval\n",
        name, counted(model.measured, session.provenance + " configuration"), 100 * model.median_error,
        100 * model.coverage);
  fmt::print("\n{}\n", list.empty() ? "Every configuration was measured." : "Modelled, with 95 % intervals:");
  for (const Prediction& one : list) {
    fmt::print(" ");
    for (const auto& [name, value] : one.values) {
      fmt::print(" {} {} ({} to {})", name, human(value.value, unit_of(name)),
                 human(value.value / value.factor, unit_of(name)), human(value.value * value.factor, unit_of(name)));
      if (const auto measured = one.measured.find(name); measured != one.measured.end())
        fmt::print(", {} {}", session.provenance, human(measured->second, unit_of(name)));
    }
    fmt::print("  {}\n", describe(session.space.parameters(), session.space.configuration(one.index)));
  }
}

Json document_of(const PredictedSession& session, const Predictor& predictor, const std::vector<Prediction>& list) {
  Json document{{"problem", session.problem},
                {"device_name", session.device},
                {"provenance", "modelled"},
                {"models", Json::object()},
                {"predictions", Json::array()}};
  for (const auto& [name, model] : predictor.models())
    document["models"][name] = {{"configurations", model.measured},
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

void predict(const PredictArguments& arguments) {
  const PredictedSession session = predicted_session(arguments.store, arguments.session);
  const Predictor predictor(session.space, session.known);
  if (predictor.models().empty())
    throw UserError(
        fmt::format("{}: too few configurations of this session worked to model them (10)", arguments.store));
  std::vector<ConfigurationIndex> named;
  for (const std::string& text : arguments.configurations) {
    const auto index = session.space.index_of(configuration_of_json(text, session.space.parameters()));
    if (!index) throw UserError(fmt::format("--config {}: it is not in the search space of {}", text, session.problem));
    named.push_back(*index);
  }
  const std::string quantity = !arguments.quantity.empty() ? arguments.quantity : predictor.models().rbegin()->first;
  if (!predictor.models().contains(quantity))
    throw UserError(fmt::format("--by {}: too few of its values are stored to model it", quantity));
  const std::vector<Prediction> list = named.empty() ? predictor.best(quantity, arguments.top) : predictor.at(named);
  if (arguments.json) return print_json(document_of(session, predictor, list));
  print(session, predictor, list);
}

}  // namespace

void add_predict_command(Verb app) {
  auto arguments = std::make_shared<PredictArguments>();
  Verb verb = app.add_verb("predict", "Predict time and energy of configurations that were not measured");
  verb.add_option("store", arguments->store, "Results database (ergotune.db)");
  verb.add_option("--session", arguments->session, "Session of the store; the latest without");
  verb.add_option("--config", arguments->configurations,
                  "Predict this one: a JSON object; parameters left out take their defaults; repeatable")
      .take_all();
  verb.add_option("--by", arguments->quantity, "Without --config: print those of the least time, or energy (time)")
      .one_of({"time", "energy"});
  verb.add_option("--top", arguments->top, "How many of them to print (5)").positive();
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune predict tuned.db\n"
      "  ergotune predict tuned.db --by energy --top 20 --json\n"
      "  ergotune predict tuned.db --config '{\"VWM\": 2}'\n"
      "Values are modelled by a Gaussian process over the measured configurations of the session.");
  verb.callback([arguments] { predict(*arguments); });
}

}  // namespace ergotune::cli

// ergotune predict: what configurations that were not measured would need.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "ergotune/error.hpp"
#include "report/prediction.hpp"

namespace ergotune::cli {
namespace {

struct PredictArguments {
  std::string store = kDefaultStore, quantity;
  std::int64_t session = 0;
  std::vector<std::string> configurations;
  std::size_t top = 5;
  bool json = false;
};

std::string unit_of(const PredictedSession& session, const std::string& quantity) {
  return quantity == "energy" ? "J" : quantity == "time" ? "s" : session.unit;
}

void print(const PredictedSession& session, const Predictor& predictor, const std::vector<Prediction>& list,
           const std::string& order) {
  fmt::print("{} on {}\n", session.problem, session.device);
  for (const auto& [name, model] : predictor.models())
    fmt::print(
        "  {:<6} modelled from {}: each predicted from the others, the median error is {:.2g} %, and {:.0f} % lie "
        "within the interval\n",
        name, counted(model.left_out.size(), session.provenance + " configuration"), 100 * model.median_error,
        100 * model.coverage);
  fmt::print("\n{}\n", list.empty() ? "Every configuration was measured, or has a value that never worked."
                                    : "Modelled, with 95 % intervals" + order + ":");
  for (const Prediction& one : list) {
    fmt::print(" ");
    for (const auto& [name, value] : one.values) {
      const std::string unit = unit_of(session, name);
      fmt::print(" {} {} ({} to {})", name, human(value.value, unit), human(value.value / value.factor, unit),
                 human(value.value * value.factor, unit));
      if (const auto measured = one.measured.find(name); measured != one.measured.end())
        fmt::print(", {} {}", session.provenance, human(measured->second, unit));
    }
    fmt::print("  {}\n", describe(session.space.parameters(), session.space.configuration(one.index)));
  }
}

void predict(const PredictArguments& arguments) {
  const PredictedSession session = predicted_session(arguments.store, arguments.session);
  const Predictor predictor(session.space, session.known);
  const std::vector<Prediction> list =
      chosen_predictions(session, predictor, {arguments.configurations, arguments.quantity, arguments.top});
  if (arguments.json) return print_json(prediction_document(session, predictor, list));
  const std::string quantity = quantity_of_choice(session, predictor, arguments.quantity);
  const char* most = session.is_largest(quantity) ? "largest" : "least";
  print(session, predictor, list,
        arguments.configurations.empty() ? fmt::format(", those of the {} {}", most, quantity) : "");
}

}  // namespace

void add_predict_command(Verb app) {
  auto arguments = std::make_shared<PredictArguments>();
  Verb verb = app.add_verb("predict", "Predict time and energy of configurations that were not measured");
  verb.add_option("store", arguments->store, "Results database (ergotune.db)");
  verb.add_option("--session", arguments->session, "Session of the store; the latest without");
  verb.add_option(
          "--config", arguments->configurations,
          "Predict this one, \"A=64, B=2\" or a JSON object; parameters left out take their defaults; repeatable")
      .take_all();
  verb.add_option("--by", arguments->quantity,
                  "Without --config: print those of the least time or energy (as the session's objective)")
      .one_of({"time", "energy"});
  verb.add_option("--top", arguments->top, "How many of them to print (5)").positive();
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune predict tuned.db\n"
      "  ergotune predict tuned.db --by energy --top 20 --json\n"
      "  ergotune predict tuned.db --config '{\"VWM\": 2}'\n"
      "Values are modelled by a Gaussian process over the measured configurations of the session.\n"
      "In Python: ergotune.predict(\"results.db\", configurations=[{\"MWG\": 64}])");
  verb.callback([arguments] { predict(*arguments); });
}

}  // namespace ergotune::cli

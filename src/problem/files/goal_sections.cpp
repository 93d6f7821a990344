// [metrics], objective, observe and [observers], [tune], [plans].
#include <fmt/format.h>

#include "problem/files/toml_sections.hpp"
#include "problem/tables/setting_table.hpp"

namespace ergotune::toml_reading {

namespace {

double positive(const Table& table, const char* key, double value) {
  if (value > 0) return value;
  throw UserError(fmt::format("\"{}\" in {} must be greater than 0, not {}", key, table.title(), value),
                  table.place_of(*table.find(key)));
}

/// A setting's value in whatever form it was written.
GivenValue given_by(const Table& parent, const toml::node& node, const std::string& what) {
  if (node.is_array()) return parent.values_of(node, what);
  if (!node.is_table()) return parent.value_of(node, what);
  const Table table = parent.table(node, what);
  std::map<std::string, Value> values;
  for (const Entry& entry : table.entries())
    values[entry.key] = table.value_of(*entry.node, fmt::format("\"{}\" in {}", entry.key, table.title()));
  return values;
}

/// A budget is written as on the command line, or as a plain count of evaluations.
std::optional<std::string> read_budget(const Table& table) {
  const toml::node* node = table.find("budget");
  if (!node) return std::nullopt;
  if (node->is_integer()) {
    return std::to_string(static_cast<std::int64_t>(positive(table, "budget", table.number_of(*node, "budget"))));
  }
  if (!node->is_string()) {
    table.wrong_kind(*node, fmt::format("\"budget\" in {}", table.title()),
                     "a count of evaluations or a time such as \"10min\"");
  }
  return *node->value<std::string>();
}

PlanStageSpec read_stage(const Table& table) {
  table.allow({"name", "free", "fixed", "objective", "strategy", "budget"});
  PlanStageSpec stage;
  stage.place = table.place();
  stage.name = table.optional_text("name").value_or("");
  table.require("free", "the parameters this stage may change: names, or \"code\", \"clocks\", \"all\"");
  stage.free = table.optional_texts("free");
  if (stage.free.empty())
    throw UserError(fmt::format("{} frees no parameters", table.title()), table.key_place("free"));
  if (const auto fixed = table.optional_table("fixed")) {
    for (const Entry& entry : fixed->entries()) {
      stage.fixed[entry.key] = fixed->value_of(*entry.node, fmt::format("\"{}\" in {}", entry.key, fixed->title()));
    }
  }
  stage.objective = table.optional_text("objective").value_or("");
  stage.strategy = table.optional_text("strategy").value_or("");
  stage.budget = read_budget(table).value_or("");
  return stage;
}

}  // namespace

std::vector<Metric> read_metrics(const Table& table) {
  std::vector<Metric> metrics;
  for (const Entry& entry : table.entries()) {
    Metric metric;
    metric.name = entry.key;
    const std::string what = fmt::format("metric \"{}\"", entry.key);
    if (entry.node->is_table()) {
      const Table inner = table.table(entry);
      inner.allow({"expression", "unit"});
      metric.expression = inner.expression_of(inner.require("expression", "how the metric is computed"), what);
      metric.unit = inner.optional_text("unit").value_or("");
    } else {
      if (!entry.node->is_string()) table.wrong_kind(*entry.node, what, "an expression in quotes");
      metric.expression = table.expression_of(*entry.node, what);
    }
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

ObjectiveSpec read_objective(const Table& parent, const toml::node& node) {
  ObjectiveSpec spec;
  if (!node.is_table()) {
    spec.text = parent.text_of(node, "\"objective\"");
    spec.place = parent.inside(node);
    return spec;
  }
  const Table table = parent.table(node, "[objective]");
  table.allow({"expression", "direction"});
  spec.text = table.text("expression", "what to optimise, such as \"energy\"");
  spec.place = table.inside(*table.find("expression"));
  if (const auto word = table.optional_text("direction")) {
    if (*word != "min" && *word != "max") {
      throw UserError(fmt::format("the direction of an objective is \"min\" or \"max\", not \"{}\"", *word),
                      table.place_of(*table.find("direction")));
    }
    spec.direction = *word == "min" ? Direction::minimise : Direction::maximise;
  }
  return spec;
}

std::vector<ObserverSpec> read_observers(const Table& root) {
  std::vector<ObserverSpec> specs;
  const auto add = [&](ObserverSpec spec) {
    for (const ObserverSpec& other : specs) {
      if (other.name == spec.name)
        throw UserError(fmt::format("observer \"{}\" is asked for twice; keep one of them", spec.name), spec.place);
    }
    specs.push_back(std::move(spec));
  };
  const SourcePlace place = root.key_place("observe");
  for (const std::string& name : root.optional_texts("observe")) add({name, {}, place});
  if (const auto table = root.optional_table("observers")) {
    for (const Entry& entry : table->entries()) {
      ObserverSpec spec{entry.key, {}, entry.place};
      const Table options = table->table(entry);
      for (const Entry& option : options.entries())
        spec.options[option.key] =
            options.values_of(*option.node, fmt::format("\"{}\" in {}", option.key, options.title()));
      add(std::move(spec));
    }
  }
  return specs;
}

Settings read_tune(const Table& table) {
  table.allow(setting_names());
  Settings settings;
  for (const Setting& setting : setting_table()) {
    const toml::node* node = table.find(setting.name);
    if (!node) continue;
    const std::string what = fmt::format("\"{}\" in {}", setting.name, table.title());
    try {
      give(settings, setting, given_by(table, *node, what), what);
    } catch (const UserError& error) {
      if (!error.place().file.empty()) throw;
      throw UserError(error.message(), table.place_of(*node));
    }
  }
  try {
    check_settings(settings);
  } catch (const UserError& error) {
    throw UserError(error.message(), table.key_place("min_repeats"));
  }
  return settings;
}

std::vector<PlanSpec> read_plans(const Table& table) {
  std::vector<PlanSpec> plans;
  for (const Entry& entry : table.entries()) {
    PlanSpec plan{entry.key, {}};
    const toml::array* stages = entry.node->as_array();
    if (!stages) {
      table.wrong_kind(*entry.node, fmt::format("plan \"{}\"", entry.key),
                       fmt::format("a list of stages, each a table [[plans.{}]]", entry.key));
    }
    for (const toml::node& node : *stages) {
      plan.stages.push_back(
          read_stage(table.table(node, fmt::format("stage {} of plan \"{}\"", plan.stages.size() + 1, plan.name))));
    }
    if (plan.stages.empty()) throw UserError(fmt::format("plan \"{}\" has no stages", plan.name), entry.place);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace ergotune::toml_reading

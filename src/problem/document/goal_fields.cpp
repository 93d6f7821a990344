// [metrics], objective, observe and [observers], [tune], [plans], [simulation].
#include <fmt/format.h>

#include "problem/document/fields.hpp"
#include "problem/tables/setting_table.hpp"

namespace ergotune::document {

template <>
const std::vector<std::string>& names_of<Direction>() {
  static const std::vector<std::string> names{"min", "max"};
  return names;
}

template <>
const std::vector<Field<Metric>>& fields<Metric>() {
  using T = Metric;
  static const std::vector<Field<T>> table{
      field<T>("expression", &T::expression, "How the metric is computed", {.required = true}),
      field<T>("unit", &T::unit, "Its unit")};
  return table;
}

template <>
const std::vector<Field<ObjectiveSpec>>& fields<ObjectiveSpec>() {
  using T = ObjectiveSpec;
  static const std::vector<Field<T>> table{
      field<T>("expression", &T::text, "What to optimise, such as \"energy\"", {.required = true}),
      field<T>("direction", &T::direction, "Whether less or more is better",
               {.otherwise = "what the quantity or its unit determines, else an error asks"})};
  return table;
}

namespace {

/// Reads a budget: text as on the command line, or a number of evaluations.
void read_budget(const Table& table, const Node& node, PlanStageSpec& stage) {
  const std::string what = table.what("budget");
  if (!node.is_integer() && !node.is_text())
    wrong_kind(node, what, "a count of evaluations or a time such as \"10min\"");
  if (node.is_integer() && !(node.number() > 0))
    throw UserError(fmt::format("{} must be greater than 0, not {}", what, node.number()), node.place);
  stage.budget = value_of(node, what).to_string();
}
Json budget_type() { return {{"type", {"integer", "string"}}}; }

void read_stage(const Table& table, PlanStageSpec& stage) {
  stage.place = table.place();
  read_fields(table, stage);
  if (stage.free.empty() && !table.context().trusted)
    throw UserError(fmt::format("{} frees no parameters", table.title()), table.key_place("free"));
}

}  // namespace

template <>
const std::vector<Field<PlanStageSpec>>& fields<PlanStageSpec>() {
  using T = PlanStageSpec;
  static const std::vector<Field<T>> table{
      field<T>("name", &T::name, "What the stage is called"),
      field<T>("free", &T::free,
               "The parameters this stage may change: names, or \"code\", \"clocks\", \"power\", \"all\"",
               {.required = true}),
      field<T>("fixed", &T::fixed, "Values of other parameters: a value, \"max\", \"min\", \"default\" or \"model\""),
      field<T>("objective", &T::objective, "What this stage optimises", {.otherwise = "the problem's"}),
      field<T>("strategy", &T::strategy, "How this stage searches", {.otherwise = "the run's"}),
      field<T>("budget", "When this stage stops: evaluations, or a time such as \"10min\"", budget_type(), read_budget,
               [](const T& from, Form) { return write_text(from.budget); }, {.otherwise = "when the strategy ends"})};
  return table;
}

namespace {

void read_metrics(const Table& table, Problem& problem) {
  for (const Entry& entry : table.entries()) {
    Metric metric;
    metric.name = entry.key;
    if (entry.value.is_table()) {
      read_fields(table.table(entry), metric);
    } else {
      const std::string what = fmt::format("metric \"{}\"", entry.key);
      if (!entry.value.is_text()) wrong_kind(entry.value, what, "an expression in quotes");
      metric.expression = expression_of(entry.value, what);
    }
    problem.metrics.push_back(std::move(metric));
  }
}
Node write_metrics(const std::vector<Metric>& metrics, Form form) {
  Node node(Node::Entries{});
  for (const Metric& metric : metrics) node.set(metric.name, write_fields(metric, form));
  return unless_empty(std::move(node));
}

void read_objective(const Table& parent, const Node& node, Problem& problem) {
  ObjectiveSpec& spec = problem.objective;
  const Node* text = &node;
  if (node.is_table()) {
    const Table table = parent.table(node, "[objective]");
    read_fields(table, spec);
    text = table.find("expression");
  } else {
    spec.text = text_of(node, "\"objective\"");
  }
  spec.place = inside(*text);
}
Node write_objective(const Problem& problem) {
  const ObjectiveSpec& objective = problem.objective;
  SourcePlace place = objective.place;
  if (place.column > 0) --place.column;
  Node text(objective.text, std::move(place));
  if (objective.direction)
    return Node::Entries{{"expression", std::move(text), {}},
                         {"direction", names_of<Direction>()[static_cast<std::size_t>(*objective.direction)], {}}};
  return objective == ObjectiveSpec() ? Node() : text;
}

void add_observer(std::vector<ObserverSpec>& specs, ObserverSpec spec) {
  for (const ObserverSpec& other : specs) {
    if (other.name == spec.name)
      throw UserError(fmt::format("observer \"{}\" is asked for twice; keep one of them", spec.name), spec.place);
  }
  specs.push_back(std::move(spec));
}
void read_observers(const Table& table, Problem& problem) {
  for (const Entry& entry : table.entries()) {
    ObserverSpec spec{entry.key, {}, entry.place};
    const Table options = table.table(entry);
    for (const Entry& option : options.entries())
      spec.options[option.key] = values_of(option.value, options.what(option.key));
    add_observer(problem.observers, std::move(spec));
  }
}
void read_observe(const Table& root, const Node& node, Problem& problem) {
  for (const std::string& name : texts_of(node, root.what("observe")))
    add_observer(problem.observers, {name, {}, root.key_place("observe")});
}
Node write_observers(const std::vector<ObserverSpec>& specs) {
  Node node(Node::Entries{});
  for (const ObserverSpec& spec : specs) {
    Node options(Node::Entries{}, spec.place);
    for (const auto& [name, values] : spec.options) options.set(name, write(values));
    node.set(spec.name, std::move(options));
  }
  return unless_empty(std::move(node));
}

/// Converts the value of a setting from any form in which it may be written.
GivenValue given_by(const Table& parent, const Node& node, const std::string& what) {
  if (node.list()) return values_of(node, what);
  if (!node.is_table()) return value_of(node, what);
  const Table table = parent.table(node, what);
  std::map<std::string, Value> values;
  for (const Entry& entry : table.entries()) values[entry.key] = value_of(entry.value, table.what(entry.key));
  return values;
}
void read_tune(const Table& table, ProblemFile& problem) {
  RunConfig& settings = problem.run;
  table.allow(setting_names());
  for (const Setting& setting : setting_table()) {
    const Node* node = table.find(setting.name);
    if (!node) continue;
    const std::string what = table.what(setting.name);
    try {
      give(settings, setting, given_by(table, *node, what), what);
    } catch (const UserError& error) {
      if (!error.place().file.empty()) throw;
      throw UserError(error.message(), node->place);
    }
  }
  if (table.context().trusted) return;
  try {
    check_settings(settings);
  } catch (const UserError& error) {
    throw UserError(error.message(), table.key_place("min_repeats"));
  }
}
Node write_given(const Value& value) { return node_of(value); }
Node write_given(const std::vector<Value>& values) { return write(values); }
Node write_given(const std::map<std::string, Value>& values) {
  return Type<std::map<std::string, Value>>::write(values, Form::file);
}
Node write_tune(const RunConfig& settings) {
  Node node(Node::Entries{});
  for (const Setting& setting : setting_table())
    if (!is_default(settings, setting))
      std::visit([&](const auto& value) { node.set(std::string(setting.name), write_given(value)); },
                 value_of(settings, setting));
  return unless_empty(std::move(node));
}
Json type_of(const Setting& setting, Schema& schema) {
  const auto bounded = [&](const char* kind) {
    Json type{{"type", kind}};
    type[setting.exclusive_minimum ? "exclusiveMinimum" : "minimum"] = setting.least;
    return type;
  };
  if (setting.name == "budget") return budget_type();
  if (setting.name == "precision") return any_type({bounded("number"), Json{{"type", "string"}, {"pattern", "%$"}}});
  if (setting.is_flag()) return Type<bool>::type(schema);
  if (std::holds_alternative<double RunConfig::*>(setting.member)) return bounded("number");
  if (std::holds_alternative<int RunConfig::*>(setting.member) ||
      std::holds_alternative<std::uint64_t RunConfig::*>(setting.member))
    return bounded("integer");
  if (!setting.is_list()) return string_type();
  return std::holds_alternative<std::vector<std::string> RunConfig::*>(setting.member) ? strings_type()
                                                                                       : map_type(value_type(schema));
}

void read_plans(const Table& table, Problem& problem) {
  for (const Entry& entry : table.entries()) {
    PlanSpec plan{entry.key, {}};
    if (!entry.value.list()) {
      wrong_kind(entry.value, fmt::format("plan \"{}\"", entry.key),
                 fmt::format("a list of stages, each a table [[plans.{}]]", entry.key));
    }
    for (const Node& node : *entry.value.list()) {
      const Table stage = table.table(node, fmt::format("stage {} of plan \"{}\"", plan.stages.size() + 1, plan.name));
      read_stage(stage, plan.stages.emplace_back());
    }
    if (plan.stages.empty()) throw UserError(fmt::format("plan \"{}\" has no stages", plan.name), entry.place);
    problem.plans.push_back(std::move(plan));
  }
}
Node write_plans(const std::vector<PlanSpec>& plans, Form form) {
  Node node(Node::Entries{});
  for (const PlanSpec& plan : plans) {
    Node::List stages;
    for (const PlanStageSpec& stage : plan.stages) stages.push_back(write_fields(stage, form, stage.place));
    node.set(plan.name, std::move(stages));
  }
  return unless_empty(std::move(node));
}

/// Reads kernel properties for a simulated device. Names of properties, and names within their expressions, are checked
/// by the simulation (evaluate/recorded/simulated.hpp), since expressions may use values that it computes.
void read_simulation(const Table& table, Problem& problem) {
  auto& model = problem.simulation;
  for (const Entry& entry : table.entries()) {
    if (!entry.value.is_table()) {
      model[entry.key] = expression_of(entry.value, "\"" + entry.key + "\" of [simulation]");
      continue;
    }
    const Table kernel = table.table(entry);  // properties of one kernel: lud.flops
    for (const Entry& inner : kernel.entries())
      model[entry.key + "." + inner.key] = expression_of(inner.value, "\"" + inner.key + "\" of " + kernel.title());
  }
}

}  // namespace

template <>
const std::vector<Field<RunConfig>>& fields<RunConfig>() {
  static const std::vector<Field<RunConfig>> table = [] {
    std::vector<Field<RunConfig>> rows;
    for (const Setting& setting : setting_table()) {
      static std::vector<std::unique_ptr<std::string>> defaults;
      const std::string& otherwise = *defaults.emplace_back(std::make_unique<std::string>(default_text(setting)));
      rows.push_back({setting.name,
                      setting.help,
                      {.otherwise = otherwise},
                      [&setting](Schema& schema) { return type_of(setting, schema); },
                      {},
                      {}});
    }
    return rows;
  }();
  return table;
}

std::vector<Field<Problem>> goal_fields() {
  using T = Problem;
  constexpr Options kGoal{.incidental = true};
  const auto metrics_type = [](Schema& schema) {
    return map_type(
        schema.section<Metric>("metric", "[metrics]: each metric is an expression or a table", {string_type()}));
  };
  const auto objective_type = [](Schema& schema) {
    return schema.section<ObjectiveSpec>("objective", "objective: a string or a table", {string_type()});
  };
  const auto plans_type = [](Schema& schema) {
    return map_type(list_type(schema.section<PlanStageSpec>("stage", "[[plans.NAME]]: the stages of a plan")));
  };
  const auto simulation_type = [](Schema& schema) {
    return map_type(any_type({expression_type(schema), map_type(expression_type(schema))}));
  };
  return {table_field<T>(
              "metrics", "Computed for every configuration; later ones may use earlier ones", metrics_type,
              read_metrics, [](const T& from, Form form) { return write_metrics(from.metrics, form); }, kGoal),
          field<T>("objective", "What to optimise: \"time\", \"energy\", \"max gflops\" ...", objective_type,
                   read_objective, [](const T& from, Form) { return write_objective(from); },
                   {.incidental = true, .otherwise = "\"time\""}),
          field<T>("observe", "Observers without options", strings_type(), read_observe, {}, kGoal),
          table_field<T>(
              "observers", "Observers with their options, a table each",
              Type<std::map<std::string, std::map<std::string, std::vector<Value>>>>::type, read_observers,
              [](const T& from, Form) { return write_observers(from.observers); }, kGoal),
          table_field<T>(
              "plans", "Plans by name: a list of stages each", plans_type, read_plans,
              [](const T& from, Form form) { return write_plans(from.plans, form); }, kGoal),
          table_field<T>("simulation",
                         "Properties of a launch for simulated devices, as expressions: the page \"Simulated devices\"",
                         simulation_type, read_simulation, field<T>("simulation", &T::simulation, "").write)};
}

Field<ProblemFile> tune_field() {
  return table_field<ProblemFile>(
      "tune", "Settings of the run; the command line and Python's keywords take precedence",
      [](Schema& schema) { return schema.section<RunConfig>("tune", "[tune]"); }, read_tune,
      [](const ProblemFile& from, Form) { return write_tune(from.run); }, {.incidental = true});
}

void move_objective_from_tune(const Table& root, ProblemFile& problem) {
  std::string& given = problem.run.objective;
  if (given.empty() || root.context().trusted) return;
  const Table tune = *root.optional_table("tune");
  if (root.has("objective"))
    throw UserError("the objective is given twice, at the top and in [tune]; keep one of them",
                    tune.key_place("objective"));
  problem.objective.text = given;
  problem.objective.place = inside(*tune.find("objective"));
  given.clear();  // the objective in [tune] has been moved to the problem
}

}  // namespace ergotune::document

// A problem as one self-contained JSON document, for worker processes and for the store. Lossless but for
// functions given in memory (a restriction or a generator in Python), of which only the fact that they were
// there is kept.
#include <fmt/format.h>

#include "base/json_depth.hpp"
#include "ergotune/problem.hpp"
#include "problem/files/document.hpp"
#include "problem/program.hpp"
#include "problem/tables/setting_table.hpp"

namespace ergotune {

constexpr int kDocumentVersion = 1;

namespace document {

Json write(const Parameter& parameter) {
  Json json{{"name", parameter.name},
            {"kind", static_cast<int>(parameter.kind)},
            {"values", write_list(parameter.values)},
            {"place", write(parameter.place)}};
  if (parameter.range) {
    json["range"] = {write(parameter.range->start), write(parameter.range->stop), write(parameter.range->step)};
  }
  if (parameter.generator) json["generated"] = true;
  if (parameter.default_value) json["default"] = write(*parameter.default_value);
  return json;
}
static Parameter read_parameter(const Json& json) {
  Parameter parameter;
  parameter.name = json.at("name");
  parameter.kind = read_enumerator(json.at("kind"), ParameterKind::power_limit_w);
  parameter.values = read_list<Value>(json.at("values"), read_value);
  parameter.place = read_place(json.at("place"));
  if (json.contains("range")) {
    const Json& range = json.at("range");
    parameter.range =
        DependentRange{read_expression(range.at(0)), read_expression(range.at(1)), read_expression(range.at(2))};
  }
  if (json.contains("default")) parameter.default_value = read_value(json.at("default"));
  return parameter;
}

Json write(const ExecutionParameterSpec& spec) {
  return Json{{"kind", static_cast<int>(spec.kind)},
              {"choice", static_cast<int>(spec.choice)},
              {"count", spec.count},
              {"values", write_list(spec.values)},
              {"low", number(spec.low)},
              {"high", number(spec.high)},
              {"step", number(spec.step)},
              {"place", write(spec.place)}};
}
static ExecutionParameterSpec read_execution(const Json& json) {
  ExecutionParameterSpec spec;
  spec.kind = read_enumerator(json.at("kind"), ParameterKind::power_limit_w);
  spec.choice = read_enumerator(json.at("choice"), ExecutionParameterSpec::Choice::model);
  spec.count = json.at("count");
  spec.values = read_list<Value>(json.at("values"), read_value);
  spec.low = number(json.at("low"));
  spec.high = number(json.at("high"));
  spec.step = number(json.at("step"));
  spec.place = read_place(json.at("place"));
  return spec;
}

Json write(const Restriction& restriction) {
  Json json{{"name", restriction.name}, {"class", static_cast<int>(restriction.restriction_class)}};
  if (restriction.function) {
    json["function_names"] = restriction.function_names;
  } else {
    json["expression"] = write(restriction.expression);
  }
  return json;
}
static Restriction read_restriction(const Json& json) {
  Restriction restriction;
  restriction.name = json.at("name");
  restriction.restriction_class = read_enumerator(json.at("class"), RestrictionClass::performance);
  if (json.contains("expression")) {
    restriction.expression = read_expression(json.at("expression"));
  } else {
    // The function stayed in the process that had it; what came through it has met the condition.
    restriction.function_names = json.at("function_names").get<std::vector<std::string>>();
    restriction.expression = Expression::constant(true);
  }
  return restriction;
}

Json write(const Metric& metric) {
  return Json{{"name", metric.name}, {"expression", write(metric.expression)}, {"unit", metric.unit}};
}
static Metric read_metric(const Json& json) {
  return {json.at("name"), read_expression(json.at("expression")), json.at("unit")};
}

static Json write(const ObjectiveSpec& objective) {
  Json json{{"text", objective.text}, {"place", write(objective.place)}};
  if (objective.direction) json["direction"] = *objective.direction == Direction::minimise ? "min" : "max";
  return json;
}
static ObjectiveSpec read_objective(const Json& json) {
  ObjectiveSpec objective{json.at("text"), std::nullopt, read_place(json.at("place"))};
  if (json.contains("direction")) {
    objective.direction = json.at("direction") == "min" ? Direction::minimise : Direction::maximise;
  }
  return objective;
}

Json write(const PlanStageSpec& stage) {
  Json fixed = Json::object();
  for (const auto& [name, value] : stage.fixed) fixed[name] = write(value);
  return Json{{"name", stage.name},           {"free", stage.free},         {"fixed", fixed},
              {"objective", stage.objective}, {"strategy", stage.strategy}, {"budget", stage.budget},
              {"place", write(stage.place)}};
}
Json write(const PlanSpec& plan) { return Json{{"name", plan.name}, {"stages", write_list(plan.stages)}}; }
static PlanStageSpec read_stage(const Json& json) {
  PlanStageSpec stage;
  stage.name = json.at("name");
  stage.free = json.at("free").get<std::vector<std::string>>();
  for (const auto& [name, value] : json.at("fixed").items()) stage.fixed[name] = read_value(value);
  stage.objective = json.at("objective");
  stage.strategy = json.at("strategy");
  stage.budget = json.at("budget");
  stage.place = read_place(json.at("place"));
  return stage;
}
static PlanSpec read_plan(const Json& json) {
  return {json.at("name"), read_list<PlanStageSpec>(json.at("stages"), read_stage)};
}

template <class T>
static Json write_setting(const T& value) {
  return value;
}
static Json write_setting(const std::filesystem::path& value) { return value.string(); }
static Json write_setting(const std::map<std::string, Value>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = write(value);
  return json;
}
template <class T>
static void read_setting(const Json& json, T& value) {
  value = json.get<T>();
}
static void read_setting(const Json& json, std::filesystem::path& value) { value = json.get<std::string>(); }
static void read_setting(const Json& json, std::map<std::string, Value>& values) {
  for (const auto& [name, value] : json.items()) values[name] = read_value(value);
}

/// What is not the default. Lists are always there: so are they in the documents by which ergotune 0.1 found sessions.
static Json write(const Settings& settings) {
  Json json = Json::object();
  for (const Setting& setting : setting_table()) {
    // the lists of the first version are always there: sessions are found by this document
    if (is_default(settings, setting) && (!setting.is_list() || setting.name == "prior" || setting.name == "workers"))
      continue;
    std::visit([&](auto member) { json[setting.name] = write_setting(settings.*member); }, setting.member);
  }
  return json;
}
static Settings read_settings(const Json& json) {
  Settings settings;
  for (const Setting& setting : setting_table()) {
    if (const auto found = json.find(setting.name); found != json.end())
      std::visit([&](auto member) { read_setting(*found, settings.*member); }, setting.member);
  }
  return settings;
}

Json write(const ObserverSpec& spec) {
  Json options = Json::object();
  for (const auto& [name, values] : spec.options) options[name] = write_list(values);
  return Json{{"name", spec.name}, {"options", options}, {"place", write(spec.place)}};
}
static ObserverSpec read_observer(const Json& json) {
  ObserverSpec spec;
  spec.name = json.at("name");
  for (const auto& [name, values] : json.at("options").items())
    spec.options[name] = read_list<Value>(values, read_value);
  spec.place = read_place(json.at("place"));
  return spec;
}

static Problem read_problem(const Json& json) {
  Problem problem;
  problem.name = json.at("name");
  problem.description = json.at("description");
  problem.file = read_path(json.at("file"));
  problem.kernel() = read_kernel(json.at("kernel"));
  if (json.contains("further_kernels")) {
    for (const Json& kernel : json.at("further_kernels")) problem.kernels.push_back(read_kernel(kernel));
  }
  if (json.contains("program")) problem.program = std::make_shared<const Program>(read_program(json.at("program")));
  if (json.contains("steps")) problem.steps = read_list<Step>(json.at("steps"), read_step);
  problem.constants = read_constants(json.at("constants"));
  for (const auto& [device, constants] : json.at("constants_by_device").items()) {
    problem.constants_by_device[device] = read_constants(constants);
  }
  problem.parameters = read_list<Parameter>(json.at("parameters"), read_parameter);
  problem.execution_parameters = read_list<ExecutionParameterSpec>(json.at("execution_parameters"), read_execution);
  problem.restrictions = read_list<Restriction>(json.at("restrictions"), read_restriction);
  problem.metrics = read_list<Metric>(json.at("metrics"), read_metric);
  problem.objective = read_objective(json.at("objective"));
  problem.verification = read_verification(json.at("verification"));
  problem.plans = read_list<PlanSpec>(json.at("plans"), read_plan);
  problem.settings = read_settings(json.at("defaults"));
  if (json.contains("observers")) problem.observers = read_list<ObserverSpec>(json.at("observers"), read_observer);
  if (const auto model = json.find("simulation"); model != json.end()) {
    for (const auto& [name, expression] : model->items()) problem.simulation[name] = read_expression(expression);
  }
  return problem;
}

}  // namespace document

using namespace document;

std::string serialise(const Problem& problem) {
  Json by_device = Json::object();
  for (const auto& [device, constants] : problem.constants_by_device) by_device[device] = write(constants);
  Json simulation = Json::object();
  for (const auto& [name, expression] : problem.simulation) simulation[name] = write(expression);
  Json json{{"ergotune_problem", kDocumentVersion},
            {"name", problem.name},
            {"description", problem.description},
            {"file", write(problem.file)},
            {"kernel", write(problem.kernel())},
            {"constants", write(problem.constants)},
            {"constants_by_device", by_device},
            {"parameters", write_list(problem.parameters)},
            {"execution_parameters", write_list(problem.execution_parameters)},
            {"restrictions", write_list(problem.restrictions)},
            {"metrics", write_list(problem.metrics)},
            {"objective", write(problem.objective)},
            {"verification", write(problem.verification)},
            {"plans", write_list(problem.plans)},
            {"defaults", write(problem.settings)},
            {"simulation", simulation}};
  // Absent where there is nothing to say, so that the identity of stored sessions stays what it was.
  if (problem.kernels.size() > 1) {
    for (std::size_t k = 1; k < problem.kernels.size(); ++k)
      json["further_kernels"].push_back(write(problem.kernels[k]));
  }
  if (!problem.steps.empty()) json["steps"] = write_list(problem.steps);
  if (problem.program) json["program"] = write(*problem.program);
  if (!problem.observers.empty()) json["observers"] = write_list(problem.observers);
  // A source may hold bytes that are not UTF-8 (a comment in Latin-1); they must not stop a session.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Problem deserialise(const std::string& document) {
  try {
    const auto json = parse_json<Json>(document);
    const int version = json.at("ergotune_problem");
    if (version != kDocumentVersion) {
      throw Error(fmt::format("this problem document has version {}; this ergotune reads version {}", version,
                              kDocumentVersion));
    }
    return read_problem(json);
  } catch (const Json::exception& error) {
    throw Error(fmt::format("this is no problem document: {}", error.what()));
  }
}

}  // namespace ergotune

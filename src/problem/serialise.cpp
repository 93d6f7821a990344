// A problem as one self-contained JSON document, for worker processes and for the store. Lossless but for
// functions given in memory (a restriction or a generator in Python), of which only the fact that they were
// there is kept.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ergotune/problem/load.hpp"
#include "problem/base64.hpp"

namespace ergotune {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDocumentVersion = 1;

// JSON has no infinities and no NaN; they travel in words.
Json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}
double number(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto word = json.get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Json write(const Value& value) {
  if (value.is_bool()) return std::get<bool>(value.data());
  if (value.is_integer()) return value.as_integer();
  if (value.is_string()) return value.as_string();
  const double real = value.as_real();
  return std::isfinite(real) ? Json(real) : Json{{"real", number(real)}};
}
Value read_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_object()) return number(json.at("real"));
  return json.get<std::string>();
}

Json write(const SourcePlace& place) { return Json::array({place.file, place.line, place.column}); }
SourcePlace read_place(const Json& json) { return {json.at(0), json.at(1), json.at(2)}; }

Json write(const Expression& expression) {
  const std::string text = expression.text().empty() ? expression.to_string() : expression.text();
  return Json{{"text", text}, {"place", write(expression.place())}};
}
Expression read_expression(const Json& json) {
  return Expression::parse(json.at("text").get<std::string>(), read_place(json.at("place")));
}

Json write(const Constants& constants) {
  Json json = Json::object();
  for (const auto& [name, value] : constants) json[name] = write(value);
  return json;
}
Constants read_constants(const Json& json) {
  Constants constants;
  for (const auto& [name, value] : json.items()) constants[name] = read_value(value);
  return constants;
}

Json write(const Template& text);
Json write(const std::filesystem::path& path);
Json write(const KernelSource& source);
Json write(const Argument& argument);
Json write(const Parameter& parameter);
Json write(const ExecutionParameterSpec& spec);
Json write(const Restriction& restriction);
Json write(const Metric& metric);
Json write(const PlanStageSpec& stage);
Json write(const PlanSpec& plan);

template <class T>
Json write_list(const std::vector<T>& items) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(write(item));
  return json;
}
template <class T, class F>
std::vector<T> read_list(const Json& json, F read) {
  std::vector<T> items;
  for (const Json& item : json) items.push_back(read(item));
  return items;
}

Json write(const Template& text) { return text.text(); }
Template read_template(const Json& json) { return Template::parse(json.get<std::string>()); }

Json write(const std::filesystem::path& path) { return path.string(); }
std::filesystem::path read_path(const Json& json) { return json.get<std::string>(); }

Json write(const KernelSource& source) {
  return Json{{"language", to_string(source.language)},
              {"file", write(source.file)},
              {"text", source.text},
              {"include_folders", write_list(source.include_folders)}};
}
Language read_language(const Json& json) {
  for (int i = 0; i <= static_cast<int>(Language::fortran); ++i) {
    if (to_string(static_cast<Language>(i)) == json.get<std::string>()) return static_cast<Language>(i);
  }
  throw Error(fmt::format("unknown language {} in a stored problem", json.dump()));
}
KernelSource read_source(const Json& json) {
  return {read_language(json.at("language")), read_path(json.at("file")), json.at("text"),
          read_list<std::filesystem::path>(json.at("include_folders"), read_path)};
}

Json write(const Fill& fill) {
  Json json{{"kind", static_cast<int>(fill.kind)}, {"seed", fill.seed},           {"low", number(fill.low)},
            {"high", number(fill.high)},           {"start", number(fill.start)}, {"step", number(fill.step)},
            {"value", number(fill.value)},         {"file", write(fill.file)}};
  if (fill.data) json["data"] = base64_encode(*fill.data);
  return json;
}
Fill read_fill(const Json& json) {
  Fill fill;
  fill.kind = static_cast<Fill::Kind>(json.at("kind").get<int>());
  fill.seed = json.at("seed");
  fill.low = number(json.at("low"));
  fill.high = number(json.at("high"));
  fill.start = number(json.at("start"));
  fill.step = number(json.at("step"));
  fill.value = number(json.at("value"));
  fill.file = read_path(json.at("file"));
  if (json.contains("data")) {
    fill.data =
        std::make_shared<std::vector<std::uint8_t>>(base64_decode(json.at("data").get<std::string>()));
  }
  return fill;
}

Json write(const Argument& argument) {
  return Json{{"kind", static_cast<int>(argument.kind)},
              {"name", argument.name},
              {"type", to_string(argument.type)},
              {"value", write(argument.value)},
              {"count", write(argument.count)},
              {"fill", write(argument.fill)},
              {"access", static_cast<int>(argument.access)},
              {"place", write(argument.place)}};
}
Argument read_argument(const Json& json) {
  Argument argument;
  argument.kind = static_cast<Argument::Kind>(json.at("kind").get<int>());
  argument.name = json.at("name");
  argument.type = element_type(json.at("type").get<std::string>()).value();
  argument.value = read_expression(json.at("value"));
  argument.count = read_expression(json.at("count"));
  argument.fill = read_fill(json.at("fill"));
  argument.access = static_cast<Access>(json.at("access").get<int>());
  argument.place = read_place(json.at("place"));
  return argument;
}

Json write(const Kernel& kernel) {
  Json options = Json::object();
  for (const auto& [language, list] : kernel.options) options[language] = write_list(list);
  return Json{{"function", write(kernel.function)},
              {"sources", write_list(kernel.sources)},
              {"arguments", write_list(kernel.arguments)},
              {"grid", write_list(kernel.launch.grid)},
              {"global", write_list(kernel.launch.global)},
              {"block", write_list(kernel.launch.block)},
              {"shared_memory_bytes", write(kernel.launch.shared_memory_bytes)},
              {"options", options}};
}
Kernel read_kernel(const Json& json) {
  Kernel kernel;
  kernel.function = read_template(json.at("function"));
  kernel.sources = read_list<KernelSource>(json.at("sources"), read_source);
  kernel.arguments = read_list<Argument>(json.at("arguments"), read_argument);
  kernel.launch.grid = read_list<Expression>(json.at("grid"), read_expression);
  kernel.launch.global = read_list<Expression>(json.at("global"), read_expression);
  kernel.launch.block = read_list<Expression>(json.at("block"), read_expression);
  kernel.launch.shared_memory_bytes = read_expression(json.at("shared_memory_bytes"));
  for (const auto& [language, list] : json.at("options").items()) {
    kernel.options[language] = read_list<Template>(list, read_template);
  }
  return kernel;
}

Json write(const Parameter& parameter) {
  Json json{{"name", parameter.name},
            {"kind", static_cast<int>(parameter.kind)},
            {"values", write_list(parameter.values)},
            {"place", write(parameter.place)}};
  if (parameter.range) {
    json["range"] = {write(parameter.range->start), write(parameter.range->stop),
                     write(parameter.range->step)};
  }
  if (parameter.generator) json["generated"] = true;
  if (parameter.default_value) json["default"] = write(*parameter.default_value);
  return json;
}
Parameter read_parameter(const Json& json) {
  Parameter parameter;
  parameter.name = json.at("name");
  parameter.kind = static_cast<ParameterKind>(json.at("kind").get<int>());
  parameter.values = read_list<Value>(json.at("values"), read_value);
  parameter.place = read_place(json.at("place"));
  if (json.contains("range")) {
    const Json& range = json.at("range");
    parameter.range = DependentRange{read_expression(range.at(0)), read_expression(range.at(1)),
                                     read_expression(range.at(2))};
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
ExecutionParameterSpec read_execution(const Json& json) {
  ExecutionParameterSpec spec;
  spec.kind = static_cast<ParameterKind>(json.at("kind").get<int>());
  spec.choice = static_cast<ExecutionParameterSpec::Choice>(json.at("choice").get<int>());
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
Restriction read_restriction(const Json& json) {
  Restriction restriction;
  restriction.name = json.at("name");
  restriction.restriction_class = static_cast<RestrictionClass>(json.at("class").get<int>());
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
Metric read_metric(const Json& json) {
  return {json.at("name"), read_expression(json.at("expression")), json.at("unit")};
}

Json write(const ObjectiveSpec& objective) {
  Json json{{"text", objective.text}, {"place", write(objective.place)}};
  if (objective.direction) json["direction"] = *objective.direction == Direction::minimise ? "min" : "max";
  return json;
}
ObjectiveSpec read_objective(const Json& json) {
  ObjectiveSpec objective{json.at("text"), std::nullopt, read_place(json.at("place"))};
  if (json.contains("direction")) {
    objective.direction = json.at("direction") == "min" ? Direction::minimise : Direction::maximise;
  }
  return objective;
}

Json write(const Verification& verification) {
  Json files = Json::object();
  for (const auto& [name, file] : verification.files) files[name] = write(file);
  Json json{{"kind", static_cast<int>(verification.kind)},
            {"files", files},
            {"absolute_tolerance", number(verification.absolute_tolerance)},
            {"relative_tolerance", number(verification.relative_tolerance)}};
  if (verification.reference) json["reference"] = write(*verification.reference);
  return json;
}
Verification read_verification(const Json& json) {
  Verification verification;
  verification.kind = static_cast<Verification::Kind>(json.at("kind").get<int>());
  for (const auto& [name, file] : json.at("files").items()) verification.files[name] = read_path(file);
  verification.absolute_tolerance = number(json.at("absolute_tolerance"));
  verification.relative_tolerance = number(json.at("relative_tolerance"));
  if (json.contains("reference")) {
    verification.reference = std::make_shared<Kernel>(read_kernel(json.at("reference")));
  }
  return verification;
}

Json write(const PlanStageSpec& stage) {
  Json fixed = Json::object();
  for (const auto& [name, value] : stage.fixed) fixed[name] = write(value);
  return Json{{"name", stage.name},           {"free", stage.free},         {"fixed", fixed},
              {"objective", stage.objective}, {"strategy", stage.strategy}, {"budget", stage.budget},
              {"place", write(stage.place)}};
}
Json write(const PlanSpec& plan) { return Json{{"name", plan.name}, {"stages", write_list(plan.stages)}}; }
PlanStageSpec read_stage(const Json& json) {
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
PlanSpec read_plan(const Json& json) {
  return {json.at("name"), read_list<PlanStageSpec>(json.at("stages"), read_stage)};
}

template <class T>
void write_optional(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}
template <class T>
void read_optional(const Json& json, const char* key, std::optional<T>& value) {
  if (json.contains(key)) value = json.at(key).get<T>();
}

Json write(const TuneDefaults& tune) {
  Json json = Json::object();
  write_optional(json, "device", tune.device);
  write_optional(json, "strategy", tune.strategy);
  write_optional(json, "budget", tune.budget);
  write_optional(json, "objective", tune.objective);
  write_optional(json, "store", tune.store);
  write_optional(json, "plan", tune.plan);
  write_optional(json, "seed", tune.seed);
  write_optional(json, "jobs", tune.jobs);
  json["sensors"] = tune.sensors;
  json["controls"] = tune.controls;
  json["strategy_options"] = Json::object();
  for (const auto& [name, value] : tune.strategy_options) json["strategy_options"][name] = write(value);
  write_optional(json, "precision", tune.precision);
  write_optional(json, "time_limit", tune.time_limit);
  write_optional(json, "energy_budget", tune.energy_budget);
  write_optional(json, "cold_cache", tune.cold_cache);
  write_optional(json, "warm_up", tune.warm_up);
  write_optional(json, "min_repeats", tune.min_repeats);
  write_optional(json, "max_repeats", tune.max_repeats);
  return json;
}
TuneDefaults read_tune(const Json& json) {
  TuneDefaults tune;
  read_optional(json, "device", tune.device);
  read_optional(json, "strategy", tune.strategy);
  read_optional(json, "budget", tune.budget);
  read_optional(json, "objective", tune.objective);
  read_optional(json, "store", tune.store);
  read_optional(json, "plan", tune.plan);
  read_optional(json, "seed", tune.seed);
  read_optional(json, "jobs", tune.jobs);
  tune.sensors = json.at("sensors").get<std::vector<std::string>>();
  tune.controls = json.at("controls").get<std::vector<std::string>>();
  for (const auto& [name, value] : json.at("strategy_options").items())
    tune.strategy_options[name] = read_value(value);
  read_optional(json, "precision", tune.precision);
  read_optional(json, "time_limit", tune.time_limit);
  read_optional(json, "energy_budget", tune.energy_budget);
  read_optional(json, "cold_cache", tune.cold_cache);
  read_optional(json, "warm_up", tune.warm_up);
  read_optional(json, "min_repeats", tune.min_repeats);
  read_optional(json, "max_repeats", tune.max_repeats);
  return tune;
}

Problem read_problem(const Json& json) {
  Problem problem;
  problem.name = json.at("name");
  problem.description = json.at("description");
  problem.file = read_path(json.at("file"));
  problem.kernel = read_kernel(json.at("kernel"));
  problem.constants = read_constants(json.at("constants"));
  for (const auto& [device, constants] : json.at("constants_by_device").items()) {
    problem.constants_by_device[device] = read_constants(constants);
  }
  problem.parameters = read_list<Parameter>(json.at("parameters"), read_parameter);
  problem.execution_parameters =
      read_list<ExecutionParameterSpec>(json.at("execution_parameters"), read_execution);
  problem.restrictions = read_list<Restriction>(json.at("restrictions"), read_restriction);
  problem.metrics = read_list<Metric>(json.at("metrics"), read_metric);
  problem.objective = read_objective(json.at("objective"));
  problem.verification = read_verification(json.at("verification"));
  problem.plans = read_list<PlanSpec>(json.at("plans"), read_plan);
  problem.defaults = read_tune(json.at("defaults"));
  if (const auto model = json.find("simulation"); model != json.end()) {
    for (const auto& [name, expression] : model->items())
      problem.simulation[name] = read_expression(expression);
  }
  return problem;
}

}  // namespace

std::string serialise(const Problem& problem) {
  Json by_device = Json::object();
  for (const auto& [device, constants] : problem.constants_by_device) by_device[device] = write(constants);
  Json simulation = Json::object();
  for (const auto& [name, expression] : problem.simulation) simulation[name] = write(expression);
  const Json json{{"ergotune_problem", kDocumentVersion},
                  {"name", problem.name},
                  {"description", problem.description},
                  {"file", write(problem.file)},
                  {"kernel", write(problem.kernel)},
                  {"constants", write(problem.constants)},
                  {"constants_by_device", by_device},
                  {"parameters", write_list(problem.parameters)},
                  {"execution_parameters", write_list(problem.execution_parameters)},
                  {"restrictions", write_list(problem.restrictions)},
                  {"metrics", write_list(problem.metrics)},
                  {"objective", write(problem.objective)},
                  {"verification", write(problem.verification)},
                  {"plans", write_list(problem.plans)},
                  {"defaults", write(problem.defaults)},
                  {"simulation", simulation}};
  // A source may hold bytes that are not UTF-8 (a comment in Latin-1); they must not stop a session.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Problem deserialise(const std::string& document) {
  try {
    const Json json = Json::parse(document);
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

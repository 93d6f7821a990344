// Writes a problem as T1 JSON. Leaves out what T1 cannot express (verification, metrics, execution parameters, plans);
// arguments that depend on the configuration are those of the default configuration.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {

namespace {

using Json = nlohmann::ordered_json;

/// Returns the expression with constants replaced by their values, since T1 has no constants.
std::string without_constants(const Expression& expression, const Constants& constants) {
  const std::string text = expression.to_string();
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  std::string result;
  char quote = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (quote || c == '\'' || c == '"' || !in_word(c)) {
      if (quote && c == '\\' && i + 1 < text.size()) result += text[i++];
      if (!quote && (c == '\'' || c == '"')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      }
      result += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    const auto found = constants.find(word);
    result += found == constants.end() ? word : found->second.to_literal();
    i = end;
  }
  return result;
}

const char* type_of(const std::vector<Value>& values) {
  const auto all = [&](auto is) { return std::ranges::all_of(values, is); };
  if (all([](const Value& v) { return v.is_bool(); })) return "bool";
  if (all([](const Value& v) { return v.is_integer(); })) return "int";
  if (all([](const Value& v) { return v.is_number(); })) return "float";
  return "string";
}

Json parameter_json(const Parameter& parameter, const Constants& constants) {
  std::string values;
  if (parameter.range) {
    values = fmt::format("range({}, {}, {})", without_constants(parameter.range->start, constants),
                         without_constants(parameter.range->stop, constants),
                         without_constants(parameter.range->step, constants));
  } else {
    for (const Value& value : parameter.values) values += (values.empty() ? "" : ", ") + value.to_literal();
    values = fmt::format("[{}]", values);
  }
  Json json{
      {"Name", parameter.name}, {"Type", parameter.range ? "int" : type_of(parameter.values)}, {"Values", values}};
  if (parameter.default_value) {
    json["Default"] = std::visit([](const auto& value) { return Json(value); }, parameter.default_value->data());
  }
  return json;
}

Json condition_json(const Restriction& restriction, const Problem& problem) {
  Json used = Json::array();
  for (const Parameter& parameter : problem.parameters) {
    const auto& names = restriction.expression.names();
    if (std::ranges::find(names, parameter.name) != names.end()) used.push_back(parameter.name);
  }
  return {{"Expression", without_constants(restriction.expression, problem.constants)}, {"Parameters", used}};
}

std::string type_name(ElementType type) {
  if (type == ElementType::float16) return "half";
  return type == ElementType::float32 ? "float" : type == ElementType::float64 ? "double" : to_string(type);
}

/// Returns the value of an expression that is constant, otherwise its text.
Json evaluated(const Expression& expression, const Constants& constants) {
  try {
    const Value value = expression.evaluate(constants);
    if (value.is_integer()) return value.as_integer();
    if (value.is_number()) return value.as_real();
  } catch (const Error&) {
    // it uses parameters or device properties
  }
  return without_constants(expression, constants);
}

Json argument_json(const Argument& argument, const Constants& constants) {
  Json json{{"Name", argument.name}, {"Type", type_name(argument.type)}};
  if (argument.kind == Argument::Kind::scalar) {
    json["MemoryType"] = "Scalar";
    json["FillType"] = "Constant";
    const Json value = evaluated(argument.value, constants);
    json["FillValue"] = value.is_number() ? value : Json(0);
    return json;
  }
  json["MemoryType"] = argument.kind == Argument::Kind::buffer ? "Vector" : "Local";
  json["AccessType"] = argument.access == Access::read    ? "ReadOnly"
                       : argument.access == Access::write ? "WriteOnly"
                                                          : "ReadWrite";
  json["Size"] = evaluated(argument.count, constants);
  const bool constant = argument.fill.kind == Fill::Kind::constant;
  json["FillType"] = constant ? "Constant" : "Random";
  json["FillValue"] = constant ? argument.fill.value : 1.0;
  return json;
}

Json axes(const std::vector<Expression>& expressions, const Constants& constants) {
  constexpr const char* kAxes[] = {"X", "Y", "Z"};
  Json json = Json::object();
  for (std::size_t i = 0; i < 3; ++i)
    json[kAxes[i]] = i < expressions.size() ? without_constants(expressions[i], constants) : "1";
  return json;
}

const KernelSource* device_source(const Kernel& kernel) {
  for (const Language language : {Language::cuda, Language::opencl}) {
    if (const KernelSource* source = kernel.source_for(language)) return source;
  }
  return kernel.sources.empty() ? nullptr : &kernel.sources.front();
}

/// Adds options whose text does not depend on parameters, which T1 cannot express.
void add_options(const Kernel& kernel, const std::string& language, const Constants& constants, Json& options) {
  const auto found = kernel.options.find(language);
  if (found == kernel.options.end()) return;
  for (const Template& option : found->second) {
    const auto names = option.names();
    if (!std::ranges::all_of(names, [&](const auto& name) { return constants.contains(name); })) continue;
    options.push_back(option.render([&](std::string_view name) { return &constants.find(name)->second; }));
  }
}

/// Returns the default of a parameter, else its first value, or a constant.
const Value* default_of(const Problem& problem, std::string_view name) {
  static const Value none(1);
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.name != name) continue;
    if (parameter.default_value) return &*parameter.default_value;
    return parameter.values.empty() ? &none : &parameter.values.front();
  }
  const auto constant = problem.constants.find(std::string(name));
  return constant == problem.constants.end() ? nullptr : &constant->second;
}

Json kernel_json(const Problem& problem) {
  const Kernel& kernel = problem.kernel();
  const KernelSource* source = device_source(kernel);
  const bool cuda = source && source->language == Language::cuda;
  Json options = Json::array();
  add_options(kernel, "", problem.constants, options);
  if (source) add_options(kernel, to_string(source->language), problem.constants, options);
  const bool blocks = kernel.launch.global.empty();
  Json arguments = Json::array();
  const Scope defaults = [&](std::string_view name) { return default_of(problem, name); };
  for (const Argument& argument : kernel.arguments)
    if (argument.passed(defaults)) arguments.push_back(argument_json(argument, problem.constants));
  return {{"Language", cuda ? "CUDA" : "OpenCL"},
          {"CompilerOptions", options},
          {"KernelName", kernel.function.text()},
          {"KernelFile", source ? source->file.filename().string() : ""},
          {"GlobalSizeType", blocks ? "CUDA" : "OpenCL"},
          {"LocalSize", axes(kernel.launch.block, problem.constants)},
          {"GlobalSize", axes(blocks ? kernel.launch.grid : kernel.launch.global, problem.constants)},
          {"Arguments", arguments}};
}

}  // namespace

std::string to_t1_json(const Problem& problem) {
  Json parameters = Json::array(), conditions = Json::array();
  for (const Parameter& parameter : problem.parameters)
    parameters.push_back(parameter_json(parameter, problem.constants));
  for (const Restriction& restriction : problem.restrictions) {
    if (!restriction.function) conditions.push_back(condition_json(restriction, problem));
  }
  const Json json{{"General", {{"BenchmarkName", problem.name}, {"OutputFormat", "JSON"}}},
                  {"ConfigurationSpace", {{"TuningParameters", parameters}, {"Conditions", conditions}}},
                  {"KernelSpecification", kernel_json(problem)}};
  return json_text(json, 2) + "\n";
}

}  // namespace ergotune

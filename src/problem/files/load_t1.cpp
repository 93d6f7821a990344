#include "problem/files/load_t1.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/files.hpp"
#include "problem/checks.hpp"

namespace ergotune {

using json_reading::Json;
using json_reading::kind_of;
using json_reading::Source;

namespace {

constexpr std::array<const char*, 3> kAxes{"X", "Y", "Z"};
constexpr std::array<const char*, 3> kSizes{"problem_size_x", "problem_size_y", "problem_size_z"};

std::string text_at(const Json& json, const char* key, const std::string& where, const Source& source) {
  if (!json.contains(key)) throw UserError(fmt::format("{} needs \"{}\"", where, key), source.whole());
  const Json& value = json.at(key);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  throw UserError(fmt::format("\"{}\" in {} must be a string, not {}", key, where, kind_of(value)),
                  source.place_of(key));
}

Value value_of(const Json& json, const SourcePlace& place) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  throw UserError(fmt::format("a value must be a number, a string, true or false, not {}", kind_of(json)), place);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

/// Values in Python's words: "[1, 2, 4]", "range(1, 9)", "list(range(1, 9))".
void read_values(std::string_view text, const SourcePlace& place, Parameter& parameter) {
  std::string_view inner = trimmed(text);
  if (inner.starts_with("list(") && inner.ends_with(')')) inner = trimmed(inner.substr(5, inner.size() - 6));
  if (inner.starts_with("range")) return read_range(inner, place, parameter);
  const bool list = inner.starts_with('[') && inner.ends_with(']');
  const bool tuple = inner.starts_with('(') && inner.ends_with(')');
  if (inner.size() < 2 || (!list && !tuple)) {
    throw UserError(fmt::format("the values \"{}\" of \"{}\" are no list: write \"[1, 2, 4]\" or \"range(1, 9)\"", text,
                                parameter.name),
                    place);
  }
  const std::string_view items = inner.substr(1, inner.size() - 2);
  if (trimmed(items).empty()) return;
  for (const Piece& piece : split_arguments(items)) {
    const std::size_t offset = static_cast<std::size_t>(piece.text.data() - text.data());
    parameter.values.push_back(Expression::parse(piece.text, shifted(place, offset)).evaluate(Constants{}));
  }
}

Parameter read_parameter(const Json& json, const Source& source) {
  Parameter parameter;
  parameter.name = text_at(json, "Name", "a tuning parameter", source);
  parameter.place = source.place_of(parameter.name);
  if (!json.contains("Values")) {
    throw UserError(fmt::format("parameter \"{}\" needs \"Values\"", parameter.name), parameter.place);
  }
  const Json& values = json.at("Values");
  if (values.is_array()) {
    for (const Json& value : values) parameter.values.push_back(value_of(value, parameter.place));
  } else if (values.is_string()) {
    const auto text = values.get<std::string>();
    read_values(text, source.place_of(text), parameter);
  }
  if (parameter.values.empty() && !parameter.range) {
    throw UserError(fmt::format("parameter \"{}\" has no values", parameter.name), parameter.place);
  }
  if (json.contains("Default") && !json.at("Default").is_null()) {
    const Value value = value_of(json.at("Default"), parameter.place);
    // Some T1 files carry defaults outside the values; the first value stands in for those.
    if (std::find(parameter.values.begin(), parameter.values.end(), value) != parameter.values.end()) {
      parameter.default_value = value;
    }
  }
  return parameter;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Sizes in T1 are Python over the lists of values: ProblemSize[0] is a number of the file and max(p) the
/// largest value of parameter p.
std::string plain_expression(std::string text, const std::vector<Parameter>& parameters) {
  for (std::size_t i = 0; i < kSizes.size(); ++i) replace_all(text, fmt::format("ProblemSize[{}]", i), kSizes[i]);
  for (const Parameter& parameter : parameters) {
    if (parameter.values.empty()) continue;
    const auto [low, high] = std::minmax_element(parameter.values.begin(), parameter.values.end());
    replace_all(text, fmt::format("max({})", parameter.name), high->to_literal());
    replace_all(text, fmt::format("min({})", parameter.name), low->to_literal());
  }
  return text;
}

Language read_language(const std::string& name, const Source& source) {
  if (name == "CUDA") return Language::cuda;
  if (name == "OpenCL") return Language::opencl;
  if (name == "HIP") return Language::hip;
  if (name == "C") return Language::c;
  if (name == "C++") return Language::cpp;
  if (name == "Fortran") return Language::fortran;
  throw UserError(fmt::format("ergotune does not tune language \"{}\"{}", name,
                              suggestion(name, {"CUDA", "OpenCL", "HIP", "C", "C++", "Fortran"})),
                  source.place_of(name));
}

std::vector<Expression> read_size(const Json& specification, const char* key, const std::vector<Parameter>& parameters,
                                  const Source& source) {
  std::vector<Expression> result;
  if (!specification.contains(key)) return result;
  for (const char* axis : kAxes) {
    if (!specification.at(key).contains(axis)) break;
    const std::string text = text_at(specification.at(key), axis, key, source);
    result.push_back(Expression::parse(plain_expression(text, parameters), source.place_of(text)));
  }
  return result;
}

/// The divisors of one axis; T1 writes a list of expressions, and without one the block size is meant.
std::string divisor(const Json& specification, const char* axis, const Source& source) {
  const std::string key = fmt::format("GridDiv{}", axis);
  if (!specification.contains(key) || !specification.at(key).is_array() || specification.at(key).empty()) return "1";
  std::string product;
  for (const Json& factor : specification.at(key)) {
    if (!factor.is_string() && !factor.is_number()) {
      throw UserError(fmt::format("\"{}\" must be a list of expressions", key), source.place_of(key));
    }
    const std::string text = factor.is_string() ? factor.get<std::string>() : factor.dump();
    product += fmt::format("{}({})", product.empty() ? "" : "*", text);
  }
  return product;
}

void read_launch(const Json& specification, const Source& source, Problem& problem) {
  Launch& launch = problem.kernel().launch;
  launch.block = read_size(specification, "LocalSize", problem.parameters, source);
  if (specification.contains("SharedMemory") && specification.at("SharedMemory").is_number()) {
    launch.shared_memory_bytes = Expression::constant(specification.at("SharedMemory").get<std::int64_t>());
  }
  const bool divided = specification.contains("GridDivX") || specification.contains("GridDivY");
  if (specification.contains("ProblemSize") && divided) {
    for (std::size_t i = 0; i < kAxes.size() && problem.constants.contains(kSizes[i]); ++i) {
      const std::string by = divisor(specification, kAxes[i], source);
      launch.grid.push_back(Expression::parse(by == "1" ? std::string(kSizes[i])
                                                        : fmt::format("({} + {} - 1) // ({})", kSizes[i], by, by)));
    }
    return;
  }
  const bool blocks = specification.value("GlobalSizeType", "OpenCL") == "CUDA";
  (blocks ? launch.grid : launch.global) = read_size(specification, "GlobalSize", problem.parameters, source);
}

/// T1's float4 is four floats side by side; here it is a buffer of floats, four times as long.
std::pair<ElementType, int> read_type(const std::string& name, const Source& source) {
  if (name == "bool") return {ElementType::uint8, 1};
  for (const char* base : {"half", "float", "double"}) {
    if (!name.starts_with(base)) continue;
    const std::string width = name.substr(std::string_view(base).size());
    if (width.empty() || width == "2" || width == "4" || width == "8" || width == "16") {
      return {*element_type(base), width.empty() ? 1 : std::stoi(width)};
    }
  }
  if (const auto type = element_type(name)) return {*type, 1};
  throw UserError(fmt::format("ergotune does not know the argument type \"{}\"{}", name,
                              suggestion(name, {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                                "uint64", "half", "float", "double", "bool"})),
                  source.place_of(name));
}

Argument read_argument(const Json& json, std::size_t position, const Problem& problem, const Source& source) {
  Argument argument;
  argument.name = json.contains("Name") ? text_at(json, "Name", "an argument", source) : fmt::format("arg{}", position);
  argument.place = source.place_of(argument.name);
  const std::string what = fmt::format("argument \"{}\"", argument.name);
  const auto [type, width] = read_type(text_at(json, "Type", what, source), source);
  argument.type = type;
  const double fill_value =
      json.contains("FillValue") && json.at("FillValue").is_number() ? json.at("FillValue").get<double>() : 0;
  if (text_at(json, "MemoryType", what, source) == "Scalar") {
    argument.kind = Argument::Kind::scalar;
    argument.value = type < ElementType::float16 ? Expression::constant(static_cast<std::int64_t>(fill_value))
                                                 : Expression::constant(fill_value);
    return argument;
  }
  const std::string size = text_at(json, "Size", what, source);
  const std::string count = plain_expression(size, problem.parameters);
  argument.count = Expression::parse(width == 1 ? count : fmt::format("({})*{}", count, width), source.place_of(size));
  const std::string access = json.contains("AccessType") ? text_at(json, "AccessType", what, source) : "ReadWrite";
  argument.access = access == "ReadOnly" ? Access::read : access == "WriteOnly" ? Access::write : Access::read_write;
  argument.fill.seed = position + 1;
  const std::string fill = json.contains("FillType") ? text_at(json, "FillType", what, source) : "Random";
  if (fill == "Constant") {
    argument.fill.kind = Fill::Kind::constant;
    argument.fill.value = fill_value;
  } else if (fill == "Random") {
    if (type < ElementType::float16) argument.fill.low = 0, argument.fill.high = 127;
  } else {
    throw UserError(fmt::format("ergotune does not know the fill type \"{}\" of {}{}", fill, what,
                                suggestion(fill, {"Constant", "Random"})),
                    source.place_of(fill));
  }
  return argument;
}

void read_sizes(const Json& specification, Problem& problem) {
  if (!specification.contains("ProblemSize") || !specification.at("ProblemSize").is_array()) return;
  const Json& sizes = specification.at("ProblemSize");
  for (std::size_t i = 0; i < std::min(sizes.size(), kSizes.size()); ++i) {
    if (sizes.at(i).is_number_integer()) problem.constants[kSizes[i]] = sizes.at(i).get<std::int64_t>();
  }
}

void read_kernel(const Json& specification, const Source& source, Problem& problem) {
  Kernel& kernel = problem.kernel();
  const std::string where = "KernelSpecification";
  kernel.function = Template::parse(text_at(specification, "KernelName", where, source));
  KernelSource code;
  code.language = read_language(text_at(specification, "Language", where, source), source);
  const std::filesystem::path file = text_at(specification, "KernelFile", where, source);
  code.file = std::filesystem::absolute(folder_of(problem.file) / file).lexically_normal();
  code.include_folders = {code.file.parent_path()};
  if (auto text = read_file(code.file)) code.text = std::move(*text);
  kernel.sources.push_back(std::move(code));
  read_sizes(specification, problem);
  read_launch(specification, source, problem);
  if (specification.contains("CompilerOptions")) {
    for (const Json& option : specification.at("CompilerOptions")) {
      if (option.is_string()) kernel.options[""].push_back(Template::parse(option.get<std::string>()));
    }
  }
  if (!specification.contains("Arguments")) return;
  for (const Json& argument : specification.at("Arguments")) {
    kernel.arguments.push_back(read_argument(argument, kernel.arguments.size(), problem, source));
  }
}

void read_search(const Json& json, Settings& settings) {
  if (json.contains("Search") && json.at("Search").contains("Name")) {
    settings.strategy = json.at("Search").at("Name").get<std::string>();
  }
  if (!json.contains("Budget")) return;
  for (const Json& budget : json.at("Budget")) {
    const double amount = budget.value("BudgetValue", 0.0);
    const std::string type = budget.value("Type", "");
    if (type == "ConfigurationCount") settings.budget = fmt::format("{:.0f}", amount);
    if (type == "TuningDuration") settings.budget = fmt::format("{}s", amount);
  }
}

}  // namespace

Problem read_t1(const Json& json, const Source& source, const std::filesystem::path& file) {
  Problem problem;
  problem.file = file;
  try {
    const Json& space = json.at("ConfigurationSpace");
    if (!space.contains("TuningParameters")) {
      throw UserError("ConfigurationSpace needs \"TuningParameters\"", source.place_of("ConfigurationSpace"));
    }
    for (const Json& parameter : space.at("TuningParameters")) {
      problem.parameters.push_back(read_parameter(parameter, source));
    }
    if (space.contains("Conditions")) {
      for (const Json& condition : space.at("Conditions")) {
        const std::string text = text_at(condition, "Expression", "a condition", source);
        Restriction restriction;
        restriction.expression = Expression::parse(text, source.place_of(text));
        problem.restrictions.push_back(std::move(restriction));
      }
    }
    problem.name = file.filename().string();
    problem.name = problem.name.substr(0, problem.name.find('.'));
    if (json.contains("General") && json.at("General").contains("BenchmarkName")) {
      problem.name = json.at("General").at("BenchmarkName").get<std::string>();
    }
    if (json.contains("KernelSpecification")) read_kernel(json.at("KernelSpecification"), source, problem);
    read_search(json, problem.settings);
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("this is not a T1 file as its schema describes it: {}", error.what()), source.whole());
  }
  if (problem.parameters.empty()) throw UserError("the T1 file has no tuning parameters", source.whole());
  return problem;
}

}  // namespace ergotune

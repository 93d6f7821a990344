// The JSON forms of a problem: the native one with the keys of a TOML file, the plain one {"tune_params",
// "restrictions", "max_threads"}, and T1, the auto-tuning community's.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files.hpp"
#include "base/text.hpp"
#include "problem/checks.hpp"
#include "problem/document/fields.hpp"
#include "problem/document/problem_document.hpp"

namespace ergotune {

using document::Entry;
using document::inside;
using document::Node;
using document::Table;
using document::value_of;

namespace {

constexpr std::array<const char*, 3> kAxes{"X", "Y", "Z"};
constexpr std::array<const char*, 3> kSizes{"problem_size_x", "problem_size_y", "problem_size_z"};

/// Returns the value of a key as a string node with its place; a number is converted.
Node text_at(const Table& table, const char* key) {
  const Node* node = table.find(key);
  if (!node) throw UserError(fmt::format("{} needs \"{}\"", table.title(), key), table.place());
  if (node->is_number()) return {value_of(*node, key).to_string(), node->place};
  document::text_of(*node, table.what(key));
  return *node;
}

Expression expression(const Node& text) { return Expression::parse(text.text(), inside(text)); }

std::vector<Table> tables_at(const Table& table, const char* key, const char* what) {
  std::vector<Table> tables;
  const Node* node = table.find(key);
  if (!node) return tables;
  if (!node->list()) document::wrong_kind(*node, table.what(key), "a list");
  for (const Node& item : *node->list()) tables.push_back(table.table(item, what));
  return tables;
}

/// Reads values written in Python: "[1, 2, 4]", "range(1, 9)", "list(range(1, 9))".
void read_values(std::string_view text, const SourcePlace& place, Parameter& parameter) {
  std::string_view inner = trimmed(text);
  if (inner.starts_with("list(") && inner.ends_with(')')) inner = trimmed(inner.substr(5, inner.size() - 6));
  if (inner.starts_with("range")) return read_range(inner, place, parameter);
  const bool list = inner.starts_with('[') && inner.ends_with(']');
  const bool tuple = inner.starts_with('(') && inner.ends_with(')');
  if (inner.size() < 2 || (!list && !tuple)) {
    throw UserError(fmt::format("the values \"{}\" of \"{}\" are not a list: write \"[1, 2, 4]\" or \"range(1, 9)\"",
                                text, parameter.name),
                    place);
  }
  const std::string_view items = inner.substr(1, inner.size() - 2);
  if (trimmed(items).empty()) return;
  for (const Piece& piece : split_arguments(items)) {
    const std::size_t offset = static_cast<std::size_t>(piece.text.data() - text.data());
    parameter.values.push_back(Expression::parse(piece.text, shifted(place, offset)).evaluate(Constants{}));
  }
}

Parameter read_parameter(const Table& table) {
  const Node name = text_at(table, "Name");
  Parameter parameter;
  parameter.name = name.text();
  parameter.place = inside(name);
  const Node* values = table.find("Values");
  if (!values) throw UserError(fmt::format("parameter \"{}\" needs \"Values\"", parameter.name), parameter.place);
  if (values->is_text())
    read_values(values->text(), inside(*values), parameter);
  else if (values->list())
    parameter.values = document::values_of(*values, fmt::format("\"{}\"", parameter.name));
  if (parameter.values.empty() && !parameter.range)
    throw UserError(fmt::format("parameter \"{}\" has no values", parameter.name), parameter.place);
  const Node* given = table.find("Default");
  if (given && !given->is_absent()) {
    const Value value = value_of(*given, table.what("Default"));
    // Some T1 files give defaults that are not among the values; then the first value is the default.
    if (std::ranges::find(parameter.values, value) != parameter.values.end()) parameter.default_value = value;
  }
  return parameter;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Translates a size expression. T1 uses Python on lists of values: ProblemSize[0] is a number of the file, and max(p)
/// is the largest value of parameter p.
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

Language read_language(const Node& node) {
  static const std::vector<std::string> kNames{"CUDA", "OpenCL", "HIP", "C", "C++", "Fortran"};  // in order of Language
  const auto found = std::ranges::find(kNames, node.text());
  if (found != kNames.end()) return static_cast<Language>(found - kNames.begin());
  throw UserError(fmt::format("ergotune does not tune language \"{}\"{}", node.text(), suggestion(node.text(), kNames)),
                  inside(node));
}

std::vector<Expression> read_size(const Table& specification, const char* key,
                                  const std::vector<Parameter>& parameters) {
  std::vector<Expression> result;
  const auto sizes = specification.optional_table(key);
  if (!sizes) return result;
  for (const char* axis : kAxes) {
    if (!sizes->has(axis)) break;
    const Node text = text_at(*sizes, axis);
    result.push_back(Expression::parse(plain_expression(text.text(), parameters), inside(text)));
  }
  return result;
}

/// Returns the divisor of the grid along an axis, which is the product of T1's list of expressions; "1" if there is
/// none.
std::string divisor(const Table& specification, const char* axis) {
  const std::string key = fmt::format("GridDiv{}", axis);
  const Node* node = specification.find(key);
  if (!node || !node->list() || node->list()->empty()) return "1";
  std::string product;
  for (const Node& factor : *node->list()) {
    if (!factor.is_text() && !factor.is_number())
      throw UserError(fmt::format("\"{}\" must be a list of expressions", key), node->place);
    product += fmt::format("{}({})", product.empty() ? "" : "*", value_of(factor, key).to_string());
  }
  return product;
}

void read_launch(const Table& specification, Problem& problem) {
  Launch& launch = problem.kernel().launch;
  launch.block = read_size(specification, "LocalSize", problem.parameters);
  if (const Node* bytes = specification.find("SharedMemory"); bytes && bytes->is_integer())
    launch.shared_memory_bytes = Expression::constant(value_of(*bytes, "SharedMemory"));
  const bool divided = specification.has("GridDivX") || specification.has("GridDivY");
  if (specification.has("ProblemSize") && divided) {
    for (std::size_t i = 0; i < kAxes.size() && problem.constants.contains(kSizes[i]); ++i) {
      const std::string by = divisor(specification, kAxes[i]);
      launch.grid.push_back(Expression::parse(by == "1" ? std::string(kSizes[i])
                                                        : fmt::format("({} + {} - 1) // ({})", kSizes[i], by, by)));
    }
    return;
  }
  const Node* type = specification.find("GlobalSizeType");
  const bool blocks = type && type->is_text() && type->text() == "CUDA";
  (blocks ? launch.grid : launch.global) = read_size(specification, "GlobalSize", problem.parameters);
}

/// Reads a type. T1's float4 buffer becomes a buffer of floats that is four times as long.
std::pair<ElementType, int> read_type(const Node& node) {
  const std::string& name = node.text();
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
                  inside(node));
}

Argument read_argument(const Table& table, std::size_t position, const Problem& problem) {
  Argument argument;
  argument.place = table.place();
  argument.name = table.has("Name") ? text_at(table, "Name").text() : fmt::format("arg{}", position);
  const auto [type, width] = read_type(text_at(table, "Type"));
  argument.type = type;
  const Node* given = table.find("FillValue");
  const double fill_value = given && given->is_number() ? given->number() : 0;
  if (text_at(table, "MemoryType").text() == "Scalar") {
    argument.kind = Argument::Kind::scalar;
    argument.value = type < ElementType::float16 ? Expression::constant(static_cast<std::int64_t>(fill_value))
                                                 : Expression::constant(fill_value);
    return argument;
  }
  const Node size = text_at(table, "Size");
  const std::string count = plain_expression(size.text(), problem.parameters);
  argument.count = Expression::parse(width == 1 ? count : fmt::format("({})*{}", count, width), inside(size));
  const std::string access = table.has("AccessType") ? text_at(table, "AccessType").text() : "ReadWrite";
  argument.access = access == "ReadOnly" ? Access::read : access == "WriteOnly" ? Access::write : Access::read_write;
  argument.fill.seed = position + 1;
  const Node fill = table.has("FillType") ? text_at(table, "FillType") : Node(std::string("Random"));
  if (fill.text() == "Constant") {
    argument.fill.kind = Fill::Kind::constant;
    argument.fill.value = fill_value;
  } else if (fill.text() == "Random") {
    if (type < ElementType::float16) argument.fill.low = 0, argument.fill.high = 127;
  } else {
    throw UserError(fmt::format("ergotune does not know the fill type \"{}\" of argument \"{}\"{}", fill.text(),
                                argument.name, suggestion(fill.text(), {"Constant", "Random"})),
                    inside(fill));
  }
  return argument;
}

void read_sizes(const Table& specification, Problem& problem) {
  const Node* sizes = specification.find("ProblemSize");
  if (!sizes || !sizes->list()) return;
  for (std::size_t i = 0; i < std::min(sizes->list()->size(), kSizes.size()); ++i) {
    const Node& size = (*sizes->list())[i];
    if (size.is_integer()) problem.constants[kSizes[i]] = value_of(size, "ProblemSize");
  }
}

void read_kernel(const Table& specification, Problem& problem) {
  Kernel& kernel = problem.kernel();
  kernel.function = Template::parse(text_at(specification, "KernelName").text());
  KernelSource code;
  code.language = read_language(text_at(specification, "Language"));
  const std::filesystem::path file = text_at(specification, "KernelFile").text();
  code.file = std::filesystem::absolute(folder_of(problem.file) / file).lexically_normal();
  code.include_folders = {code.file.parent_path()};
  if (auto text = read_file(code.file)) code.text = std::move(*text);
  kernel.sources.push_back(std::move(code));
  read_sizes(specification, problem);
  read_launch(specification, problem);
  if (const Node* options = specification.find("CompilerOptions"); options && options->list())
    for (const Node& option : *options->list())
      if (option.is_text()) kernel.options[""].push_back(Template::parse(option.text()));
  for (const Table& argument : tables_at(specification, "Arguments", "an argument"))
    kernel.arguments.push_back(read_argument(argument, kernel.arguments.size(), problem));
}

void read_search(const Table& root, RunConfig& settings) {
  if (const auto search = root.optional_table("Search"); search && search->has("Name"))
    settings.strategy = text_at(*search, "Name").text();
  for (const Table& budget : tables_at(root, "Budget", "a budget")) {
    const Node* value = budget.find("BudgetValue");
    const double amount = value && value->is_number() ? value->number() : 0;
    const std::string type = budget.has("Type") ? text_at(budget, "Type").text() : "";
    if (type == "ConfigurationCount") settings.budget = fmt::format("{:.0f}", amount);
    if (type == "TuningDuration") settings.budget = fmt::format("{}s", amount);
  }
}

/// Reads a problem from T1 (https://github.com/odgaard/TuningSchema). If the kernel file does not exist, its source has
/// no text: T1 files are distributed with recorded results, for which only the search space matters.
ProblemFile read_t1(const Table& root, const std::filesystem::path& file) {
  ProblemFile problem;
  problem.file = file;
  const Table space = *root.optional_table("ConfigurationSpace");
  if (!space.has("TuningParameters")) throw UserError("ConfigurationSpace needs \"TuningParameters\"", space.place());
  for (const Table& parameter : tables_at(space, "TuningParameters", "a tuning parameter"))
    problem.parameters.push_back(read_parameter(parameter));
  for (const Table& condition : tables_at(space, "Conditions", "a condition"))
    problem.restrictions.emplace_back().expression = expression(text_at(condition, "Expression"));
  problem.name = file.filename().string();
  problem.name = problem.name.substr(0, problem.name.find('.'));
  if (const auto general = root.optional_table("General"); general && general->has("BenchmarkName"))
    problem.name = text_at(*general, "BenchmarkName").text();
  if (const auto specification = root.optional_table("KernelSpecification")) read_kernel(*specification, problem);
  read_search(root, problem.run);
  if (problem.parameters.empty()) throw UserError("the T1 file has no tuning parameters", root.place());
  return problem;
}

std::vector<Parameter> read_value_lists(const Table& table) {
  std::vector<Parameter> parameters;
  for (const auto& [name, values, place] : table.entries()) {
    if (!values.list() || values.list()->empty())
      throw UserError(fmt::format("parameter \"{}\" needs a list of values", name), place);
    Parameter parameter;
    parameter.name = name;
    parameter.place = place;
    parameter.values = document::values_of(values, fmt::format("\"{}\"", name));
    parameters.push_back(std::move(parameter));
  }
  if (parameters.empty()) throw UserError("\"tune_params\" is empty: there is nothing to tune", table.place());
  return parameters;
}

/// Adds the restriction that the plain form implies: the product of the block sizes is limited to "max_threads".
void add_thread_limit(const Table& root, Problem& problem) {
  const Node* node = root.find("max_threads");
  if (!node) return;
  const std::int64_t limit = document::integer_of(*node, "\"max_threads\"");
  std::string product;
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.name != "block_size_x" && parameter.name != "block_size_y" && parameter.name != "block_size_z")
      continue;
    product += (product.empty() ? "" : "*") + parameter.name;
  }
  if (product.empty()) return;
  Restriction restriction;
  restriction.expression = Expression::parse(fmt::format("{} <= {}", product, limit));
  restriction.name = "threads per block";
  restriction.restriction_class = RestrictionClass::device_limit;
  problem.restrictions.push_back(std::move(restriction));
}

Problem read_plain(const Table& root, const std::filesystem::path& file) {
  const std::vector<std::string> keys{"tune_params", "restrictions", "max_threads", "name", "source", "description"};
  for (const Entry& entry : root.entries()) {
    // Files of this form may carry additional keys; a key is rejected only if it resembles a valid one.
    if (std::ranges::find(keys, entry.key) != keys.end() || nearest_name(entry.key, keys).empty()) continue;
    throw UserError(fmt::format("unknown key \"{}\"{}", entry.key, suggestion(entry.key, keys)), entry.place);
  }
  Problem problem;
  problem.file = file;
  const Node* name = root.find("name");
  problem.name = name && name->is_text() ? name->text() : file.stem().string();
  problem.parameters = read_value_lists(*root.optional_table("tune_params"));
  if (const Node* list = root.find("restrictions")) problem.restrictions = document::read_restrictions(root, *list);
  add_thread_limit(root, problem);
  return problem;
}

}  // namespace

ProblemFile load_json_problem(const std::string& text, const std::filesystem::path& file) {
  const Node node = document::parse_json(text, file.string());
  const document::Context context;
  const Table root(node, document::kWholeFile, {file.string(), 0, 0}, context);
  const std::vector<std::string> native{"parameters", "kernel", "kernels", "program", "execution"};
  ProblemFile problem;
  if (root.has("ConfigurationSpace")) {
    problem = read_t1(root, file);
  } else if (root.has("cache")) {
    throw UserError("this is a cache of results, not a problem; load it with \"ergotune import\"", root.place());
  } else if (root.has("tune_params")) {
    problem = read_plain(root, file);
  } else if (std::ranges::any_of(native, [&](const auto& key) { return root.has(key); })) {
    problem = document::read_problem(node, file, false);
  } else {
    const std::vector<std::string> keys{"ConfigurationSpace", "tune_params", "parameters"};
    std::string hint;
    for (const Entry& entry : root.entries())
      if (!nearest_name(entry.key, keys).empty()) hint = suggestion(entry.key, keys);
    throw UserError(
        "this JSON is not a problem: it has neither \"parameters\" nor \"ConfigurationSpace\" (T1) nor "
        "\"tune_params\"" +
            hint,
        root.place());
  }
  check_names(problem);
  return problem;
}

}  // namespace ergotune

// [constants], [constants_for.*], [parameters], [execution], restrictions.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "problem/check.hpp"
#include "problem/checks.hpp"
#include "problem/files/toml_sections.hpp"

namespace ergotune::toml_reading {

namespace {

void check_values(const Parameter& parameter) {
  if (parameter.values.empty() && !parameter.range) {
    throw UserError(fmt::format("parameter \"{}\" has no values", parameter.name), parameter.place);
  }
  for (std::size_t i = 0; i < parameter.values.size(); ++i) {
    const auto end = parameter.values.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(parameter.values.begin(), end, parameter.values[i]) != end) {
      throw UserError(
          fmt::format("parameter \"{}\" has the value {} twice", parameter.name, parameter.values[i].to_literal()),
          parameter.place);
    }
    if (parameter.values[i].is_real() && std::isnan(parameter.values[i].as_real()))
      throw UserError(fmt::format("parameter \"{}\" has a value that is not a number (nan)", parameter.name),
                      parameter.place);
    // Quadratic: only worth it where a person wrote the list.
    if (i > 1000) break;
  }
}

void read_default(const Table& table, Parameter& parameter) {
  const toml::node* node = table.find("default");
  if (!node) return;
  parameter.default_value = table.value_of(*node, fmt::format("the default of \"{}\"", parameter.name));
  if (parameter.range || parameter.values.empty()) return;
  if (std::find(parameter.values.begin(), parameter.values.end(), *parameter.default_value) == parameter.values.end()) {
    std::string list;
    for (const Value& value : parameter.values) {
      if (list.size() > 60) {
        list += ", ...";
        break;
      }
      list += (list.empty() ? "" : ", ") + value.to_literal();
    }
    throw UserError(fmt::format("the default {} of \"{}\" is not one of its values ({})",
                                parameter.default_value->to_literal(), parameter.name, list),
                    table.place_of(*node));
  }
}

Parameter read_parameter(const Table& parent, const Entry& entry) {
  Parameter parameter;
  parameter.name = entry.key;
  parameter.place = entry.place;
  const auto& reserved = execution_names();
  if (std::find(reserved.begin(), reserved.end(), entry.key) != reserved.end()) {
    throw UserError(
        fmt::format("\"{}\" is set on the device, not compiled into the kernel: write it in [execution]", entry.key),
        entry.place);
  }
  check_identifier(entry.key, "parameter", entry.place);
  const toml::node& node = *entry.node;
  if (node.is_array() || node.is_number() || node.is_boolean()) {
    parameter.values = parent.values_of(node, fmt::format("\"{}\"", entry.key));
  } else if (node.is_string()) {
    read_range(parent.text_of(node, entry.key), parent.inside(node), parameter);
  } else if (node.is_table()) {
    const Table table = parent.table(entry);
    table.allow({"values", "range", "default"});
    table.at_most_one_of({"values", "range"});
    if (const toml::node* range = table.find("range")) {
      read_range(table.text_of(*range, fmt::format("the range of \"{}\"", entry.key)), table.inside(*range), parameter);
    } else {
      parameter.values =
          table.values_of(table.require("values", "a list, or \"range\" instead"), fmt::format("\"{}\"", entry.key));
    }
    read_default(table, parameter);
  } else {
    parent.wrong_kind(node, fmt::format("parameter \"{}\"", entry.key),
                      "a list of values or \"range(start, stop, step)\"");
  }
  check_values(parameter);
  return parameter;
}

void read_range_of_clocks(const Table& table, ExecutionParameterSpec& spec) {
  table.allow({"from", "to", "step", "equidistant"});
  table.at_most_one_of({"equidistant", "from"});
  if (const auto count = table.optional_integer("equidistant")) {
    spec.choice = ExecutionParameterSpec::Choice::equidistant;
    spec.count = static_cast<int>(std::clamp<std::int64_t>(*count, -1, 1'000'000));
    return;
  }
  spec.choice = ExecutionParameterSpec::Choice::range;
  table.require("from", "the lowest value, or \"equidistant\" instead");
  table.require("to", "the highest value");
  spec.low = *table.optional_number("from");
  spec.high = *table.optional_number("to");
  spec.step = table.optional_number("step").value_or(0);
  if (spec.low > spec.high) {
    throw UserError(
        fmt::format("{} goes from {} down to {}; the lower value comes first", table.title(), spec.low, spec.high),
        table.place());
  }
  if (spec.step < 0) throw UserError(fmt::format("the step of {} must not be negative", table.title()), table.place());
}

ExecutionParameterSpec read_execution_parameter(const Table& parent, const Entry& entry) {
  using Choice = ExecutionParameterSpec::Choice;
  constexpr const char* kForms =
      "\"all\", \"model\", a count of equidistant values, a list, or { from = .., to = .., step = .. }";
  ExecutionParameterSpec spec;
  spec.place = entry.place;
  const auto& names = execution_names();
  const auto kind = std::find(names.begin(), names.end(), entry.key) - names.begin();
  spec.kind = static_cast<ParameterKind>(static_cast<int>(ParameterKind::core_clock_mhz) + kind);
  const toml::node& node = *entry.node;
  if (node.is_string()) {
    const std::string word = parent.text_of(node, entry.key);
    if (word != "all" && word != "model") {
      throw UserError(fmt::format("\"{}\" is no choice for {}; it is {}", word, entry.key, kForms),
                      parent.place_of(node));
    }
    spec.choice = word == "all" ? Choice::all : Choice::model;
  } else if (node.is_integer()) {
    spec.choice = Choice::equidistant;
    spec.count = static_cast<int>(std::clamp<std::int64_t>(*node.value<std::int64_t>(), -1, 1'000'000));
  } else if (const toml::array* list = node.as_array()) {
    spec.choice = Choice::list;
    for (const toml::node& item : *list) {
      spec.values.emplace_back(parent.value_of(item, fmt::format("a value of {}", entry.key)));
      if (!item.is_number()) parent.wrong_kind(item, fmt::format("a value of {}", entry.key), "a number");
    }
    if (spec.values.empty()) throw UserError(fmt::format("{} has no values", entry.key), entry.place);
  } else if (node.is_table()) {
    read_range_of_clocks(parent.table(entry), spec);
  } else {
    parent.wrong_kind(node, entry.key, kForms);
  }
  if (spec.choice == Choice::equidistant && spec.count < 1) {
    throw UserError(fmt::format("the count of equidistant values of {} must be at least 1", entry.key),
                    parent.place_of(node));
  }
  return spec;
}

RestrictionClass restriction_class(const Table& table) {
  const auto word = table.optional_text("class");
  if (!word || *word == "correctness") return RestrictionClass::correctness;
  if (*word == "device_limit") return RestrictionClass::device_limit;
  if (*word == "performance") return RestrictionClass::performance;
  throw UserError(fmt::format("unknown class \"{}\" of a restriction{}", *word,
                              suggestion(*word, {"correctness", "device_limit", "performance"})),
                  table.place_of(*table.find("class")));
}

}  // namespace

void check_identifier(const std::string& name, const char* what, const SourcePlace& place) {
  const bool letters =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!name.empty() && letters && !std::isdigit(static_cast<unsigned char>(name[0]))) return;
  throw UserError(fmt::format("\"{}\" cannot be the name of a {}: it becomes a macro, so use letters, digits and _, "
                              "and no digit first",
                              name, what),
                  place);
}

const std::vector<std::string>& execution_names() {
  static const std::vector<std::string> names{"core_clock_mhz", "memory_clock_mhz", "power_limit_w"};
  return names;
}

Constants read_constants(const Table& table) {
  Constants constants;
  for (const Entry& entry : table.entries()) {
    check_identifier(entry.key, "constant", entry.place);
    constants[entry.key] = table.value_of(*entry.node, fmt::format("constant \"{}\"", entry.key));
  }
  return constants;
}

std::map<std::string, Constants> read_constants_by_device(const Table& table) {
  std::map<std::string, Constants> result;
  for (const Entry& entry : table.entries()) result[entry.key] = read_constants(table.table(entry));
  return result;
}

std::vector<Parameter> read_parameters(const Table& table) {
  std::vector<Parameter> parameters;
  for (const Entry& entry : table.entries()) parameters.push_back(read_parameter(table, entry));
  return parameters;
}

std::vector<ExecutionParameterSpec> read_execution(const Table& table) {
  table.allow(execution_names());
  std::vector<ExecutionParameterSpec> result;
  for (const Entry& entry : table.entries()) result.push_back(read_execution_parameter(table, entry));
  return result;
}

std::vector<Restriction> read_restrictions(const Table& parent, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (!list) parent.wrong_kind(node, "\"restrictions\"", "a list of expressions, or [[restrictions]] tables");
  std::vector<Restriction> result;
  for (const toml::node& item : *list) {
    Restriction restriction;
    const std::string title = fmt::format("restriction {}", result.size() + 1);
    if (item.is_table()) {
      const Table table = parent.table(item, title);
      table.allow({"expression", "name", "class"});
      restriction.expression = table.expression_of(table.require("expression", "the condition to meet"), title);
      restriction.name = table.optional_text("name").value_or("");
      restriction.restriction_class = restriction_class(table);
    } else {
      if (!item.is_string()) parent.wrong_kind(item, title, "an expression in quotes");
      restriction.expression = parent.expression_of(item, title);
    }
    result.push_back(std::move(restriction));
  }
  return result;
}

}  // namespace ergotune::toml_reading

namespace ergotune {

void check_problem(const Problem& problem) {
  std::set<std::string> known;
  for (const Parameter& parameter : problem.parameters) {
    const std::string macro = parameter.name.substr(parameter.name.find('.') + 1);  // npos + 1 is 0
    toml_reading::check_identifier(macro, "parameter", parameter.place);
    if (!known.insert(parameter.name).second)
      throw UserError(fmt::format("the parameter \"{}\" is declared twice", parameter.name), parameter.place);
    if (!parameter.generator) toml_reading::check_values(parameter);
  }
  for (const Kernel& kernel : problem.kernels) {
    std::set<std::string> buffers;
    for (const Argument& argument : kernel.arguments)
      if (argument.kind == Argument::Kind::buffer && !argument.when && !buffers.insert(argument.name).second)
        throw UserError(fmt::format("the buffer \"{}\" is declared twice", argument.name), argument.place);
  }
  check_names(problem);
}

}  // namespace ergotune

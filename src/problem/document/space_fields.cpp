// [parameters], [execution], restrictions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "problem/checks.hpp"
#include "problem/document/fields.hpp"

namespace ergotune::document {

template <>
const std::vector<std::string>& names_of<ParameterKind>() {
  static const std::vector<std::string> names{"code", "core_clock_mhz", "memory_clock_mhz", "power_limit_w"};
  return names;
}
template <>
const std::vector<std::string>& names_of<RestrictionClass>() {
  static const std::vector<std::string> names{"correctness", "device_limit", "performance"};
  return names;
}

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
    // The check is quadratic, so it covers only lists short enough to be written by hand.
    if (i > 1000) break;
  }
}

void check_default(const Table& table, const Parameter& parameter) {
  if (!parameter.default_value || parameter.range || parameter.values.empty()) return;
  if (std::ranges::find(parameter.values, *parameter.default_value) != parameter.values.end()) return;
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
                  table.find("default")->place);
}

/// Writes range(start, stop, step), with the place of the first bound.
Node write_range(const DependentRange& range, Form form) {
  const auto text = [&](const Expression& bound) { return write(bound, form).text(); };
  SourcePlace place = form != Form::identity ? range.start.place() : SourcePlace{};
  place.column = std::max(0, place.column - 7);  // minus the length of the quote and "range("
  return {fmt::format("range({}, {}, {})", text(range.start), text(range.stop), text(range.step)), std::move(place)};
}

Parameter read_parameter(const Entry& entry, const Table& parent, bool of_kernels) {
  const Context& context = parent.context();
  Parameter parameter;
  parameter.name = entry.key;
  parameter.place = entry.place;
  const Node& node = entry.value;
  const auto& kinds = names_of<ParameterKind>();
  if (!context.trusted && std::find(kinds.begin() + 1, kinds.end(), entry.key) != kinds.end() &&
      !(node.is_table() && node.find("kind"))) {
    throw UserError(
        fmt::format("\"{}\" is set on the device, not compiled into the kernel: write it in [execution]", entry.key),
        entry.place);
  }
  // "KERNEL.NAME" is a parameter of one kernel
  if (!context.trusted)
    check_identifier(of_kernels ? entry.key.substr(entry.key.find('.') + 1) : entry.key, "parameter", entry.place);
  if (node.list() || node.is_number() || node.is_boolean()) {
    parameter.values = values_of(node, fmt::format("\"{}\"", entry.key));
  } else if (node.is_text()) {
    read_range(node.text(), inside(node), parameter);
  } else if (node.is_table()) {
    const Table table = parent.table(entry);
    table.at_most_one_of({"values", "range"});
    read_fields(table, parameter);
    if (!context.trusted && !table.has("range")) table.require("values", "a list, or \"range\" instead");
    if (!context.trusted) check_default(table, parameter);
  } else {
    wrong_kind(node, fmt::format("parameter \"{}\"", entry.key), "a list of values or \"range(start, stop, step)\"");
  }
  if (!context.trusted) check_values(parameter);
  return parameter;
}

/// { from = .., to = .., step = .. } or { equidistant = 7 }.
struct ClockRange {
  double from = 0, to = 0, step = 0;
  std::optional<std::int64_t> equidistant;
};

}  // namespace

template <>
const std::vector<Field<ClockRange>>& fields<ClockRange>();

namespace {

int count_of(const Node& node, const std::string& what) {
  return static_cast<int>(std::clamp<std::int64_t>(integer_of(node, what), -1, 1'000'000));
}

void read_range_of_clocks(const Table& table, ExecutionParameterSpec& spec) {
  table.at_most_one_of({"equidistant", "from"});
  ClockRange range;
  read_fields(table, range);
  if (range.equidistant) {
    spec.choice = ExecutionParameterSpec::Choice::equidistant;
    spec.count = static_cast<int>(*range.equidistant);
    return;
  }
  spec.choice = ExecutionParameterSpec::Choice::range;
  table.require("from", "the lowest value, or \"equidistant\" instead");
  table.require("to", "the highest value");
  spec.low = range.from, spec.high = range.to, spec.step = range.step;
  if (spec.low > spec.high) {
    throw UserError(
        fmt::format("{} goes from {} down to {}; the lower value comes first", table.title(), spec.low, spec.high),
        table.place());
  }
}

ExecutionParameterSpec read_execution_parameter(const Table& parent, const Entry& entry) {
  using Choice = ExecutionParameterSpec::Choice;
  constexpr const char* kForms =
      "\"all\", \"model\", a count of equidistant values, a list, or { from = .., to = .., step = .. }";
  ExecutionParameterSpec spec;
  spec.place = entry.place;
  const auto& names = names_of<ParameterKind>();
  spec.kind = static_cast<ParameterKind>(std::ranges::find(names, entry.key) - names.begin());
  const Node& node = entry.value;
  if (node.is_text()) {
    const std::string& word = node.text();
    if (word != "all" && word != "model")
      throw UserError(fmt::format("\"{}\" is not a choice for {}; it is {}", word, entry.key, kForms), node.place);
    spec.choice = word == "all" ? Choice::all : Choice::model;
  } else if (node.is_integer()) {
    spec.choice = Choice::equidistant;
    spec.count = count_of(node, entry.key);
  } else if (node.list()) {
    spec.choice = Choice::list;
    for (const Node& item : *node.list()) {
      const std::string what = fmt::format("a value of {}", entry.key);
      number_of(item, what);
      spec.values.push_back(value_of(item, what));
    }
    if (spec.values.empty()) throw UserError(fmt::format("{} has no values", entry.key), entry.place);
  } else if (node.is_table()) {
    read_range_of_clocks(parent.table(entry), spec);
  } else {
    wrong_kind(node, entry.key, kForms);
  }
  if (spec.choice == Choice::equidistant && spec.count < 1) {
    throw UserError(fmt::format("the count of equidistant values of {} must be at least 1", entry.key), node.place);
  }
  return spec;
}

bool is_function(const Restriction& restriction) { return restriction.function || !restriction.function_names.empty(); }

Json count_type() { return {{"type", "integer"}, {"minimum", 1}}; }

std::vector<std::string> execution_names() {
  const auto& names = names_of<ParameterKind>();
  return {names.begin() + 1, names.end()};
}

}  // namespace

static void read_range_text(const Table& table, const Node& node, Parameter& to) {
  read_range(text_of(node, table.what("range")), inside(node), to);
}

/// Writes the default. It belongs to the identity even if it is implied (the first value), because references run with
/// the defaults.
static Node write_default(const Parameter& from, Form form) {
  if (from.default_value) return node_of(*from.default_value);
  return form == Form::identity && !from.values.empty() ? node_of(from.values.front()) : Node();
}

template <>
const std::vector<Field<Parameter>>& fields<Parameter>() {
  using T = Parameter;
  constexpr std::string_view kRange =
      "Values as Python's range(start, stop, step), stop excluded; may use constants and earlier parameters";
  static const std::vector<Field<T>> table{
      written_if<T>([](const T& from) { return !from.range; },
                    field<T>("values", &T::values, "Its values, or \"range\" instead")),
      field<T>("range", kRange, string_type(), read_range_text,
               [](const T& from, Form form) { return from.range ? write_range(*from.range, form) : Node(); }),
      field<T>("default", "The value that gains are relative to", value_type,
               field<T>("default", &T::default_value, "").read, write_default, {.otherwise = "the first value"}),
      field<T>("kind", &T::kind, "Whether it is compiled into the code or set on the device", {.by_programs = true}),
      written<T>("generated", "Its values come from a function that is not here", Type<bool>::type,
                 [](const T& from, Form) { return from.generator ? Node(true) : Node(); }, {.by_programs = true}),
      field<T>("generator_identity", &T::generator_identity, "A hash of that function's source",
               {.by_programs = true})};
  return table;
}

template <>
const std::vector<Field<ClockRange>>& fields<ClockRange>() {
  using T = ClockRange;
  static const std::vector<Field<T>> table{
      field<T>("from", &T::from, "The lowest value (MHz or W)", {.otherwise = "required"}),
      field<T>("to", &T::to, "The highest value", {.otherwise = "required"}),
      field<T>("step", &T::step, "Distance between values", {.otherwise = "every supported value"}),
      field<T>(
          "equidistant", "Instead: this many equidistant values of those that the device supports", count_type(),
          [](const Table& at, const Node& node, T& to) { to.equidistant = count_of(node, at.what("equidistant")); },
          {})};
  return table;
}

template <>
const std::vector<Field<Restriction>>& fields<Restriction>() {
  using T = Restriction;
  constexpr std::string_view kFunction =
      "Of a function that is not here, which configurations have met: the parameters that it uses";
  static const std::vector<Field<T>> table{
      written_if<T>([](const T& from) { return !is_function(from); },
                    field<T>("expression", &T::expression, "The condition that every configuration must meet",
                             {.otherwise = "required"})),
      field<T>("name", &T::name, "Its name in messages", {.incidental = true, .otherwise = "the expression"}),
      field<T>("class", &T::restriction_class, "What it is for", {.incidental = true}),
      field<T>("function_names", &T::function_names, kFunction, {.by_programs = true}),
      field<T>("function_identity", &T::function_identity, "A hash of that function's source", {.by_programs = true})};
  return table;
}

std::vector<Parameter> read_parameters(const Table& table, bool of_kernels) {
  std::vector<Parameter> parameters;
  for (const Entry& entry : table.entries()) parameters.push_back(read_parameter(entry, table, of_kernels));
  return parameters;
}
Node write(const std::vector<Parameter>& parameters, Form form) {
  Node node(Node::Entries{});
  for (const Parameter& parameter : parameters)
    node.set(parameter.name, write_fields(parameter, form, form != Form::identity ? parameter.place : SourcePlace{}));
  return node;
}
Json parameters_type(Schema& schema) {
  return map_type(schema.section<Parameter>(
      "parameter", "[parameters]: each parameter is a list of values, \"range(start, stop, step)\", or a table",
      {{{"type", {"number", "boolean", "string"}}}, list_type(value_type(schema))}));
}

std::vector<ExecutionParameterSpec> read_execution(const Table& table) {
  table.allow(execution_names());
  std::vector<ExecutionParameterSpec> result;
  for (const Entry& entry : table.entries()) result.push_back(read_execution_parameter(table, entry));
  return result;
}
Node write(const std::vector<ExecutionParameterSpec>& specs) {
  using Choice = ExecutionParameterSpec::Choice;
  Node node(Node::Entries{});
  for (const ExecutionParameterSpec& spec : specs) {
    Node value(std::string(spec.choice == Choice::model ? "model" : "all"));
    if (spec.choice == Choice::equidistant) value = static_cast<std::int64_t>(spec.count);
    if (spec.choice == Choice::list) value = write(spec.values);
    if (spec.choice == Choice::range)
      value = Node::Entries{{"from", spec.low, {}}, {"to", spec.high, {}}, {"step", spec.step, {}}};
    value.place = spec.place;
    node.set(names_of<ParameterKind>()[static_cast<std::size_t>(spec.kind)], std::move(value));
  }
  return unless_empty(std::move(node));
}
Json execution_type(Schema& schema) {
  const Json one =
      schema.section<ClockRange>("clocks",
                                 "[execution]: core_clock_mhz, memory_clock_mhz and power_limit_w are each \"all\", "
                                 "\"model\", a count of equidistant values, a list, or a table",
                                 {choice_type({"all", "model"}), count_type(), list_type(number_type())});
  Json properties = Json::object();
  for (const std::string& name : execution_names()) properties[name] = one;
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

std::vector<Restriction> read_restrictions(const Table& parent, const Node& node) {
  if (!node.list()) wrong_kind(node, "\"restrictions\"", "a list of expressions, or [[restrictions]] tables");
  std::vector<Restriction> result;
  for (const Node& item : *node.list()) {
    Restriction restriction;
    const std::string title = fmt::format("restriction {}", result.size() + 1);
    if (item.is_table()) {
      const Table table = parent.table(item, title);
      if (table.has("function_names"))
        restriction.expression = Expression::constant(true);
      else
        table.require("expression", "the condition to meet");
      read_fields(table, restriction);
    } else {
      if (!item.is_text()) wrong_kind(item, title, "an expression in quotes");
      restriction.expression = expression_of(item, title);
    }
    result.push_back(std::move(restriction));
  }
  return result;
}
Node write(const std::vector<Restriction>& restrictions, Form form) {
  Node::List list;
  for (const Restriction& restriction : restrictions) {
    const Node node = write_fields(restriction, form);
    const Node* expression = node.find("expression");
    list.push_back(expression && node.entries().size() == 1 ? *expression : node);
  }
  if (form == Form::identity) {  // the order and duplicates of restrictions do not matter
    const auto less = [](const Node& a, const Node& b) { return to_json(a).dump() < to_json(b).dump(); };
    std::ranges::sort(list, less);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return list.empty() ? Node() : Node(std::move(list));
}
Json restrictions_type(Schema& schema) {
  return list_type(
      schema.section<Restriction>("restriction", "restrictions: each is an expression or a table", {string_type()}));
}

}  // namespace ergotune::document

namespace ergotune {

void check_problem(const Problem& problem) {
  std::set<std::string> known;
  for (const Parameter& parameter : problem.parameters) {
    const std::string macro = parameter.name.substr(parameter.name.find('.') + 1);  // npos + 1 is 0
    document::check_identifier(macro, "parameter", parameter.place);
    if (!known.insert(parameter.name).second)
      throw UserError(fmt::format("the parameter \"{}\" is declared twice", parameter.name), parameter.place);
    if (!parameter.generator) document::check_values(parameter);
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

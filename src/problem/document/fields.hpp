// The fields of a problem, declared once. Each table of a problem file is a list of Field, from which follow the reader
// and its error messages, the writer of documents, the JSON Schema and the reference tables of the documentation. To
// add a field, add a row to its table: attribute(), or field() and a member of the problem if much code reads it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/problem_file.hpp"
#include "problem/document/table.hpp"

namespace ergotune::document {

/// What is written: `document` reads back as the same problem; `file` is a self-contained problem file with absolute
/// paths; `identity` contains only what determines results.
enum class Form { document, file, identity };

/// A row of the reference tables.
struct Row {
  std::string_view name;
  std::string_view meaning;
  std::string otherwise;  ///< the default
  bool required = false;
  bool by_programs = false;  ///< written by programs only
  Json type;
};
/// A table of a problem file. If the name is empty, the rows are fields of another section that is documented
/// elsewhere.
struct Section {
  std::string name;
  std::string heading;
  std::vector<Row> rows;
  /// JSON Schemas of the alternatives to a table, such as a plain string.
  std::vector<Json> shorthands;
};

struct Options {
  bool required = false;
  /// Does not determine results: no part of the identity.
  bool incidental = false;
  bool by_programs = false;
  bool always = false;     ///< written even if it equals the default
  bool attribute = false;  ///< set by attribute()
  /// Text of the default, for fields whose initial value does not show it.
  std::string_view otherwise = {};
};

class Schema;

/// The JSON Schema of a field: a constant, or a function that computes it.
struct FieldType : std::function<Json(Schema&)> {
  using std::function<Json(Schema&)>::function;
  FieldType(Json type) : function([type = std::move(type)](Schema&) { return type; }) {}
};

template <class T>
struct Field {
  using Read = std::function<void(const Table&, const Node&, T&)>;
  using Write = std::function<Node(const T&, Form)>;
  std::string_view name;
  std::string_view meaning;
  Options options;
  FieldType type;
  Read read;    ///< empty: the reader of another field reads this one too
  Write write;  ///< returns an absent node if there is nothing to write
};

/// The fields of a type, in the order in which they are read and written.
template <class T>
const std::vector<Field<T>>& fields();

template <>
const std::vector<Field<Parameter>>& fields<Parameter>();
template <>
const std::vector<Field<Restriction>>& fields<Restriction>();
template <>
const std::vector<Field<Metric>>& fields<Metric>();
template <>
const std::vector<Field<ObjectiveSpec>>& fields<ObjectiveSpec>();
template <>
const std::vector<Field<PlanStageSpec>>& fields<PlanStageSpec>();
template <>
const std::vector<Field<RunConfig>>& fields<RunConfig>();
template <>
const std::vector<Field<Problem>>& fields<Problem>();
template <>
const std::vector<Field<ProblemFile>>& fields<ProblemFile>();

template <class T>
Row row_of(const Field<T>& field, Schema& schema) {
  Row row{field.name,
          field.meaning,
          std::string(field.options.otherwise),
          field.options.required,
          field.options.by_programs,
          field.type(schema)};
  if (!row.otherwise.empty() || row.required || !field.write) return row;
  const Node node = field.write(T{}, Form::file);
  const Json json = to_json(node);
  const bool plain =
      json.is_boolean() || json.is_number() || (json.is_string() && !json.get_ref<const std::string&>().empty());
  if (plain) row.otherwise = json.is_string() ? "\"" + json.template get<std::string>() + "\"" : json.dump();
  return row;
}

/// Collects sections while the types of fields are requested.
class Schema {
 public:
  /// Returns a reference to the section of T, and adds the section at first use.
  template <class T>
  Json section(const std::string& name, const std::string& heading, std::vector<Json> shorthands = {}) {
    if (!known_.contains(name)) {
      known_.insert({name, sections_.size()});
      sections_.push_back({name, heading, {}, {}});
      std::vector<Row> rows;
      for (const Field<T>& field : fields<T>()) rows.push_back(row_of(field, *this));
      Section& section = sections_[known_.at(name)];
      section.rows = std::move(rows);
      section.shorthands = std::move(shorthands);
    }
    return reference(name);
  }
  /// Returns a reference to a type that has a name but no section, such as "expression".
  Json named(const std::string& name, Json type) {
    types_[name] = std::move(type);
    return reference(name);
  }
  std::vector<Section>& sections() { return sections_; }
  const std::map<std::string, Json>& types() const { return types_; }

 private:
  static Json reference(const std::string& name) { return {{"$ref", "#/definitions/" + name}}; }
  std::map<std::string, std::size_t> known_;
  std::vector<Section> sections_;
  std::map<std::string, Json> types_;
};

// Types of fields: each provides a reader, a writer and a JSON Schema.
Json string_type();
Json number_type();
Json list_type(Json items);
Json map_type(Json values);
Json choice_type(const std::vector<std::string>& names);
Json any_type(std::vector<Json> types);
Json expression_type(Schema& schema);
Json value_type(Schema& schema);
Json strings_type();
Json fixed_list_type(Json items, int count);

Node write(const Expression& expression, Form form);
Node write(const std::vector<Value>& values);
/// Returns an absent node for an empty string.
Node write_text(const std::string& text);
/// Returns an absent node for an empty path.
Node write_path(const std::filesystem::path& path, Form form);
/// Returns an absent node for an empty table.
Node unless_empty(Node node);
/// Returns a hash of a file's contents; for a very large file, its size and modification time; "" for an unreadable
/// file, which then counts as missing (its user reports the error).
Node contents_of(const std::filesystem::path& file);

/// The names of an enumeration, in the order of its values.
template <class E>
const std::vector<std::string>& names_of();
template <>
const std::vector<std::string>& names_of<ParameterKind>();
template <>
const std::vector<std::string>& names_of<RestrictionClass>();
template <>
const std::vector<std::string>& names_of<Direction>();
/// Returns the index of a name. Throws UserError if `names` does not contain it; `what` names the value in the message,
/// such as "\"access\" in argument 1".
std::size_t choice_of(const Node& node, const std::string& what, const std::vector<std::string>& names);

template <class T>
struct Type;
template <class T>
concept Enumeration = std::is_enum_v<T>;

/// Types whose functions are defined in fields.cpp.
template <class T>
struct PlainType {
  static void read(const Table& at, const Node& node, const std::string& what, T& to);
  static Node write(const T& from, Form form);
  static Json type(Schema& schema);
};
template <>
struct Type<bool> : PlainType<bool> {};
template <>
struct Type<double> : PlainType<double> {};  ///< not negative
template <>
struct Type<std::string> : PlainType<std::string> {};
template <>
struct Type<Value> : PlainType<Value> {};
template <>
struct Type<Expression> : PlainType<Expression> {};
template <>
struct Type<Template> : PlainType<Template> {};
/// A file, whose contents (not its name) belong to the identity.
template <>
struct Type<std::filesystem::path> : PlainType<std::filesystem::path> {};

template <class T>
struct Type<std::optional<T>> {
  static void read(const Table& at, const Node& node, const std::string& what, std::optional<T>& to) {
    Type<T>::read(at, node, what, to.emplace());
  }
  static Node write(const std::optional<T>& from, Form form) { return from ? Type<T>::write(*from, form) : Node(); }
  static Json type(Schema& schema) { return Type<T>::type(schema); }
};
/// Accepts a single value or a list.
template <class T>
struct Type<std::vector<T>> {
  static void read(const Table& at, const Node& node, const std::string& what, std::vector<T>& to) {
    if (!node.list()) return Type<T>::read(at, node, what, to.emplace_back());
    for (const Node& item : *node.list()) Type<T>::read(at, item, "an entry of " + what, to.emplace_back());
  }
  static Node write(const std::vector<T>& from, Form form) {
    Node::List list;
    for (const T& item : from) list.push_back(Type<T>::write(item, form));
    return list.empty() ? Node() : Node(std::move(list));
  }
  static Json type(Schema& schema) { return any_type({Type<T>::type(schema), list_type(Type<T>::type(schema))}); }
};
template <class T, class Less>
struct Type<std::map<std::string, T, Less>> {
  static void read(const Table& at, const Node& node, const std::string& what, std::map<std::string, T, Less>& to) {
    const Table table = at.table(node, what);
    for (const Entry& entry : table.entries()) Type<T>::read(table, entry.value, table.what(entry.key), to[entry.key]);
  }
  static Node write(const std::map<std::string, T, Less>& from, Form form) {
    Node node(Node::Entries{});
    for (const auto& [name, value] : from) node.set(name, Type<T>::write(value, form));
    return unless_empty(std::move(node));
  }
  static Json type(Schema& schema) { return map_type(Type<T>::type(schema)); }
};
template <Enumeration E>
struct Type<E> {
  static void read(const Table&, const Node& node, const std::string& what, E& to) {
    to = static_cast<E>(choice_of(node, what, names_of<E>()));
  }
  static Node write(E from, Form) { return names_of<E>()[static_cast<std::size_t>(from)]; }
  static Json type(Schema&) { return choice_type(names_of<E>()); }
};

/// A field that maps to one member of its type.
template <class T, class M, class Owner>
Field<T> field(std::string_view name, M Owner::*member, std::string_view meaning, Options options = {}) {
  return {name,
          meaning,
          options,
          Type<M>::type,
          [=](const Table& at, const Node& node, T& to) { Type<M>::read(at, node, at.title_of(name), to.*member); },
          [=](const T& from, Form form) { return Type<M>::write(from.*member, form); }};
}
/// A field with its own reader and writer.
template <class T>
Field<T> field(std::string_view name, std::string_view meaning, FieldType type, typename Field<T>::Read read,
               typename Field<T>::Write write, Options options = {}) {
  return {name, meaning, options, std::move(type), std::move(read), std::move(write)};
}
/// A field without a member, whose value (V: std::string, double, bool) is in `attributes` if the file has it.
template <class T, class V>
Field<T> attribute(std::string_view name, std::string_view meaning, Options options = {}) {
  options.attribute = true;
  return {name,
          meaning,
          options,
          Type<V>::type,
          [=](const Table& at, const Node& node, T& to) {
            V value{};
            Type<V>::read(at, node, at.title_of(name), value);
            to.attributes.insert_or_assign(std::string(name), Value(std::move(value)));
          },
          [=](const T& from, Form) {
            const auto found = from.attributes.find(name);
            return found == from.attributes.end() ? Node() : node_of(found->second);
          }};
}
/// A field whose value is a table, which is passed to `read`.
template <class T>
Field<T> table_field(std::string_view name, std::string_view meaning, FieldType type, void (*read)(const Table&, T&),
                     typename Field<T>::Write write, Options options = {}) {
  return {name,
          meaning,
          options,
          std::move(type),
          [=](const Table& at, const Node&, T& to) { read(*at.optional_table(name), to); },
          std::move(write)};
}
/// A field without a reader, since another field's reader reads it.
template <class T>
Field<T> written(std::string_view name, std::string_view meaning, FieldType type, typename Field<T>::Write write = {},
                 Options options = {}) {
  return {name, meaning, options, std::move(type), {}, std::move(write)};
}
/// Restricts a field so that it is written only if `holds` returns true.
template <class T>
Field<T> written_if(bool (*holds)(const T&), Field<T> field) {
  field.write = [=, write = field.write](const T& from, Form form) { return holds(from) ? write(from, form) : Node(); };
  return field;
}

template <class T>
std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const Field<T>& field : fields<T>()) names.emplace_back(field.name);
  return names;
}

/// Reads all fields that are present. Throws UserError for an unknown key and for a missing required field.
template <class T>
void read_fields(const Table& table, T& to) {
  table.allow(field_names<T>());
  for (const Field<T>& field : fields<T>()) {
    if (field.options.required) table.require(field.name, field.meaning);
    const Node* node = table.find(field.name);
    if (node && field.read) field.read(table, *node, to);
  }
}

/// Reads attributes from their values; `title` is that of the table in messages. Throws UserError as read_fields()
/// does.
template <class T>
void read_attributes(const Attributes& values, const std::string& title, T& to) {
  Node node(Node::Entries{});
  for (const auto& [name, value] : values) node.set(name, node_of(value));
  const Context context;
  const Table table(node, title, {}, context);
  std::vector<std::string> names;
  for (const Field<T>& field : fields<T>())
    if (field.options.attribute) names.emplace_back(field.name);
  table.allow(names);
  for (const Field<T>& field : fields<T>())
    if (const Node* given = table.find(field.name)) field.read(table, *given, to);
}

/// Writes all required fields and all fields that differ from their defaults; `whole`: all fields.
template <class T>
Node write_fields(const T& from, Form form, SourcePlace place = {}, bool whole = false) {
  static const T defaults{};
  Node node(Node::Entries{}, std::move(place));
  for (const Field<T>& field : fields<T>()) {
    if (!field.write || (form == Form::identity && field.options.incidental)) continue;
    Node value = field.write(from, form);
    if (whole || field.options.required || field.options.always || !(value == field.write(defaults, form)))
      node.set(std::string(field.name), std::move(value));
  }
  return node;
}

// kernel_fields.cpp
std::vector<Argument> read_arguments(const Table& parent, const Node& node);
std::vector<Argument> read_buffers(const Table& table);
/// Completes the arguments that use [buffers] once all kernels are known: a buffer that some kernel writes is filled
/// with zeros unless the file gives a fill. Throws UserError for a buffer that no kernel uses.
void resolve_buffers(const Table& root, std::vector<Kernel>& kernels);
Json buffers_type(Schema& schema);
Kernel read_kernel(const Table& table);
Node write(const Kernel& kernel, Form form);
Verification read_verification(const Table& table, const std::vector<Kernel>& kernels);
/// Lets outputs that begin with zeros and are compared by their minimum or maximum begin with the greatest or least
/// number of their type, so that elements which a configuration does not write decide neither.
void begin_with_neutral_elements(const Verification& verification, std::vector<Kernel>& kernels);
/// `own_arguments`: the reference kernel has arguments of its own instead of those of the kernel.
Node write(const Verification& verification, Form form, bool own_arguments);
Json verification_type(Schema& schema);

// workload_fields.cpp
/// Reads [kernels.NAME] and [workload]: the kernels, the steps of an iteration, and the parameters that belong to one
/// kernel.
void read_workload(const Table& root, Problem& problem);
/// Reads the list "steps" of a table.
std::vector<Step> read_steps(const Table& table, const std::vector<Kernel>& kernels);
Node write_workload(const Problem& problem, Form form);
Json workload_type(Schema& schema);

// program_fields.cpp
std::shared_ptr<const Program> read_program(const Table& table);
/// `folder`: folder of the problem file, against which the paths of files that determine results are resolved.
Node write(const Program& program, const std::filesystem::path& folder, Form form);
Json program_type(Schema& schema);

// space_fields.cpp
std::vector<Parameter> read_parameters(const Table& table, bool of_kernels = false);
Node write(const std::vector<Parameter>& parameters, Form form);
Json parameters_type(Schema& schema);
std::vector<ExecutionParameterSpec> read_execution(const Table& table);
Node write(const std::vector<ExecutionParameterSpec>& specs);
Json execution_type(Schema& schema);
std::vector<Restriction> read_restrictions(const Table& parent, const Node& node);
Node write(const std::vector<Restriction>& restrictions, Form form);
Json restrictions_type(Schema& schema);

// goal_fields.cpp
/// Fields [metrics], objective, observe and [observers], [tune], [plans], [simulation].
std::vector<Field<Problem>> goal_fields();
/// The field [tune].
Field<ProblemFile> tune_field();
/// If [tune] gives the objective, moves it to the problem.
void move_objective_from_tune(const Table& root, ProblemFile& problem);

}  // namespace ergotune::document

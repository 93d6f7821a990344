// The fields of a problem, declared once: each table of a problem file is a list of Field, from which follow its reader
// with the messages, the writer of documents, the JSON Schema and the reference tables of the documentation. A new
// field is a member of the problem and a row of its table here.
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

/// What is written: a document that reads back as the same problem, a problem file that stands for itself (with
/// absolute paths), or what of it determines results.
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
/// One table of a problem file. An empty name stands for the fields of another section, given in another place.
struct Section {
  std::string name;
  std::string heading;
  std::vector<Row> rows;
  /// What else may stand in its place, as JSON Schema.
  Json shorthands = Json::array();
};

struct Options {
  bool required = false;
  /// Does not determine results: no part of the identity.
  bool incidental = false;
  bool by_programs = false;
  bool always = false;  ///< written where it is the default, too
  /// The default, where the value that the member begins with does not say it.
  std::string_view otherwise = {};
};

class Schema;

/// The JSON Schema of a field: itself, or what gives it.
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
  Read read;    ///< empty where another field's reader does it
  Write write;  ///< gives no value where there is nothing to say
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

/// Collects the sections while the types are requested.
class Schema {
 public:
  /// A reference to the section of T, which is added where it is new.
  template <class T>
  Json section(const std::string& name, const std::string& heading, Json shorthands = Json::array()) {
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
  /// A reference to a type that has a name but no section: "expression".
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

// Types of fields. Each reads and writes itself and knows its JSON Schema.
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
/// No value for an empty text.
Node write_text(const std::string& text);
/// No value for an empty path.
Node write_path(const std::filesystem::path& path, Form form);
/// An empty table becomes no value.
Node unless_empty(Node node);
/// The contents of a file as a hash, of a very large one size and age; "" for one that cannot be read: it is like no
/// file, and what needs it fails.
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
/// Throws UserError for a name that is none of them; `what` as "\"access\" in argument 1".
std::size_t choice_of(const Node& node, const std::string& what, const std::vector<std::string>& names);

template <class T>
struct Type;
template <class T>
concept Enumeration = std::is_enum_v<T>;

/// Types whose functions are in fields.cpp.
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
/// A file that counts by its contents.
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
/// One, or a list.
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

/// A field that is one member of its type.
template <class T, class M, class Owner>
Field<T> field(std::string_view name, M Owner::*member, std::string_view meaning, Options options = {}) {
  return {name,
          meaning,
          options,
          Type<M>::type,
          [=](const Table& at, const Node& node, T& to) { Type<M>::read(at, node, at.title_of(name), to.*member); },
          [=](const T& from, Form form) { return Type<M>::write(from.*member, form); }};
}
/// A field with a form of its own.
template <class T>
Field<T> field(std::string_view name, std::string_view meaning, FieldType type, typename Field<T>::Read read,
               typename Field<T>::Write write, Options options = {}) {
  return {name, meaning, options, std::move(type), std::move(read), std::move(write)};
}
/// A field that is a table; `read` gets it.
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
/// A field that is read together with others.
template <class T>
Field<T> written(std::string_view name, std::string_view meaning, FieldType type, typename Field<T>::Write write = {},
                 Options options = {}) {
  return {name, meaning, options, std::move(type), {}, std::move(write)};
}
/// The field, written where `holds` only.
template <class T>
Field<T> only(bool (*holds)(const T&), Field<T> field) {
  field.write = [=, write = field.write](const T& from, Form form) { return holds(from) ? write(from, form) : Node(); };
  return field;
}

template <class T>
std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const Field<T>& field : fields<T>()) names.emplace_back(field.name);
  return names;
}

/// Reads every field that is there. Throws UserError for an unknown key and a missing one.
template <class T>
void read_fields(const Table& table, T& to) {
  table.allow(field_names<T>());
  for (const Field<T>& field : fields<T>()) {
    if (field.options.required) table.require(field.name, field.meaning);
    const Node* node = table.find(field.name);
    if (node && field.read) field.read(table, *node, to);
  }
}

/// What differs from the defaults, and what is required; `whole`: what does not differ too.
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
/// Once the kernels are known: a buffer that some kernel writes begins with zeros where nothing else is said. Throws
/// for one that no kernel uses.
void settle_buffers(const Table& root, std::vector<Kernel>& kernels);
Json buffers_type(Schema& schema);
Kernel read_kernel(const Table& table);
Node write(const Kernel& kernel, Form form);
Verification read_verification(const Table& table, const std::vector<Kernel>& kernels);
/// `own_arguments`: a reference has its own, not those of the kernel.
Node write(const Verification& verification, Form form, bool own_arguments);
Json verification_type(Schema& schema);

// workload_fields.cpp
/// [kernels.NAME] and [workload]: kernels, the steps of a round, and the parameters that belong to one of them.
void read_workload(const Table& root, Problem& problem);
/// "steps" of a table.
std::vector<Step> read_steps(const Table& table, const std::vector<Kernel>& kernels);
Node write_workload(const Problem& problem, Form form);
Json workload_type(Schema& schema);

// program_fields.cpp
std::shared_ptr<const Program> read_program(const Table& table);
/// `folder`: the problem file's, where files are that determine results.
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
/// [metrics], objective, observe and [observers], [tune], [plans], [simulation].
std::vector<Field<Problem>> goal_fields();
/// [tune].
Field<ProblemFile> tune_field();
/// Where the objective is given in [tune], it is the problem's.
void settle_objective(const Table& root, ProblemFile& problem);

}  // namespace ergotune::document

#include "problem/document/fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"

namespace ergotune::document {

Json string_type() { return {{"type", "string"}}; }
Json number_type() { return {{"type", "number"}}; }
Json list_type(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }
Json map_type(Json values) { return {{"type", "object"}, {"additionalProperties", std::move(values)}}; }
Json choice_type(const std::vector<std::string>& names) { return {{"enum", names}}; }
Json any_type(std::vector<Json> types) { return {{"anyOf", std::move(types)}}; }
Json strings_type() { return any_type({string_type(), list_type(string_type())}); }
Json fixed_list_type(Json items, int count) {
  Json type = list_type(std::move(items));
  type["minItems"] = type["maxItems"] = count;
  return type;
}
Json expression_type(Schema& schema) {
  return schema.named("expression",
                      {{"type", {"number", "boolean", "string"}},
                       {"description", "A number, or an expression in quotes: the page \"Expressions\""}});
}
Json value_type(Schema& schema) {
  const Json real{{"type", "object"},
                  {"properties", {{"real", {{"enum", {"inf", "-inf", "nan"}}}}}},
                  {"required", {"real"}},
                  {"additionalProperties", false}};
  return schema.named("value", any_type({Json{{"type", {"number", "boolean", "string"}}}, real}));
}

Node write(const Expression& expression, Form form) {
  if (form == Form::identity) return expression.to_string();
  SourcePlace place = expression.place();
  if (place.column > 0) --place.column;  // position of the opening quote
  return {expression.text().empty() ? expression.to_string() : expression.text(), std::move(place)};
}
Node write(const std::vector<Value>& values) {
  Node::List list;
  for (const Value& value : values) list.push_back(node_of(value));
  return list;
}
Node write_text(const std::string& text) { return text.empty() ? Node() : Node(text); }
Node write_path(const std::filesystem::path& path, Form form) {
  return write_text(form == Form::file && !path.empty() ? std::filesystem::absolute(path).string() : path.string());
}
Node unless_empty(Node node) { return node.entries().empty() ? Node() : node; }

Node contents_of(const std::filesystem::path& file) {
  constexpr std::uintmax_t kLargest = 256u << 20;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) return std::string();
  if (size <= kLargest) return content_hash_of_file(file).value_or("");
  const auto age = std::filesystem::last_write_time(file, error).time_since_epoch().count();
  return Node::List{static_cast<std::int64_t>(size), static_cast<std::int64_t>(age)};
}

std::size_t choice_of(const Node& node, const std::string& what, const std::vector<std::string>& names) {
  const std::string& name = text_of(node, what);
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw UserError(fmt::format("{} cannot be \"{}\"{}", what, name, suggestion(name, names)), node.place);
  return static_cast<std::size_t>(found - names.begin());
}

template <>
void PlainType<bool>::read(const Table&, const Node& node, const std::string& what, bool& to) {
  to = boolean_of(node, what);
}
template <>
Node PlainType<bool>::write(const bool& from, Form) {
  return from;
}
template <>
Json PlainType<bool>::type(Schema&) {
  return {{"type", "boolean"}};
}

template <>
void PlainType<double>::read(const Table&, const Node& node, const std::string& what, double& to) {
  to = number_of(node, what);
  if (!(to >= 0)) throw UserError(what + " must not be negative", node.place);
}
template <>
Node PlainType<double>::write(const double& from, Form) {
  return from;
}
template <>
Json PlainType<double>::type(Schema&) {
  return {{"type", "number"}, {"minimum", 0}};
}

template <>
void PlainType<std::string>::read(const Table&, const Node& node, const std::string& what, std::string& to) {
  to = text_of(node, what);
}
template <>
Node PlainType<std::string>::write(const std::string& from, Form) {
  return write_text(from);
}
template <>
Json PlainType<std::string>::type(Schema&) {
  return string_type();
}

template <>
void PlainType<Value>::read(const Table&, const Node& node, const std::string& what, Value& to) {
  to = value_of(node, what);
}
template <>
Node PlainType<Value>::write(const Value& from, Form) {
  return node_of(from);
}
template <>
Json PlainType<Value>::type(Schema& schema) {
  return value_type(schema);
}

template <>
void PlainType<Expression>::read(const Table&, const Node& node, const std::string& what, Expression& to) {
  to = expression_of(node, what);
}
template <>
Node PlainType<Expression>::write(const Expression& from, Form form) {
  return document::write(from, form);
}
template <>
Json PlainType<Expression>::type(Schema& schema) {
  return expression_type(schema);
}

template <>
void PlainType<Template>::read(const Table&, const Node& node, const std::string& what, Template& to) {
  to = template_of(node, what);
}
template <>
Node PlainType<Template>::write(const Template& from, Form) {
  return write_text(from.text());
}
template <>
Json PlainType<Template>::type(Schema&) {
  return string_type();
}

template <>
void PlainType<std::filesystem::path>::read(const Table& at, const Node& node, const std::string& what,
                                            std::filesystem::path& to) {
  to = (at.context().folder / text_of(node, what)).lexically_normal();
}
template <>
Node PlainType<std::filesystem::path>::write(const std::filesystem::path& from, Form form) {
  return form == Form::identity ? contents_of(from) : write_path(from, form);
}
template <>
Json PlainType<std::filesystem::path>::type(Schema&) {
  return string_type();
}

}  // namespace ergotune::document

// The format of problem files, as a JSON Schema and as tables for the documentation, generated from the fields.
#include <fmt/format.h>

#include <algorithm>

#include "problem/document/fields.hpp"
#include "problem/document/problem_document.hpp"

namespace ergotune {

using namespace document;

namespace {

Schema whole_schema() {
  Schema schema;
  schema.section<ProblemFile>("problem", "The whole file");
  return schema;
}

Json object_of(const Section& section) {
  Json properties = Json::object(), required = Json::array();
  for (const Row& row : section.rows) {
    // draft 7 ignores siblings of $ref
    Json type = row.type.contains("$ref") ? Json{{"allOf", {row.type}}} : row.type;
    type["description"] = row.otherwise.empty() || row.otherwise == "required"
                              ? std::string(row.meaning)
                              : fmt::format("{} (default: {})", row.meaning, row.otherwise);
    properties[std::string(row.name)] = std::move(type);
    if (row.required) required.push_back(row.name);
  }
  Json object{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) object["required"] = std::move(required);
  return object;
}

/// Returns the name of a type for the tables: "string", "number or [clocks]" ...
std::string type_text(const Json& type) {
  if (type.contains("$ref")) {
    const auto name = type.at("$ref").get<std::string>();
    return name.substr(name.rfind('/') + 1);
  }
  std::string message;
  const auto add = [&](const std::string& word) { message += (message.empty() ? "" : " or ") + word; };
  if (type.contains("anyOf")) {
    for (const Json& one : type.at("anyOf")) add(type_text(one));
  } else if (type.contains("enum")) {
    for (const Json& one : type.at("enum")) add(fmt::format("`{}`", one.dump()));
  } else if (!type.contains("type")) {
    return "any";
  } else if (type.at("type").is_array()) {
    for (const Json& one : type.at("type")) add(one);
  } else if (type.at("type") == "array") {
    return "list of " + type_text(type.at("items"));
  } else if (type.at("type") == "object") {
    const auto values = type.find("additionalProperties");
    return values == type.end() || values->is_boolean() ? "table" : "table of " + type_text(*values);
  } else {
    return type.at("type");
  }
  return message;
}

std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

}  // namespace

std::string problem_schema() {
  Schema schema = whole_schema();
  const auto& sections = schema.sections();
  Json json{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "ergotune problem file"}};
  json.update(object_of(sections.front()));
  json["anyOf"] = Json::array();
  for (const char* key : {"parameters", "kernels", "execution"}) json["anyOf"].push_back({{"required", {key}}});
  Json definitions = Json::object();
  for (const auto& [name, type] : schema.types()) definitions[name] = type;
  for (const Section& section : sections) {
    if (&section == &sections.front()) continue;
    Json types = section.shorthands;
    types.push_back(object_of(section));
    definitions[section.name] = types.size() == 1 ? types.front() : any_type(types);
  }
  json["definitions"] = std::move(definitions);
  return json.dump(2) + "\n";
}

std::string problem_tables() {
  std::string text;
  Schema schema = whole_schema();
  for (const Section& section : schema.sections()) {
    if (section.name == "tune") continue;  // the documentation has a separate table of settings with their options
    text += fmt::format("{}### {}\n\n| key | type | meaning | default |\n| --- | --- | --- | --- |\n",
                        text.empty() ? "" : "\n", section.heading);
    for (const Row& row : section.rows)
      if (!row.by_programs)
        text += fmt::format("| `{}` | {} | {} | {} |\n", row.name, cell(type_text(row.type)), cell(row.meaning),
                            row.required ? "required" : cell(row.otherwise));
  }
  return text;
}

}  // namespace ergotune

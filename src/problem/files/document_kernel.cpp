// Kernels and verification in a problem's document.
#include <fmt/format.h>

#include "problem/compiled_code.hpp"
#include "problem/files/base64.hpp"
#include "problem/files/document.hpp"

namespace ergotune::document {

Json write(const KernelSource& source) {
  // the order is part of the document by which stored sessions are found
  Json json{{"language", to_string(source.language)}, {"file", write(source.file)}};
  if (is_compiled_code(source.text))  // which is no text for JSON
    json["code"] = base64_encode({reinterpret_cast<const std::uint8_t*>(source.text.data()), source.text.size()});
  else
    json["text"] = source.text;
  json["include_folders"] = write_list(source.include_folders);
  return json;
}
static Language read_language(const Json& json) {
  for (int i = 0; i <= static_cast<int>(Language::fortran); ++i) {
    if (to_string(static_cast<Language>(i)) == json.get<std::string>()) return static_cast<Language>(i);
  }
  throw Error(fmt::format("unknown language {} in a stored problem", json.dump()));
}
static ElementType read_type(const Json& json) {
  if (const auto type = element_type(json.get<std::string>())) return *type;
  throw Error(fmt::format("unknown type {} in a stored problem", json.dump()));
}
static KernelSource read_source(const Json& json) {
  std::string text;
  if (json.contains("code")) {
    const auto bytes = base64_decode(json.at("code").get<std::string>());
    text.assign(bytes.begin(), bytes.end());
  } else {
    text = json.at("text");
  }
  return {read_language(json.at("language")), read_path(json.at("file")), std::move(text),
          read_list<std::filesystem::path>(json.at("include_folders"), read_path)};
}

static Json write(const Fill& fill) {
  Json json{{"kind", static_cast<int>(fill.kind)}, {"seed", fill.seed},           {"low", number(fill.low)},
            {"high", number(fill.high)},           {"start", number(fill.start)}, {"step", number(fill.step)},
            {"value", number(fill.value)},         {"file", write(fill.file)}};
  if (fill.data || fill.foreign) json["data"] = base64_encode(contents_of(fill));
  return json;
}
static Fill read_fill(const Json& json) {
  Fill fill;
  fill.kind = read_enumerator(json.at("kind"), Fill::Kind::data);
  fill.seed = json.at("seed");
  fill.low = number(json.at("low"));
  fill.high = number(json.at("high"));
  fill.start = number(json.at("start"));
  fill.step = number(json.at("step"));
  fill.value = number(json.at("value"));
  fill.file = read_path(json.at("file"));
  if (json.contains("data")) {
    fill.data = std::make_shared<std::vector<std::uint8_t>>(base64_decode(json.at("data").get<std::string>()));
  }
  return fill;
}

Json write(const Argument& argument) {
  Json json{{"kind", static_cast<int>(argument.kind)},
            {"name", argument.name},
            {"type", to_string(argument.type)},
            {"value", write(argument.value)},
            {"count", write(argument.count)},
            {"fill", write(argument.fill)},
            {"access", static_cast<int>(argument.access)},
            {"place", write(argument.place)}};
  for (const Field& field : argument.fields)
    json["fields"].push_back({field.name, to_string(field.type), write(field.value)});
  if (!argument.fields.empty()) json["type_name"] = argument.type_name;
  if (argument.when) json["when"] = write(*argument.when);
  if (!argument.seen_as.empty()) json["seen_as"] = argument.seen_as;
  return json;
}
static Argument read_argument(const Json& json) {
  Argument argument;
  argument.kind = read_enumerator(json.at("kind"), Argument::Kind::local_memory);
  argument.name = json.at("name");
  argument.type = read_type(json.at("type"));
  argument.value = read_expression(json.at("value"));
  argument.count = read_expression(json.at("count"));
  argument.fill = read_fill(json.at("fill"));
  argument.access = read_enumerator(json.at("access"), Access::read_write);
  if (json.contains("when")) argument.when = read_expression(json.at("when"));
  argument.seen_as = json.value("seen_as", "");
  argument.place = read_place(json.at("place"));
  if (!json.contains("fields")) return argument;
  for (const Json& field : json.at("fields"))
    argument.fields.push_back({field.at(0), read_type(field.at(1)), read_expression(field.at(2))});
  argument.type_name = json.at("type_name");
  return argument;
}

Json write(const Kernel& kernel) {
  Json options = Json::object();
  for (const auto& [language, list] : kernel.options) options[language] = write_list(list);
  Json json{{"function", write(kernel.function)},
            {"sources", write_list(kernel.sources)},
            {"arguments", write_list(kernel.arguments)},
            {"grid", write_list(kernel.launch.grid)},
            {"global", write_list(kernel.launch.global)},
            {"block", write_list(kernel.launch.block)},
            {"shared_memory_bytes", write(kernel.launch.shared_memory_bytes)},
            {"options", options}};
  if (!kernel.name.empty()) json["name"] = kernel.name;
  if (kernel.verification) json["verification"] = write(*kernel.verification);
  return json;
}
Kernel read_kernel(const Json& json) {
  Kernel kernel;
  kernel.name = json.value("name", "");
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
  if (json.contains("verification"))
    kernel.verification = std::make_shared<Verification>(read_verification(json.at("verification")));
  return kernel;
}

Json write(const Verification& verification) {
  Json files = Json::object();
  for (const auto& [name, file] : verification.files) files[name] = write(file);
  Json json{{"kind", static_cast<int>(verification.kind)},
            {"files", files},
            {"absolute_tolerance", number(verification.absolute_tolerance)},
            {"relative_tolerance", number(verification.relative_tolerance)}};
  if (verification.reference) json["reference"] = write(*verification.reference);
  if (!verification.outputs.empty()) json["outputs"] = verification.outputs;
  if (verification.per_configuration) json["per_configuration"] = true;
  for (const auto& [name, compare] : verification.compare) json["compare"][name] = static_cast<int>(compare);
  return json;
}
Verification read_verification(const Json& json) {
  Verification verification;
  verification.kind = read_enumerator(json.at("kind"), Verification::Kind::files);
  for (const auto& [name, file] : json.at("files").items()) verification.files[name] = read_path(file);
  verification.absolute_tolerance = number(json.at("absolute_tolerance"));
  verification.relative_tolerance = number(json.at("relative_tolerance"));
  if (json.contains("outputs")) verification.outputs = json.at("outputs").get<std::vector<std::string>>();
  if (json.contains("reference")) {
    verification.reference = std::make_shared<Kernel>(read_kernel(json.at("reference")));
  }
  verification.per_configuration = json.contains("per_configuration");
  if (json.contains("compare"))
    for (const auto& [name, compare] : json.at("compare").items())
      verification.compare[name] = read_enumerator(compare, Compare::sorted);
  return verification;
}

}  // namespace ergotune::document

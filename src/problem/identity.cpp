#include "problem/identity.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "problem/code_names.hpp"
#include "problem/compiled_code.hpp"
#include "problem/files/document.hpp"
#include "problem/files/includes.hpp"
#include "problem/files/source_text.hpp"
#include "problem/program.hpp"

namespace ergotune {
namespace {

using document::Json;
using document::number;
using document::write;

/// Counts up when the same problem gets another document.
constexpr int kIdentityVersion = 1;

/// However it was written and wherever it stood.
Json plain(const Expression& expression) { return expression.to_string(); }
Json plain(const std::vector<Expression>& expressions) {
  Json list = Json::array();
  for (const Expression& expression : expressions) list.push_back(plain(expression));
  return list;
}
Json plain(const std::map<std::string, Expression>& expressions) {
  Json table = Json::object();
  for (const auto& [name, expression] : expressions) table[name] = plain(expression);
  return table;
}

/// null for a file that cannot be read: it is like no file, and what needs it fails.
Json contents_of(const std::filesystem::path& file) {
  const auto hash = content_hash_of_file(file);
  return hash ? Json(*hash) : Json();
}

Json describe(const KernelSource& source) {
  if (is_compiled_code(source.text))
    return Json{{"language", to_string(source.language)}, {"text", content_hash(source.text)}};
  const auto text_of = [&](const std::string& text) {
    return content_hash(source.language == Language::fortran ? text : without_comments(text));
  };
  std::vector<std::string> folders;
  for (const auto& folder : include_folders_of(source)) folders.push_back(folder.string());
  Json included = Json::array();
  for (const auto& [name, text, path] : included_files(source.text, folders)) included.push_back({name, text_of(text)});
  return Json{{"language", to_string(source.language)}, {"text", text_of(source.text)}, {"included", included}};
}

Json describe(const Fill& fill) {
  switch (fill.kind) {
    case Fill::Kind::random:
      return Json{{"random", {fill.seed, number(fill.low), number(fill.high)}}};
    case Fill::Kind::range:
      return Json{{"range", {number(fill.start), number(fill.step)}}};
    case Fill::Kind::constant:
      return Json{{"constant", number(fill.value)}};
    case Fill::Kind::file:
      return Json{{"contents", contents_of(fill.file)}};
    case Fill::Kind::data:
      break;
  }
  if (fill.foreign) return Json{{"contents", content_hash_of(fill.foreign->bytes, fill.foreign->read)}};
  std::string_view bytes;
  if (fill.data) bytes = {reinterpret_cast<const char*>(fill.data->data()), fill.data->size()};
  return Json{{"contents", content_hash(bytes)}};
}

Json describe(const Argument& argument) {
  Json json{{"name", argument.name}, {"type", to_string(argument.type)}};
  if (argument.when) json["when"] = plain(*argument.when);
  if (argument.kind == Argument::Kind::scalar) {
    json["value"] = plain(argument.value);
    for (const Field& field : argument.fields) json["fields"].push_back({to_string(field.type), plain(field.value)});
    if (!argument.fields.empty()) json["type"] = argument.type_name;
    return json;
  }
  json["count"] = plain(argument.count);
  if (argument.kind == Argument::Kind::local_memory) return json;
  json["access"] = static_cast<int>(argument.access);
  json["fill"] = describe(argument.fill);
  return json;
}

Json describe(const Verification& verification);

Json describe(const Kernel& kernel) {
  Json sources = Json::object();  // sorted: a device takes the one it compiles
  for (const auto& language :
       {Language::c, Language::cpp, Language::cuda, Language::fortran, Language::hip, Language::opencl})
    if (const KernelSource* source = kernel.source_for(language)) sources[to_string(language)] = describe(*source);
  Json arguments = Json::array(), options = Json::object();
  for (const Argument& argument : kernel.arguments) arguments.push_back(describe(argument));
  for (const auto& [language, list] : kernel.options)
    if (!list.empty()) options[language] = document::write_list(list);
  Json json{{"function", write(kernel.function)},
            {"sources", sources},
            {"arguments", arguments},
            {"grid", plain(kernel.launch.grid)},
            {"global", plain(kernel.launch.global)},
            {"block", plain(kernel.launch.block)},
            {"shared_memory_bytes", plain(kernel.launch.shared_memory_bytes)},
            {"options", options}};
  if (!kernel.name.empty()) json["name"] = kernel.name;
  if (kernel.verification) json["verification"] = describe(*kernel.verification);
  return json;
}

Json describe(const Step& step) {
  using Kind = Step::Kind;
  Json json{{"kind", static_cast<int>(step.kind)}, {"priority", write(step.priority)}};
  if (step.multiprocessors.to_string() != "0") json["multiprocessors"] = plain(step.multiprocessors);
  Json steps = Json::array();
  for (const Step& inner : step.steps) steps.push_back(describe(inner));
  switch (step.kind) {
    case Kind::launch:
      json["launch"] = {step.kernel, plain(step.launches)};
      break;
    case Kind::loop:
      json["loop"] = {step.variable, plain(step.from), plain(step.to), plain(step.by), steps};
      break;
    case Kind::swap:
      json["swap"] = {step.first, step.second};
      break;
    case Kind::concurrent:
      json["concurrent"] = steps;
      if (step.order.text().empty()) break;
      json["order"] = write(step.order);
      for (const Step& branch : step.steps) json["branches"].push_back(branch.name);
      break;
    case Kind::group:
      json["group"] = steps;
      break;
  }
  return json;
}

Json describe(const Verification& verification) {
  Json json{{"kind", static_cast<int>(verification.kind)}};
  if (verification.kind == Verification::Kind::none) return json;
  json["tolerances"] = {number(verification.absolute_tolerance), number(verification.relative_tolerance)};
  if (verification.reference) json["reference"] = describe(*verification.reference);
  if (verification.per_configuration) json["per_configuration"] = true;
  for (const auto& [name, compare] : verification.compare) json["compare"][name] = to_string(compare);
  for (const auto& [name, file] : verification.files) json["files"][name] = contents_of(file);
  if (!verification.outputs.empty()) json["outputs"] = verification.outputs;
  return json;
}

Json describe(const Parameter& parameter) {
  Json json{{"name", parameter.name},
            {"kind", static_cast<int>(parameter.kind)},
            {"values", document::write_list(parameter.values)}};
  if (parameter.range)
    json["range"] = {plain(parameter.range->start), plain(parameter.range->stop), plain(parameter.range->step)};
  if (parameter.generator) json["generated"] = true;
  // A reference runs with the defaults, which are the first values where nothing else is said.
  if (parameter.default_value)
    json["default"] = write(*parameter.default_value);
  else if (!parameter.values.empty())
    json["default"] = write(parameter.values.front());
  return json;
}

Json describe(const ExecutionParameterSpec& spec) {
  using Choice = ExecutionParameterSpec::Choice;
  Json json{{"kind", static_cast<int>(spec.kind)}, {"choice", static_cast<int>(spec.choice)}};
  if (spec.choice == Choice::equidistant) json["count"] = spec.count;
  if (spec.choice == Choice::list) json["values"] = document::write_list(spec.values);
  if (spec.choice == Choice::range) json["range"] = {number(spec.low), number(spec.high), number(spec.step)};
  return json;
}

/// Conditions, in any order, each once.
Json describe(const std::vector<Restriction>& restrictions) {
  std::vector<Json> list;
  for (const Restriction& restriction : restrictions)
    list.push_back(restriction.function ? Json(restriction.function_names) : plain(restriction.expression));
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

template <class T>
Json describe_list(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(describe(item));
  return list;
}

}  // namespace

std::string identity_of(const Problem& problem) {
  Json by_device = Json::object();
  for (const auto& [device, constants] : problem.constants_by_device) by_device[device] = write(constants);
  Json json{{"identity", kIdentityVersion},
            {"kernels", describe_list(problem.kernels)},
            {"constants", write(problem.constants)},
            {"constants_by_device", by_device},
            {"parameters", describe_list(problem.parameters)},
            {"execution_parameters", describe_list(problem.execution_parameters)},
            {"restrictions", describe(problem.restrictions)},
            {"verification", describe(problem.verification)},
            {"simulation", plain(problem.simulation)}};
  if (!problem.steps.empty()) json["steps"] = describe_list(problem.steps);
  // Counts of instructions are those of another level of code where they are asked for.
  if (names_instructions(problem)) json["instructions"] = "machine code";
  if (problem.program) json["program"] = document::describe(*problem.program, home_of(problem.file));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ergotune

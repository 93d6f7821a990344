#include "kernel/unused_parameters.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "ergotune/problem_file.hpp"

namespace ergotune {
namespace {

bool occurs_in(const std::string& text, const std::string& name) {
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !in_name(text[at - 1])) && (end == text.size() || !in_name(text[end]))) return true;
  }
  return false;
}

/// Collects all strings of a document except below keys that mention parameters without depending on them.
void add_strings(const nlohmann::json& document, std::string& text) {
  if (document.is_string()) text += document.get_ref<const std::string&>() + "\n";
  if (document.is_array())
    for (const auto& item : document) add_strings(item, text);
  if (!document.is_object()) return;
  for (const auto& [key, item] : document.items()) {
    if (key == "restrictions" || key == "metrics" || key == "objective" || key == "plans" || key == "simulation")
      continue;
    if (key != "parameters") text += key + "\n";  // the range of a parameter may use other parameters
    add_strings(item, text);
  }
}

}  // namespace

std::vector<std::string> unused_parameters(const Problem& problem) {
  if (problem.program) return {};
  for (const Kernel& kernel : problem.kernels) {
    if (kernel.sources.empty()) return {};  // a search space without code
    for (const KernelSource& source : kernel.sources)
      if (source.text.find("#include \"") != std::string::npos) return {};
  }
  ProblemFile all = problem;
  for (Parameter& parameter : all.parameters) parameter.name = "?";
  std::string text;
  add_strings(nlohmann::json::parse(serialise(all)), text);
  std::vector<std::string> unused;
  for (const Parameter& parameter : problem.parameters) {
    const std::string name = parameter.name.substr(parameter.name.rfind('.') + 1);  // "kernel.BLOCK" -> "BLOCK"
    if (parameter.kind == ParameterKind::code && parameter.values.size() > 1 && !occurs_in(text, name))
      unused.push_back(parameter.name);
  }
  return unused;
}

}  // namespace ergotune

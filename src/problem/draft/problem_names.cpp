#include "problem/draft/problem_names.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "problem/draft/source_text.hpp"

namespace ergotune::draft {

std::string ProblemNames::macro_name(const std::string& name, const char* suffix) const {
  std::string result = upper(name);
  if (result.size() < 2 || used.contains(result)) result += suffix;
  while (used.contains(result)) result += '_';
  return result;
}

std::string ProblemNames::add_size(const std::string& name) {
  return sizes.emplace_back(name, macro_name(name, "_SIZE")).second;
}

void ProblemNames::add_parameter(const std::string& name, const std::string& values) {
  parameters.emplace_back(name, values);
  tunable.insert(name);
}

bool ProblemNames::has_parameter(const std::string& name) const {
  return std::ranges::find(parameters, name, &Pairs::value_type::first) != parameters.end();
}

std::vector<long> ProblemNames::values_of(const std::string& parameter) const {
  const auto found = std::ranges::find(parameters, parameter, &Pairs::value_type::first);
  if (found == parameters.end()) return {};
  std::vector<long> values;
  const std::size_t open = found->second.find('[');
  for (const std::string& part : split(found->second.substr(open + 1, found->second.find(']') - open - 1), ','))
    if (const auto value = whole_number(std::string(trimmed(part)))) values.push_back(*value);
  return values;
}

std::string ProblemNames::size(std::size_t dimension) const {
  return sizes[std::min(dimension, sizes.size() - 1)].second;
}

std::string ProblemNames::size_named(const std::string& name) const {
  for (const auto& [source, constant] : sizes)
    if (source == name) return constant;
  return fixed.contains(name) ? in_expressions(name) : std::string();
}

std::string ProblemNames::size_in(const std::string& text) const {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = kernel_source::end_of_identifier(text, at);
    const std::string word = text.substr(at, end - at);
    for (const auto& [source, constant] : sizes)
      if (source == word) return constant;
    at = std::max(end, at + 1);
  }
  return {};
}

std::string ProblemNames::bound(const KernelUse& use, const std::string& variable, int depth) const {
  for (const std::string& text : use.bounds_of(variable)) {
    if (const std::string found = size_in(text); !found.empty()) return found;
    const std::string plain(trimmed(text));
    if (fixed.contains(plain)) return in_expressions(plain);
    // t < tiles, where tiles = n / TILE
    if (const std::string value = use.value_of(plain); !value.empty() && value != text)
      if (const std::string found = size_in(value); !found.empty()) return found;
  }
  if (depth > 2) return {};
  for (const std::string& other : use.set_from(variable))
    if (const std::string found = bound(use, other, depth + 1); !found.empty()) return found;
  return {};
}

const std::string* ProblemNames::source_of(const std::string& constant) const {
  const auto size = std::ranges::find(sizes, constant, &Pairs::value_type::second);
  return size == sizes.end() ? nullptr : &size->first;
}

bool ProblemNames::is_plane(const std::string& body) const {
  return sizes.size() > 1 || body.find(" * " + sizes.front().first) != std::string::npos;
}

std::string ProblemNames::in_expressions(const std::string& name) const {
  if (const auto found = fixed.find(name); found != fixed.end()) return std::to_string(found->second);
  const auto parameter = template_parameters.find(name);
  return parameter == template_parameters.end() ? name : parameter->second;
}

}  // namespace ergotune::draft

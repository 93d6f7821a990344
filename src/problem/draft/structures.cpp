#include "problem/draft/structures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/text.hpp"
#include "problem/draft/source_text.hpp"

namespace ergotune::draft {
namespace {

using kernel_source::Parameter;

/// Returns the members of a structure that a source defines; none if one is no scalar.
std::vector<Parameter> members_of(const std::string& source, const TypeNames& types, std::string type) {
  if (type.starts_with("struct ")) type.erase(0, 7);
  const std::string text = one_blank(kernel_source::blank_comments(source));
  std::vector<Parameter> members;
  for (const std::size_t behind : ends_of(text, "struct", text.size())) {
    const std::size_t begin = next_character(text, behind), end = kernel_source::end_of_identifier(text, begin),
                      open = next_character(text, end), close = text.find('}', open);
    if (text.compare(open, 1, "{") != 0 || close == std::string::npos) continue;
    const std::size_t alias = next_character(text, close + 1);
    if (text.substr(begin, end - begin) != type &&
        text.substr(alias, kernel_source::end_of_identifier(text, alias) - alias) != type)
      continue;
    for (const std::string& declaration : parts_of(text.substr(open + 1, close - open - 1), ";")) {
      if (declaration.empty()) continue;
      std::vector<std::string> names = parts_of(declaration, ",");
      const std::size_t blank = names.front().find_last_of(' ');
      if (blank == std::string::npos) return {};
      const std::string own = resolved(types, names.front().substr(0, blank));
      names.front().erase(0, blank + 1);
      const auto element = element_of(own);
      for (const std::string& name : names) {
        if (!element || element->width != 1 || name.empty() || !std::ranges::all_of(name, kernel_source::in_identifier))
          return {};
        members.push_back({own, name});
      }
    }
    return members;
  }
  return {};
}

/// Returns what the host program gives the members of a structure that it passes: of `Grid g{0.5f, width, height}`,
/// `{.width = 3}`, `g.width = 3`. Members of which it is not found are "g.width".
std::vector<std::string> values_of(const DraftSource& source, std::string argument,
                                   const std::vector<Parameter>& members) {
  if (argument.starts_with('&')) argument.erase(0, 1);
  const std::string text = kernel_source::blank_comments(source.all);
  std::vector<std::string> list;
  if (const std::size_t open = argument.find('{'); open != std::string::npos) list = list_at(argument, open, '}');
  for (const std::size_t behind : ends_of(text, argument, source.launch.at)) {
    std::size_t next = next_character(text, behind);
    if (text.compare(next, 1, "=") == 0) next = next_character(text, next + 1);
    if (text.compare(next, 1, "{") == 0) list = list_at(text, next, '}');
  }
  std::vector<std::string> values;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string member = argument + "." + members[i].name;
    std::string value = member;
    if (i < list.size() && !list[i].empty() && !list[i].starts_with('.')) value = list[i];
    for (const std::string& one : list)
      if (const std::size_t equals = one.find('=');
          equals != std::string::npos && trimmed(one.substr(0, equals)) == "." + members[i].name)
        value = trimmed(one.substr(equals + 1));
    for (const std::size_t behind : ends_of(text, member, source.launch.at))
      if (const std::string given = initialiser_at(text, behind); !given.empty()) value = given;
    values.push_back(value);
  }
  return values;
}

}  // namespace

void split_structures(DraftSource& source) {
  const TypeNames types = types_of(source.outline);
  for (std::size_t i = 0; i < source.parameters.size(); ++i) {
    const Parameter whole = source.parameters[i];
    if (whole.pointer || !std::ranges::all_of(whole.name, kernel_source::in_identifier) ||
        element_of(resolved(types, whole.type)))
      continue;
    std::vector<Parameter> members = members_of(source.all, types, whole.type);
    if (members.empty()) continue;
    std::vector<std::string>& arguments = source.launch.arguments;
    if (i < arguments.size()) {
      const std::vector<std::string> values = values_of(source, arguments[i], members);
      const auto place = arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
      arguments.insert(place, values.begin(), values.end());
    }
    source.structures.push_back({whole.name, whole.type, i, {}});
    for (Parameter& member : members) {
      source.structures.back().members.push_back(member.name);
      const std::string name = whole.name + "_" + member.name;
      source.kernel.body = std::regex_replace(
          source.kernel.body, std::regex(fmt::format(R"(\b{}\s?\.\s?{}\b)", whole.name, member.name)), name);
      member.name = name;
    }
    const auto place = source.parameters.erase(source.parameters.begin() + static_cast<std::ptrdiff_t>(i));
    source.parameters.insert(place, members.begin(), members.end());
    i += members.size() - 1;
  }
  if (!source.structures.empty()) source.use = KernelUse(source.kernel.body);
}

}  // namespace ergotune::draft

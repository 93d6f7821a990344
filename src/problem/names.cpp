#include "problem/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ergotune/error.hpp"
#include "ergotune/space.hpp"
#include "problem/checks.hpp"

namespace ergotune {

bool Names::knows(std::string_view name) const {
  return name.starts_with("device.") || std::find(names_.begin(), names_.end(), name) != names_.end();
}

SourcePlace place_in(const Expression& expression, std::string_view name) {
  const std::string& text = expression.text();
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !word(text[at - 1]);
    const bool ends = at + name.size() == text.size() || !word(text[at + name.size()]);
    if (begins && ends) return shifted(expression.place(), at);
  }
  return expression.place();
}

void check(const Expression& expression, const Names& names, const std::string& what) {
  for (const std::string& name : expression.names()) {
    if (names.knows(name)) continue;
    throw UserError(fmt::format("unknown name \"{}\" in {}{}", name, what, suggestion(name, names.list())),
                    place_in(expression, name));
  }
}

void check(const Template& text, const Names& names, const std::string& what) {
  for (const Expression& expression : text.expressions()) check(expression, names, what);
}

}  // namespace ergotune

#include "store/cache/json_scan.hpp"

namespace ergotune {

std::size_t after_string(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return kNotFound;
}

std::size_t after_nested(std::string_view text, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        i = after_string(text, i);
        if (i == kNotFound) return kNotFound;
        --i;
        break;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) return i + 1;
        break;
      default:
        break;
    }
  }
  return kNotFound;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) ++at;
  return at;
}

std::size_t top_level_value(std::string_view text, std::string_view key) {
  std::size_t at = skip_space(text, 0);
  if (at >= text.size() || text[at] != '{') return kNotFound;
  ++at;
  while (true) {
    at = skip_space(text, at);
    if (at >= text.size() || text[at] != '"') return kNotFound;
    const std::size_t end = after_string(text, at);
    if (end == kNotFound) return kNotFound;
    const std::string_view name = text.substr(at + 1, end - at - 2);
    at = skip_space(text, end);
    if (at >= text.size() || text[at] != ':') return kNotFound;
    at = skip_space(text, at + 1);
    if (at >= text.size()) return kNotFound;
    if (name == key) return at;
    if (text[at] == '{' || text[at] == '[') {
      at = after_nested(text, at);
    } else if (text[at] == '"') {
      at = after_string(text, at);
    } else {
      at = text.find_first_of(",}", at);
    }
    if (at == kNotFound) return kNotFound;
    at = skip_space(text, at);
    if (at >= text.size() || text[at] != ',') return kNotFound;
    ++at;
  }
}

}  // namespace ergotune

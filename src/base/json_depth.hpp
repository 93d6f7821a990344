// JSON from elsewhere, with a bound on how deeply it is nested: copies and printouts of a document call themselves for
// each level, so that a megabyte of brackets would overflow the stack (and fill memory with empty lists).
#pragma once

#include <cstddef>
#include <string_view>

namespace ergotune {

inline constexpr int kMaximumJsonDepth = 200;

/// Where brackets outside of strings first stand more than kMaximumJsonDepth within each other; npos: nowhere.
inline std::size_t too_deep_in_json(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaximumJsonDepth) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

/// Json::parse(), which throws a parse_error for what is nested too deeply as well, or gives a discarded value.
template <class Json>
Json parse_json(std::string_view text, bool throws = true) {
  const std::size_t deep = too_deep_in_json(text);
  if (deep == std::string_view::npos) return Json::parse(text, nullptr, throws);
  if (throws) throw Json::parse_error::create(101, deep + 1, "nested too deeply", nullptr);
  return Json(Json::value_t::discarded);
}

}  // namespace ergotune

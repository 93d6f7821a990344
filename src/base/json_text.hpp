// JSON as text. What is parsed from outside has a limit on its nesting depth: copying and printing a document recurse
// for each level, so that a megabyte of brackets would overflow the stack (and fill memory with empty lists).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ergotune {

inline constexpr int kMaximumJsonDepth = 200;

/// Returns the first position at which brackets outside of strings are nested more deeply than kMaximumJsonDepth; npos
/// if there is none.
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

/// Like Json::parse(), but also throws parse_error (or returns a discarded value) for a document that is nested too
/// deeply.
template <class Json>
Json parse_json(std::string_view text, bool throws = true) {
  const std::size_t deep = too_deep_in_json(text);
  if (deep == std::string_view::npos) return Json::parse(text, nullptr, throws);
  if (throws) throw Json::parse_error::create(101, deep + 1, "nested too deeply", nullptr);
  return Json(Json::value_t::discarded);
}

/// A document as text, in one line unless `indent` is given; what is not UTF-8 becomes U+FFFD.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ergotune

#include "problem/files/json_reader.hpp"
#include "base/json_depth.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergotune::json_reading {

SourcePlace Source::place_at(std::size_t offset) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  return {file_, static_cast<int>(line), static_cast<int>(column)};
}

Json Source::parse() const {
  try {
    return parse_json<Json>(text_);
  } catch (const Json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what matters"
    std::string words = error.what();
    if (const auto colon = words.find(": "); colon != std::string::npos) words = words.substr(colon + 2);
    throw UserError(fmt::format("this is not JSON: {}", words), place_at(error.byte > 0 ? error.byte - 1 : 0));
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("this is not JSON: {}", error.what()), whole());
  }
}

SourcePlace Source::place_of(const std::string& content) const {
  const std::string quoted = Json(content).dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto at = text_.find(quoted);
  return at == std::string_view::npos ? whole() : place_at(at + 1);
}

std::string kind_of(const Json& json) {
  if (json.is_object()) return "a table";
  if (json.is_array()) return "a list";
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ergotune::json_reading

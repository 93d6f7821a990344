// JSON with places: nlohmann's reader forgets where a value stood, so the text is searched for it again.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ergotune/error.hpp"

namespace ergotune::json_reading {

using Json = nlohmann::ordered_json;

/// A JSON text with its file.
class Source {
 public:
  Source(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}
  /// Parses; a fault becomes a UserError with line and column.
  Json parse() const;
  /// Place of the first JSON string equal to `content` (inside its quotes); the file alone when it is not
  /// there.
  SourcePlace place_of(const std::string& content) const;
  SourcePlace whole() const { return {file_, 0, 0}; }

 private:
  SourcePlace place_at(std::size_t offset) const;
  std::string_view text_;
  std::string file_;
};

/// "the string "x"", "a list" ... for messages.
std::string kind_of(const Json& json);

}  // namespace ergotune::json_reading

// Parses and expands range(...).
#include <fmt/format.h>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/space.hpp"
#include "problem/checks.hpp"

namespace ergotune {

namespace {

// A parameter with more values than this is taken for a mistake.
constexpr std::int64_t kLongestRange = 1'000'000;

/// Expands a range whose bounds are known integers; returns false for other ranges.
bool expand(const DependentRange& range, const SourcePlace& place, Parameter& parameter) {
  const Value start = range.start.evaluate(Constants{}), stop = range.stop.evaluate(Constants{}),
              step = range.step.evaluate(Constants{});
  if (!start.is_integer() || !stop.is_integer() || !step.is_integer()) return false;
  const std::int64_t by = step.as_integer();
  if (by == 0) throw UserError("the step of a range must not be 0", place);
  const auto distance = static_cast<__int128>(stop.as_integer()) - start.as_integer();
  const __int128 count = by > 0 ? (distance + by - 1) / by : (-distance - by - 1) / -by;
  if (distance == 0 || (distance > 0) != (by > 0)) {
    throw UserError("the range is empty: it starts at " + start.to_string() + " and stops before " + stop.to_string() +
                        " in steps of " + step.to_string(),
                    place);
  }
  if (count > kLongestRange) {
    throw UserError(fmt::format("the range has more than {} values; give it a larger step", kLongestRange), place);
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    parameter.values.emplace_back(start.as_integer() + i * by);
  }
  return true;
}

}  // namespace

SourcePlace shifted(SourcePlace place, std::size_t offset) {
  if (place.column > 0) place.column += static_cast<int>(offset);
  return place;
}

std::vector<Piece> split_arguments(std::string_view text) {
  std::vector<Piece> pieces;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      pieces.push_back({text.substr(begin, i - begin), begin});
      begin = i + 1;
    }
  }
  // Python allows a trailing comma.
  if (!trimmed(text.substr(begin)).empty() || pieces.empty()) pieces.push_back({text.substr(begin), begin});
  return pieces;
}

void read_range(std::string_view text, const SourcePlace& place, Parameter& parameter) {
  constexpr std::string_view kForm = "a range is written range(stop), range(start, stop) or range(start, stop, step)";
  const std::string_view whole = trimmed(text);
  const std::size_t lead = static_cast<std::size_t>(whole.data() - text.data());
  const auto open = whole.find('(');
  if (!whole.starts_with("range") || open == std::string_view::npos || !trimmed(whole.substr(5, open - 5)).empty() ||
      !whole.ends_with(')')) {
    throw UserError(fmt::format("\"{}\" is not a range; {}", text, kForm), place);
  }
  const std::string_view inner = whole.substr(open + 1, whole.size() - open - 2);
  const std::vector<Piece> pieces = split_arguments(inner);
  if (trimmed(inner).empty() || pieces.size() > 3) {
    throw UserError(fmt::format("this range has {} arguments; {}", trimmed(inner).empty() ? 0 : pieces.size(), kForm),
                    place);
  }
  std::vector<Expression> bounds;
  for (const Piece& piece : pieces) {
    const std::string_view bound = trimmed(piece.text);
    const std::size_t offset = bound.empty() ? piece.offset : static_cast<std::size_t>(bound.data() - inner.data());
    bounds.push_back(Expression::parse(bound, shifted(place, lead + open + 1 + offset)));
  }
  DependentRange range{Expression::constant(0), bounds[0], Expression::constant(1)};
  if (bounds.size() > 1) range.start = bounds[0], range.stop = bounds[1];
  if (bounds.size() > 2) range.step = bounds[2];
  const bool constant = range.start.names().empty() && range.stop.names().empty() && range.step.names().empty();
  if (!constant || !expand(range, place, parameter)) parameter.range = range;
}

}  // namespace ergotune

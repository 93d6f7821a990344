#include "ergotune/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace ergotune {

std::string SourcePlace::to_string() const {
  if (file.empty() && line == 0) return {};
  std::string text = file.empty() ? "line" : file;
  text += file.empty() ? fmt::format(" {}", line) : (line > 0 ? fmt::format(":{}", line) : "");
  if (line > 0 && column > 0) text += fmt::format(":{}", column);
  return text;
}

namespace {
std::string with_place(const std::string& message, const SourcePlace& place) {
  const std::string where = place.to_string();
  return where.empty() ? message : where + ": " + message;
}

// Levenshtein distance, case-insensitive.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  auto fold = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (fold(a[i - 1]) == fold(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}
}  // namespace

UserError::UserError(const std::string& message, SourcePlace place)
    : Error(with_place(message, place)), place_(std::move(place)), message_(message) {}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance && distance < std::max(name.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  if (const auto near = nearest_name(name, candidates); !near.empty())
    return fmt::format(" (did you mean \"{}\"?)", near);
  if (candidates.empty()) return {};
  return fmt::format("; valid names: {}", fmt::join(candidates, ", "));
}

}  // namespace ergotune

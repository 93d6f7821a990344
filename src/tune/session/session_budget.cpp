#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "tune/session/session.hpp"

namespace ergotune {
namespace {

[[noreturn]] void refuse(std::string_view part) {
  throw UserError(
      fmt::format("the budget \"{}\" is none: write evaluations (25), time (90s, 10min, 2h) or energy (500J, 2kJ), "
                  "several with commas",
                  part));
}

void add_part(Budget& budget, std::string_view part) {
  double number = 0;
  const char* const end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data(), end, number);
  if (error != std::errc() || !(number > 0) || !std::isfinite(number)) refuse(part);
  const std::string_view unit = trimmed({rest, static_cast<std::size_t>(end - rest)});
  if (unit.empty() || unit == "evaluations") {
    if (number != std::floor(number) || number > 1e15) refuse(part);
    budget.evaluations = static_cast<std::uint64_t>(number);
  } else if (unit == "s" || unit == "sec") {
    budget.seconds = number;
  } else if (unit == "min" || unit == "m") {
    budget.seconds = number * 60;
  } else if (unit == "h") {
    budget.seconds = number * 3600;
  } else if (unit == "J") {
    budget.joules = number;
  } else if (unit == "kJ") {
    budget.joules = number * 1e3;
  } else {
    refuse(part);
  }
}

}  // namespace

Budget Budget::parse(const std::string& text) {
  if (text.empty()) refuse(text);
  Budget budget;
  for (const std::string& part : split(text)) add_part(budget, trimmed(part));
  return budget;
}

}  // namespace ergotune

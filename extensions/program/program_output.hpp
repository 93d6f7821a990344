// What a program's output says: numbers by pattern, and whether it is right.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "problem/program.hpp"

namespace ergotune {

/// The patterns of a program, read once.
class OutputPatterns {
 public:
  explicit OutputPatterns(const Program& program);
  /// Fills in the numbers; what is missing or is no number, in words; empty where all is there.
  std::string read(std::string_view out, std::string_view err, std::map<std::string, double>& numbers) const;
  /// Whether a line matches the check's pattern; true where there is none.
  bool right(std::string_view out, std::string_view err) const;

 private:
  struct Pattern {
    std::string text;
    std::regex regex;
  };
  std::map<std::string, Pattern> numbers_;
  std::optional<Pattern> check_;
};

/// Where two texts differ, in words; empty where they do not. With a tolerance, words between blanks that are numbers
/// in both may differ by absolute + relative * |expected|; without any, every byte counts.
std::string difference(std::string_view actual, std::string_view expected, std::optional<double> absolute,
                       std::optional<double> relative);

/// The last lines of what a program said, for messages: standard error, else standard output.
std::string output_tail(const std::string& out, const std::string& err);

}  // namespace ergotune

// Evaluates the output of a program: extracts numbers by patterns, and checks it.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "problem/program.hpp"

namespace ergotune {

/// The patterns of a program, compiled once.
class OutputPatterns {
 public:
  explicit OutputPatterns(const Program& program);
  /// Extracts the numbers; returns a message on missing or invalid ones, empty if all were found.
  std::string read(std::string_view out, std::string_view err, std::map<std::string, double>& numbers) const;
  /// Whether a line matches the check's pattern; true if there is no check.
  bool right(std::string_view out, std::string_view err) const;

 private:
  struct Pattern {
    std::string text;
    std::regex regex;
  };
  std::map<std::string, Pattern> numbers_;
  std::optional<Pattern> check_;
};

/// Describes where two texts differ; empty if they do not. With a tolerance, words separated by blanks that are numbers
/// in both texts may differ by absolute + relative * |expected|; without one, all bytes have to agree.
std::string difference(std::string_view actual, std::string_view expected, std::optional<double> absolute,
                       std::optional<double> relative);

/// The last lines of a program's output, for messages: of standard error, else of standard output.
std::string output_tail(const std::string& out, const std::string& err);

}  // namespace ergotune

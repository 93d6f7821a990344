// Exceptions. The failure of a configuration is data (Status in ergotune/result.hpp), never an exception; exceptions
// report failures of ergotune itself and mistakes of its user.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// A place in a user's file. Line and column count from 1; 0 means unknown.
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;
  /// Formats the place as "file:line:column" without the unknown parts; empty if all are unknown.
  std::string to_string() const;
};

/// Base class of ergotune's exceptions.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// An error that the user can correct: an invalid file, an unknown name, a missing permission. what() is the complete
/// message: place, problem and remedy. The command prints it and exits with 2.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message, SourcePlace place = {});
  const SourcePlace& place() const { return place_; }
  /// The message without the place.
  const std::string& message() const { return message_; }

 private:
  SourcePlace place_;
  std::string message_;
};

/// Returns the candidate nearest to `name` by edit distance, or an empty string if none is near enough.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// Returns the end of an error message: ` (did you mean "x"?)`, or `; valid names: a, b, c` if no candidate is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace ergotune

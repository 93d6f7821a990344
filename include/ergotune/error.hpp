// Errors. A failure of a configuration is data (ergotune/result.hpp: Status), never an exception; exceptions are
// for the tool's own failures and for its user's mistakes.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// A place in a user's file; line and column count from 1, 0 means unknown.
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;
  /// "file:line:column", leaving out what is unknown; empty when nothing is known.
  std::string to_string() const;
};

/// Base of everything ergotune throws on purpose.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// The user can correct this: a bad file, an unknown name, a missing permission. what() is the one whole message, place
/// first, and the remedy. The command prints it and exits with 2.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message, SourcePlace place = {});
  const SourcePlace& place() const { return place_; }
  /// The message without its place.
  const std::string& message() const { return message_; }

 private:
  SourcePlace place_;
  std::string message_;
};

/// The candidate nearest to `name` by edit distance, or empty when none is near enough to be what was meant.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// ` (did you mean "x"?)`, or `; valid names: a, b, c` when nothing is near. For the end of an error message.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace ergotune

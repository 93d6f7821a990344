// Failures put together by what went wrong, for show, report and the last words of a session.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ergotune/result.hpp"

namespace ergotune {

struct FailureGroup {
  Status status = Status::runtime_error;
  std::string message;  ///< of its first configuration, whole
  std::size_t count = 0;
  std::size_t first = 0;  ///< the first add()'s number
};

/// Two failures are one kind when their words differ in numbers and names of temporary files only: every configuration
/// has its own of those, and a list of 100,000 kinds tells nothing.
class FailureGroups {
 public:
  void add(std::size_t number, Status status, const std::string& message);
  /// The commonest first.
  std::vector<FailureGroup> list() const;

 private:
  std::vector<FailureGroup> groups_;
  std::unordered_map<std::string, std::size_t> place_;  ///< in groups_, by kind
};

/// The line of a compiler's or driver's words that says most: the first that says "error", else the first that is not
/// empty. gcc begins with "In function 'f':", ends with notes.
std::string telling_line(std::string_view description);

}  // namespace ergotune

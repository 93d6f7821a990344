// Groups failures by their cause, for show, report and the end of a session.
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
  std::string message;  ///< complete message of its first configuration
  std::size_t count = 0;
  std::size_t first = 0;  ///< number passed to add() for its first failure
};

/// Two failures belong to one group if their messages differ only in numbers and names of temporary files, which differ
/// for every configuration.
class FailureGroups {
 public:
  void add(std::size_t number, Status status, const std::string& message);
  /// The most frequent first.
  std::vector<FailureGroup> list() const;

 private:
  std::vector<FailureGroup> groups_;
  std::unordered_map<std::string, std::size_t> place_;  ///< in groups_, by kind
};

/// The most informative line of a compiler's or driver's output: the first that contains "error", else the first
/// non-empty one. (gcc begins with "In function 'f':" and ends with notes.)
std::string most_informative_line(std::string_view description);

}  // namespace ergotune

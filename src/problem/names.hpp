// The names that an expression may use at its place; error messages list them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

struct Problem;

class Names {
 public:
  void add(const std::string& name) { names_.push_back(name); }
  void remove_last() { names_.pop_back(); }
  bool knows(std::string_view name) const;
  const std::vector<std::string>& list() const { return names_; }

 private:
  std::vector<std::string> names_;
};

/// Returns the place of `name` within an expression; if it cannot be determined, the place of the expression.
SourcePlace place_in(const Expression& expression, std::string_view name);
/// Throws UserError for the first unknown name; `what` describes the expression in the message.
void check(const Expression& expression, const Names& names, const std::string& what);
void check(const Template& text, const Names& names, const std::string& what);

// checks_workload.cpp
/// Returns `names` (constants and parameters) and the names that only the kernel's own expressions may use: its
/// parameters without the kernel's name, and the variables of loops around it.
Names names_inside(const Problem& problem, std::size_t kernel, const Names& names);
/// Throws UserError for steps that refer to unknown names, that cannot form an iteration, or that never end.
void check_workload(const Problem& problem, const Names& names);

}  // namespace ergotune

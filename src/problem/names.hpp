// Names that expressions may use where they stand, in the words of the message when they use another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

class Names {
 public:
  void add(const std::string& name) { names_.push_back(name); }
  void remove_last() { names_.pop_back(); }
  bool knows(std::string_view name) const;
  const std::vector<std::string>& list() const { return names_; }

 private:
  std::vector<std::string> names_;
};

/// Where `name` stands in an expression: its own place in the text, as far as that can be told.
SourcePlace place_in(const Expression& expression, std::string_view name);
/// Throws a UserError for the first name that is not known; `what` says where it stands.
void check(const Expression& expression, const Names& names, const std::string& what);
void check(const Template& text, const Names& names, const std::string& what);

// checks_workload.cpp
/// `names` (constants and parameters) and what the kernel's own expressions see besides: its parameters without its
/// name, the variables of loops around it.
Names names_inside(const Problem& problem, std::size_t kernel, const Names& names);
/// Throws a UserError for steps that name what is not there, that no round can be made of, or that never end.
void check_workload(const Problem& problem, const Names& names);

}  // namespace ergotune

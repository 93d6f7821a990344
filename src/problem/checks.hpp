// Checks of a problem that need no device: names (those that an expression may use at its place; error messages
// list them), counts, ranges.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

struct Problem;

/// The names that an expression may use.
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

/// Returns `names` (constants and parameters) and the names that only the kernel's own expressions may use: its
/// parameters without the kernel's name, and the variables of loops around it.
Names names_inside(const Problem& problem, std::size_t kernel, const Names& names);
/// Throws UserError for steps that refer to unknown names, that cannot form an iteration, or that never end.
void check_workload(const Problem& problem, const Names& names);

/// Checks the names used in expressions and the values of parameters. For problems that were read from a file as well
/// as for those made or changed in memory. Throws UserError.
void check_problem(const Problem& problem);

/// Throws UserError, with its place and the nearest valid name, for the first name in an expression that is neither a
/// constant nor a parameter visible there nor a device property.
void check_names(const Problem& problem);

/// Returns a number of elements or bytes. Throws UserError if `value` is not a whole number; `what` names the count in
/// the message.
std::int64_t whole_count(const Value& value, const std::string& what, const SourcePlace& place);

/// Reads range(start, stop, step), with one to three arguments, into `parameter`. If all bounds are known integers, the
/// values are stored instead of the range. Throws UserError.
void read_range(std::string_view text, const SourcePlace& place, Parameter& parameter);

/// Splits `text` at commas outside of brackets and quotes; each piece has its offset in `text`.
struct Piece {
  std::string_view text;
  std::size_t offset = 0;
};
std::vector<Piece> split_arguments(std::string_view text);

/// Returns `place` moved right by `offset` columns.
SourcePlace shifted(SourcePlace place, std::size_t offset);

}  // namespace ergotune

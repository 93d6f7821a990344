// Checks of a problem that need no device: unknown names, counts, ranges.
#pragma once

#include <string_view>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

struct Problem;

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

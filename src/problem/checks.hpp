// What can be known to be wrong before anything runs: names that mean nothing where they stand.
#pragma once

#include <string_view>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// Throws a UserError, with place and nearest valid name, for the first name in an expression that is neither
/// a constant nor a parameter visible there (nor a device property).
void check_names(const Problem& problem);

/// A count of elements or bytes; throws UserError for what is no whole number, `what` says of what.
std::int64_t whole_count(const Value& value, const std::string& what, const SourcePlace& place);

/// range(start, stop, step) with one to three arguments; throws UserError. Without names the values
/// themselves are filled in.
void read_range(std::string_view text, const SourcePlace& place, Parameter& parameter);

/// The texts between the commas of `text` that stand outside brackets and quotes, with their offsets.
struct Piece {
  std::string_view text;
  std::size_t offset = 0;
};
std::vector<Piece> split_arguments(std::string_view text);

/// `place` moved `offset` columns to the right.
SourcePlace shifted(SourcePlace place, std::size_t offset);

}  // namespace ergotune

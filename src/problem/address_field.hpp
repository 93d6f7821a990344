// Members of structures, and places in buffers, that are addresses of buffers.
#pragma once

#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/argument.hpp"

namespace ergotune {

/// The buffer whose address a member is, by its name "&BUFFER" ("&BUFFER@BYTE" in a buffer); empty for a number.
inline std::string_view buffer_pointed_to(const Field& field) {
  const std::string_view name = field.name;
  return name.starts_with('&') ? name.substr(1, name.find('@') - 1) : std::string_view();
}

/// Where a buffer holds an address, by the field's name; nullopt if it says no place.
inline std::optional<std::size_t> place_in_buffer(const Field& field) {
  const std::size_t mark = field.name.find('@');
  if (mark == std::string::npos) return std::nullopt;
  std::size_t place = 0;
  const char* end = field.name.data() + field.name.size();
  const auto [next, error] = std::from_chars(field.name.data() + mark + 1, end, place);
  return error == std::errc() && next == end ? std::optional(place) : std::nullopt;
}

/// Adds what a kernel is given: arguments, and buffers that structures or other buffers point to.
inline void add_passed(const std::vector<Argument>& arguments, const Scope& scope, std::set<std::string>& passed) {
  for (const Argument& argument : arguments) {
    if (argument.passed(scope)) passed.insert(argument.name);
    if (argument.kind != Argument::Kind::buffer && !argument.passed(scope)) continue;
    for (const Field& field : argument.fields)
      if (const std::string_view buffer = buffer_pointed_to(field); !buffer.empty()) passed.emplace(buffer);
  }
}

}  // namespace ergotune

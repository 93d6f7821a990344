// Members of structures that are addresses of buffers.
#pragma once

#include <algorithm>
#include <string_view>

#include "ergotune/argument.hpp"

namespace ergotune {

/// The buffer whose address a member is, by its name "&BUFFER"; empty for a number.
inline std::string_view buffer_pointed_to(const Field& field) {
  return field.name.starts_with('&') ? std::string_view(field.name).substr(1) : std::string_view();
}

/// Calls `f` with the name of each buffer whose address a structure holds.
template <class F>
void for_each_address(const Argument& argument, F&& f) {
  for (const Field& field : argument.fields)
    if (const std::string_view buffer = buffer_pointed_to(field); !buffer.empty()) f(buffer);
}

}  // namespace ergotune

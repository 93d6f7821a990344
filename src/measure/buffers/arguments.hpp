// Converts kernel arguments to bytes: initial contents of buffers, and scalars.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "ergotune/argument.hpp"

namespace ergotune {

/// Returns the elements of a file, which must have this type and exactly `bytes` bytes. `what` describes their purpose
/// in messages: "fills argument "a"". Throws UserError.
std::vector<std::byte> read_array_file(const std::filesystem::path& file, ElementType type, std::size_t bytes,
                                       const std::string& what, const SourcePlace& place = {});

/// Returns the bytes of a scalar of `type` in the machine's byte order. Throws UserError if the value does not fit.
std::vector<std::byte> scalar_bytes(ElementType type, const Value& value, const SourcePlace& place = {});

/// Returns the bytes of a scalar or structure argument, evaluated in `scope`. Throws UserError if a value does not fit.
std::vector<std::byte> scalar_bytes(const Argument& argument, const Scope& scope);

/// Returns the number of elements of a buffer. Throws UserError if it is not a valid size.
std::size_t element_count(const Argument& argument, const Constants& constants);

/// Returns the initial contents of a buffer of `count` elements according to its fill. `position`, the argument's
/// index, is mixed into the seed, so that two buffers with the default seed differ. Throws UserError for a file that is
/// missing or has the wrong size.
std::vector<std::byte> initial_contents(const Argument& argument, std::size_t count, std::size_t position);

}  // namespace ergotune

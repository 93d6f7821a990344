// Kernel arguments as bytes: initial buffer contents and scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// IEEE 754 binary16, round to nearest even.
std::uint16_t half_from(double value);
double half_to_double(std::uint16_t bits);

/// A scalar of `type` in the machine's byte order. Throws UserError when the value does not fit.
std::vector<std::byte> scalar_bytes(ElementType type, const Value& value, const SourcePlace& place = {});

/// The bytes of a scalar argument, a structure among them, in `scope`. Throws UserError when a value does not fit.
std::vector<std::byte> scalar_bytes(const Argument& argument, const Scope& scope);

/// The contents of a buffer of `count` elements as its fill says. `position` is the argument's place in the
/// list: it is mixed into the seed, so that two buffers with the default seed differ. Throws UserError (a
/// file that is missing or has another size).
std::vector<std::byte> initial_contents(const Argument& argument, std::size_t count, std::size_t position);

}  // namespace ergotune

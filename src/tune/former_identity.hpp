// The identity of sessions in stores of schema 1, so that what they hold is found.
#pragma once

#include <string>

#include "ergotune/store/store.hpp"
#include "ergotune/tune/target.hpp"

namespace ergotune {

/// The hash under which ergotune 0.1 stored the same session: the problem as a document with all its places, and the
/// contents of included files among the conditions.
std::string former_identity_hash(const Target& target, const SessionIdentity& identity);

}  // namespace ergotune

// toml++, with its assertions turned into errors. toml++ 3.3 asserts that a key or value begins where one must stand, and
// malformed files break that ("[,x]", "a = [1,}]"; found by fuzz/policy_fuzz.cpp): an abort in debug builds, undefined
// behaviour in release builds, where the assertion becomes an assumption. Every file of ergotune includes toml++ from
// here, so that one definition holds.
#pragma once

#include "ergotune/base/error.hpp"

namespace ergotune {
[[noreturn]] inline void malformed_toml() {
  throw UserError("this is not TOML: a key or a value is missing where one must stand");
}
}  // namespace ergotune

#define TOML_HEADER_ONLY 1  // no library to ship
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : ::ergotune::malformed_toml())
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

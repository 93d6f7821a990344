// ergotune clocks set: applies settings while a program runs.
#pragma once

#include "cli/verb.hpp"

namespace ergotune::cli {

void add_clocks_set(Verb clocks);

}  // namespace ergotune::cli

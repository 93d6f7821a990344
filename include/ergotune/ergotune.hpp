// The public C++ API of ergotune, version 0. Everything in this folder follows semantic versioning; all other headers
// are private. Applications that only launch tuned kernels need launcher.h or launcher.hpp and libergotune-launcher.
#pragma once

#include "ergotune/argument.hpp"
#include "ergotune/energy_region.hpp"
#include "ergotune/error.hpp"
#include "ergotune/objective.hpp"
#include "ergotune/observer.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/result.hpp"
#include "ergotune/run_config.hpp"
#include "ergotune/session.hpp"
#include "ergotune/space.hpp"
#include "ergotune/strategy.hpp"

// Failed restores of this process.
#pragma once

#include "power/guardian/guardian.hpp"

namespace ergotune {

/// Adds a report for take_failed_restores().
void note_failed_restore(const RestoreReport& report);

}  // namespace ergotune

// Restores that failed in this process.
#pragma once

#include "power/guardian/guardian.hpp"

namespace ergotune {

/// For take_failed_restores().
void note_failed_restore(const RestoreReport& report);

}  // namespace ergotune

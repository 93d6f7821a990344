// Restores a journal in a separate process.
#pragma once

#include <string>
#include <vector>

#include "power/guardian/journal.hpp"

namespace ergotune {

/// Restores as restore_journal() does, but if a driver call blocks or ends the process, only its own step fails:
/// another process carries out the remaining steps, and the caller does not wait forever. Restores in this process if
/// none can be started. `round.control` is ignored. Takes at most 20 s with a driver that blocks.
RestoreReport restore_in_process(const StateFolder& folder, const std::filesystem::path& file,
                                 const ControlEnvironment& environment, const RestoreOptions& round = {});

/// First argument of the guardian that starts it as a restoring process.
inline constexpr const char* kRestoreArgument = "--restore";
/// Main function of the restoring process. `arguments`: those after kRestoreArgument. Returns the exit code.
int run_restorer(const std::vector<std::string>& arguments);

}  // namespace ergotune

// Carrying out a journal in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "power/guardian/journal.hpp"

namespace ergotune {

/// As restore_journal(), but a driver's call that does not return, or that ends its process, costs its own step only:
/// the others are carried out by the next process, and no caller waits for ever. Where no process can be started it is
/// done in this one. `round.control` is not used. Takes 20 s at the most for a driver that hangs.
RestoreReport restore_apart(const StateFolder& folder, const std::filesystem::path& file,
                            const ControlEnvironment& environment, const RestoreRound& round = {});

/// First word of the guardian's arguments that makes it such a process.
inline constexpr const char* kRestoreWord = "--restore";
/// Its main; `arguments` are those after kRestoreWord. Returns the exit code.
int run_restorer(const std::vector<std::string>& arguments);

}  // namespace ergotune

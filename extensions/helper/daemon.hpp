// The socket and main loop of ergotuned.
#pragma once

#include <string>

#include "power/controls/control.hpp"

namespace ergotune::helper {

struct DaemonOptions {
  std::string socket = "/run/ergotune/ergotuned.sock";
  std::string policy = "/etc/ergotune/ergotuned.toml";
  std::string audit_log;  ///< empty: standard error, which systemd records in its journal
  ControlEnvironment environment;
};

/// Runs until SIGTERM or SIGINT; SIGHUP reloads the policy. Returns the exit code. Throws UserError for an invalid
/// policy, and if the socket or audit log cannot be opened.
int run_daemon(const DaemonOptions& options);

}  // namespace ergotune::helper

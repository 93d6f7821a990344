// ergotuned's socket and loop.
#pragma once

#include <string>

#include "power/controls/control.hpp"

namespace ergotune::helper {

struct DaemonOptions {
  std::string socket = "/run/ergotune/ergotuned.sock";
  std::string policy = "/etc/ergotune/ergotuned.toml";
  std::string audit_log;  ///< empty: standard error, which systemd keeps in its journal
  ControlEnvironment environment;
};

/// Runs until SIGTERM or SIGINT; SIGHUP reads the policy again. Returns the exit code. Throws UserError.
int run_daemon(const DaemonOptions& options);

}  // namespace ergotune::helper

// The policy of ergotuned: which users may do what. A TOML file that only root can write.
//
//   lease_seconds = 60           # a lease ends after this time without renewal
//   changes_per_second = 20      # requests to set, per lease
//   burst = 40
//
//   [[allow]]
//   users = ["alice"]            # names or numbers
//   groups = ["gpu-tuners"]
//   devices = ["nvml:0", "GPU-6f3a..."]   # ids or keys as `ergotune clocks status` shows them; "*" for all
//   core_clock_mhz = [600, 1980]          # bounds; a quantity that is not named may not be set
//   power_limit_w = [200, 500]
//   take_over = false            # may go on although clocks locked by another process are in force
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune::helper {

/// The process at the other end of the socket, as reported by the kernel (SO_PEERCRED, SO_PEERGROUPS).
struct Peer {
  pid_t pid = 0;
  uid_t uid = static_cast<uid_t>(-1);
  std::vector<gid_t> groups;
};

struct Bounds {
  double low = 0, high = 0;
};

struct Rule {
  std::vector<uid_t> users;
  std::vector<gid_t> groups;
  std::vector<std::string> devices;
  std::map<ControlQuantity, Bounds> bounds;
  bool take_over = false;
};

struct Policy {
  double lease_seconds = 60;
  double changes_per_second = 20;
  double burst = 40;
  std::vector<Rule> rules;

  /// The first rule that allows `peer` to use the device, or nullptr. Root needs a rule like any other user.
  const Rule* rule_for(const Peer& peer, const std::string& id, const std::string& key) const;
};

/// Throws UserError with line and column. Unknown keys, users and groups are errors.
Policy parse_policy(const std::string& text, const std::string& file);
/// Reads a policy file. Throws UserError if it is a link, not a regular file, not owned by root (or the user of this
/// process), or if others can write to it or to its folder.
Policy load_policy(const std::string& file);

/// The range limited to what a rule allows; unsupported if nothing is left.
ControlRange clamp_range(ControlRange range, const Rule& rule, ControlQuantity quantity);

}  // namespace ergotune::helper

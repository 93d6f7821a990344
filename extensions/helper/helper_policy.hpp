// Who may do what through ergotuned: a TOML file that only root can write.
//
//   lease_seconds = 60           # longest time to live of a lease between two signs of life
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

/// Who is at the other end, as the kernel says (SO_PEERCRED, SO_PEERGROUPS).
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

  /// The first rule that lets `peer` use the device, or nullptr. Root needs a rule as everybody else.
  const Rule* rule_for(const Peer& peer, const std::string& id, const std::string& key) const;
};

/// Throws UserError with line and column: unknown keys, users and groups are mistakes, not things to skip.
Policy parse_policy(const std::string& text, const std::string& file);
/// Reads it; refused (UserError) when it is a link, not a plain file, not owned by root (or by ourselves), or
/// when others can write to it or to the folder it lies in.
Policy load_policy(const std::string& file);

/// The range narrowed to what a rule allows; unsupported where it allows nothing.
ControlRange clamp_range(ControlRange range, const Rule& rule, ControlQuantity quantity);

}  // namespace ergotune::helper

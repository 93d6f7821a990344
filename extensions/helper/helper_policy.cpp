#include "helper/helper_policy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/toml.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"

namespace ergotune::helper {
namespace {

SourcePlace place_of(const toml::node& node, const std::string& file) {
  const auto& begin = node.source().begin;
  return {file, static_cast<int>(begin.line), static_cast<int>(begin.column)};
}

void check_keys(const toml::table& table, const std::vector<std::string>& known, const std::string& file) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::ranges::find(known, name) == known.end())
      throw UserError(fmt::format("unknown key \"{}\"{}", name, suggestion(name, known)), place_of(node, file));
  }
}

double positive(const toml::table& table, const char* name, double otherwise, double most, const std::string& file) {
  const auto* node = table.get(name);
  if (!node) return otherwise;
  const auto value = node->value<double>();
  if (!value || !(*value > 0) || *value > most)
    throw UserError(fmt::format("{} must be a number above 0, at most {:g}", name, most), place_of(*node, file));
  return *value;
}

// Calls `each` for all elements of an array.
template <class Each>
void entries(const toml::table& table, const char* name, const std::string& file, Each each) {
  const auto* node = table.get(name);
  if (!node) return;
  const auto* array = node->as_array();
  if (!array) throw UserError(fmt::format("{} must be a list", name), place_of(*node, file));
  for (const auto& entry : *array) each(entry);
}

template <class Id>
Id number_or_name(const toml::node& node, const char* what, const std::string& file,
                  bool (*find)(const std::string&, Id&)) {
  if (const auto number = node.value_exact<std::int64_t>()) {
    if (*number >= 0 && *number < 0xffffffffll) return static_cast<Id>(*number);
  } else if (const auto name = node.value_exact<std::string>()) {
    Id id{};
    if (find(*name, id)) return id;
    throw UserError(fmt::format("there is no {} \"{}\" on this machine", what, *name), place_of(node, file));
  }
  throw UserError(fmt::format("a {} is a name or a number", what), place_of(node, file));
}

bool find_user(const std::string& name, uid_t& id) {
  const passwd* entry = ::getpwnam(name.c_str());
  if (entry) id = entry->pw_uid;
  return entry != nullptr;
}

bool find_group(const std::string& name, gid_t& id) {
  const group* entry = ::getgrnam(name.c_str());
  if (entry) id = entry->gr_gid;
  return entry != nullptr;
}

Bounds parse_bounds(const toml::node& node, const std::string& name, const std::string& file) {
  const auto* array = node.as_array();
  if (array && array->size() == 2) {
    const auto low = (*array)[0].value<double>(), high = (*array)[1].value<double>();
    if (low && high && std::isfinite(*low) && std::isfinite(*high) && *low >= 0 && *low <= *high) return {*low, *high};
  }
  throw UserError(fmt::format("{} must be [lowest, highest]", name), place_of(node, file));
}

Rule parse_rule(const toml::table& table, const std::string& file) {
  check_keys(table, {"users", "groups", "devices", "core_clock_mhz", "memory_clock_mhz", "power_limit_w", "take_over"},
             file);
  Rule rule;
  entries(table, "users", file,
          [&](const toml::node& n) { rule.users.push_back(number_or_name<uid_t>(n, "user", file, find_user)); });
  entries(table, "groups", file,
          [&](const toml::node& n) { rule.groups.push_back(number_or_name<gid_t>(n, "group", file, find_group)); });
  entries(table, "devices", file, [&](const toml::node& n) {
    const auto name = n.value_exact<std::string>();
    if (!name || name->empty()) throw UserError("a device is named by its id or key, or \"*\"", place_of(n, file));
    rule.devices.push_back(*name);
  });
  for (const auto quantity : kControlQuantities)
    if (const auto* node = table.get(to_string(quantity)))
      rule.bounds[quantity] = parse_bounds(*node, to_string(quantity), file);
  if (const auto* node = table.get("take_over")) {
    const auto flag = node->value_exact<bool>();
    if (!flag) throw UserError("take_over must be true or false", place_of(*node, file));
    rule.take_over = *flag;
  }
  if (rule.users.empty() && rule.groups.empty())
    throw UserError("a rule must name users or groups", place_of(table, file));
  if (rule.devices.empty()) throw UserError("a rule must name devices (\"*\" for all)", place_of(table, file));
  return rule;
}

}  // namespace

const Rule* Policy::rule_for(const Peer& peer, const std::string& id, const std::string& key) const {
  for (const auto& rule : rules) {
    const bool who = std::ranges::find(rule.users, peer.uid) != rule.users.end() ||
                     std::ranges::any_of(peer.groups, [&](gid_t group) {
                       return std::ranges::find(rule.groups, group) != rule.groups.end();
                     });
    const bool what = std::ranges::any_of(
        rule.devices, [&](const std::string& name) { return name == "*" || name == id || name == key; });
    if (who && what) return &rule;
  }
  return nullptr;
}

Policy parse_policy(const std::string& text, const std::string& file) {
  try {
    const toml::table table = toml::parse(text, file);
    check_keys(table, {"lease_seconds", "changes_per_second", "burst", "allow"}, file);
    Policy policy;
    policy.lease_seconds = positive(table, "lease_seconds", policy.lease_seconds, 3600, file);
    policy.changes_per_second = positive(table, "changes_per_second", policy.changes_per_second, 1000, file);
    policy.burst = std::max(1.0, positive(table, "burst", policy.burst, 1e6, file));
    entries(table, "allow", file, [&](const toml::node& entry) {
      const auto* rule = entry.as_table();
      if (!rule) throw UserError("\"allow\" holds tables: write [[allow]]", place_of(entry, file));
      policy.rules.push_back(parse_rule(*rule, file));
    });
    return policy;
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    throw UserError(std::string(error.description()),
                    {file, static_cast<int>(begin.line), static_cast<int>(begin.column)});
  }
}

Policy load_policy(const std::string& file) {
  const auto refuse = [&](const std::string& why) { throw UserError(fmt::format("the policy {} {}", file, why)); };
  const auto trusted = [](const struct stat& info) { return info.st_uid == 0 || info.st_uid == ::geteuid(); };
  // Opened without following links and checked through the descriptor, so that it cannot be replaced in between.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    refuse(errno == ELOOP ? "is a link: give the file itself"
                          : fmt::format("cannot be read: {}", std::strerror(errno)));
  struct stat info {};
  std::string text;
  const bool looked = ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size < (1 << 20);
  if (looked) {
    char buffer[4096];
    for (ssize_t n; (n = ::read(descriptor, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(descriptor);
  if (!looked) refuse("is not a plain file of a sensible size");
  if (!trusted(info)) refuse(fmt::format("belongs to user {}, not to root", info.st_uid));
  if (info.st_mode & (S_IWGRP | S_IWOTH)) refuse(fmt::format("can be written by others: chmod go-w {}", file));
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (::stat(folder.c_str(), &info) != 0 || !trusted(info) || (info.st_mode & (S_IWGRP | S_IWOTH)))
    refuse(fmt::format("lies in a folder that others can write ({})", folder.string()));
  return parse_policy(text, file);
}

ControlRange clamp_range(ControlRange range, const Rule& rule, ControlQuantity quantity) {
  const auto found = rule.bounds.find(quantity);
  if (!range.supported || found == rule.bounds.end()) return {};
  const double low = found->second.low, high = found->second.high;
  if (range.values.empty()) {
    range.low = std::max(range.low, low);
    range.high = std::min(range.high, high);
    range.supported = range.low <= range.high;
  } else {
    std::erase_if(range.values, [&](double value) { return value < low || value > high; });
    range.supported = !range.values.empty();
    if (range.supported) {
      range.low = range.values.front();
      range.high = range.values.back();
    }
  }
  if (!range.supported) return {};
  if (range.default_value) range.default_value = std::clamp(*range.default_value, range.low, range.high);
  return range;
}

}  // namespace ergotune::helper

#include "problem/tables/device_profile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/files.hpp"
#include "base/toml.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

// "RTX A4000", "rtx-a4000" and "NVIDIA RTX A4000" all mean rtx_a4000.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  for (const std::string_view maker : {"nvidia", "tesla"}) {
    if (out.starts_with(maker)) out.erase(0, maker.size());
  }
  return out;
}

SourcePlace place_of(const toml::node& node, const std::string& file) {
  return {file, static_cast<int>(node.source().begin.line), static_cast<int>(node.source().begin.column)};
}

/// Returns the keys that match a pattern ("power.idle_w", "clock.*").
std::vector<std::string> expand(const std::string& pattern, const std::vector<std::string>& keys) {
  std::vector<std::string> out;
  if (pattern.ends_with(".*")) {
    const std::string prefix = pattern.substr(0, pattern.size() - 1);
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(out),
                 [&](const std::string& key) { return key.starts_with(prefix); });
  } else if (std::ranges::find(keys, pattern) != keys.end()) {
    out.push_back(pattern);
  }
  return out;
}

Value property(const toml::node& node, const std::string& key, const std::string& file) {
  if (const auto integer = node.value_exact<std::int64_t>()) return Value(*integer);
  if (const auto real = node.value_exact<double>()) return Value(*real);
  if (const auto flag = node.value_exact<bool>()) return Value(*flag);
  if (const auto text = node.value_exact<std::string>()) return Value(*text);
  throw UserError(fmt::format("device profile: {} must be a number or a text", key), place_of(node, file));
}

void read_number(DeviceProfile& profile, const std::string& key, const toml::node& node, const std::string& file) {
  if (const auto number = node.value<double>()) {
    profile.numbers[key] = *number;
    return;
  }
  const toml::array* list = node.as_array();
  if (list == nullptr)
    throw UserError(fmt::format("device profile: {} must be a number or a list", key), place_of(node, file));
  for (const toml::node& item : *list) {
    const auto number = item.value<double>();
    if (!number) throw UserError(fmt::format("device profile: {} must hold numbers only", key), place_of(item, file));
    profile.lists[key].push_back(*number);
  }
}

DeviceProfile parse(std::string_view text, const std::string& file) {
  toml::table document;
  try {
    check_toml_keys(text, file);
    document = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw UserError(std::string(error.description()),
                    {file, static_cast<int>(error.source().begin.line), static_cast<int>(error.source().begin.column)});
  }
  DeviceProfile profile;
  profile.name = document["name"].value_or(std::string());
  if (profile.name.empty()) throw UserError("device profile: needs a line name = \"...\"", {file, 1, 1});

  std::vector<std::string> keys;
  for (const auto& [table_name, node] : document) {
    const toml::table* table = node.as_table();
    if (table == nullptr || table_name == "sources") continue;
    for (const auto& [name, entry] : *table) {
      const std::string key = fmt::format("{}.{}", table_name.str(), name.str());
      keys.push_back(key);
      if (table_name == "device") {
        profile.properties[key] = property(entry, key, file);
      } else {
        read_number(profile, key, entry, file);
      }
    }
  }
  profile.properties.emplace("device.name", Value(profile.name));
  profile.properties.emplace("device.multiprocessor_unit",
                             Value(std::int64_t{1}));  // placeholder: a simulated device may be partitioned freely

  if (const toml::table* sources = document["sources"].as_table()) {
    for (const auto& [pattern, node] : *sources) {
      const auto named = expand(std::string(pattern.str()), keys);
      if (named.empty())
        throw UserError(fmt::format("device profile: a source for the unknown {}", pattern.str()),
                        place_of(node, file));
      for (const std::string& key : named) profile.sources[key] = node.value_or(std::string());
    }
  }
  if (const toml::array* assumed = document["assumed"].as_array()) {
    for (const toml::node& node : *assumed) {
      const std::string pattern = node.value_or(std::string());
      const auto named = expand(pattern, keys);
      if (named.empty())
        throw UserError(fmt::format("device profile: the unknown \"{}\" is called assumed", pattern),
                        place_of(node, file));
      for (const std::string& key : named) {
        if (!profile.sources.contains(key)) profile.assumed.insert(key);
      }
    }
  }
  return profile;
}

}  // namespace

std::vector<std::string> device_profile_names() {
  std::vector<std::string> names;
  for (const EmbeddedProfile& profile : embedded_profiles()) names.emplace_back(profile.name);
  return names;
}

DeviceProfile load_device_profile(const std::string& name_or_file) {
  const std::string wanted = plain(name_or_file);
  const EmbeddedProfile* found = nullptr;
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    if (plain(profile.name) == wanted) return parse(profile.text, fmt::format("{}.toml", profile.name));
    // Accepts a GPU's full name ("NVIDIA A100-PCIE-40GB"), or an unambiguous short one ("a4000", "xavier nx").
    const std::string full = plain(parse(profile.text, std::string(profile.name)).name);
    const bool near = full == wanted || (wanted.size() >= 4 && plain(profile.name).ends_with(wanted));
    if (near && found == nullptr) found = &profile;
  }
  if (found != nullptr) return parse(found->text, fmt::format("{}.toml", found->name));
  if (name_or_file.find_first_of("./") != std::string::npos)
    if (const auto text = read_file(name_or_file)) return parse(*text, name_or_file);
  if (name_or_file.ends_with(".toml")) throw UserError(fmt::format("cannot read the device profile {}", name_or_file));
  throw UserError(fmt::format("there is no device profile \"{}\"; shipped ones: {}; or give the path of a .toml file",
                              name_or_file, fmt::join(device_profile_names(), ", ")));
}

}  // namespace ergotune

// Helpers shared by the backends: each lists the devices of its driver as entries, whose member `info` is a DeviceInfo.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"

namespace ergotune::device {

/// Returns the entry with this id among the devices that `find` returns now. Throws UserError if it is not present (any
/// more).
template <class Entry>
Entry entry_of(const std::string& id, std::vector<Entry> (*find)(std::string* note)) {
  std::string note;
  for (Entry& entry : find(&note))
    if (entry.info.id == id) return std::move(entry);
  throw UserError(fmt::format("there is no device \"{}\"{}", id, note.empty() ? "" : " (" + note + ")"));
}

template <class Entry>
std::vector<DeviceInfo> infos_of(std::vector<Entry> entries) {
  std::vector<DeviceInfo> list;
  for (Entry& entry : entries) list.push_back(std::move(entry.info));
  return list;
}

/// Formats 16 bytes as NVML does: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
std::string gpu_uuid(std::span<const unsigned char, 16> bytes);

}  // namespace ergotune::device

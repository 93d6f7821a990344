// What the files of backends share: a driver's devices as entries, each with its DeviceInfo in `info`.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"

namespace ergotune::device {

/// The entry with this id, of those that are found now. Throws UserError when it is not there (any more).
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

/// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" of 16 bytes, as NVML writes it.
std::string gpu_uuid(std::span<const unsigned char, 16> bytes);

}  // namespace ergotune::device

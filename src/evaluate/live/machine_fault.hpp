// Distinguishes faults of the machine (a full disk, a missing folder for temporary files, a lost device) from failures
// of configurations.
#pragma once

#include <string>

#include "device/device.hpp"
#include "ergotune/result.hpp"

namespace ergotune {

/// If a failed program's message reports a full disk, returns a sentence on what to do; else empty. `whose`: the owner
/// of the files, for the sentence.
std::string full_disk_message(const std::string& message, const char* whose = "the compiler");

/// Throws UserError with a remedy if a failure on `device` is caused by the machine: its message reports a full disk or
/// a lost device, or the folder to which the device's compiler (host, PoCL) writes is missing, not writable or full.
/// Usable measurements, wrong results and timeouts are not checked.
void throw_machine_fault(Status status, const std::string& message, const DeviceInfo& device);

}  // namespace ergotune

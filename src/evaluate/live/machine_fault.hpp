// What is the machine's fault is no configuration's result: a full disk, a missing folder for temporary
// files, a device that is lost.
#pragma once

#include <string>

#include "device/device.hpp"
#include "ergotune/result.hpp"

namespace ergotune {

/// A full disk that a failed program's words tell of, as a sentence that says what to do; empty when they do
/// not. `whose` files they were.
std::string full_disk_in(const std::string& message, const char* whose = "the compiler");

/// Looks for what keeps every kernel from being compiled or run on `device`: words of a full disk in a
/// failure, and for devices whose compilers write files (host, PoCL) a folder for them that is missing,
/// closed or full; for sensors a device that is lost. Asked only about failures (what is usable is a result anyway).
/// Throws UserError that says what to do.
void throw_if_machines_fault(Status status, const std::string& message, const DeviceInfo& device);

}  // namespace ergotune

// Registers the extensions of this build, which add observers and targets to the registries of the core.
#pragma once

namespace ergotune {

/// Registers the extensions once per process; called by the command, the Python module and tune(). CMake generates the
/// definition.
void register_extensions();

}  // namespace ergotune

// The extensions of this build add their observers and targets to the registries of the core.
#pragma once

namespace ergotune {

/// Registers them, once per process: called by the command, the Python module and tune(). CMake writes its definition.
void register_extensions();

}  // namespace ergotune

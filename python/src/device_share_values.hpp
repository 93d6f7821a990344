// A session's devices for Python.
#pragma once

#include "bindings.hpp"
#include "tune/session/session.hpp"

namespace ergotune::python {

/// Where several boards measured: which, how much, and how they compare. Dicts with board, id, name, lost, measured,
/// busy_seconds, idle_seconds, and factors by quantity.
py::list device_share_list(const SessionResult& result);

}  // namespace ergotune::python

// Bounds of the enumerations of controls, for protocols that serialise them (base/messages/serialise.hpp).
#pragma once

#include "power/controls/control.hpp"

namespace ergotune {

constexpr ControlQuantity last_value(ControlQuantity) { return ControlQuantity::power_limit_w; }
constexpr ControlStatus last_value(ControlStatus) { return ControlStatus::failed; }

}  // namespace ergotune

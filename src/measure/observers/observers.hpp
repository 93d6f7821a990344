// Observers that need no special hardware, offered through observer_registry.cpp.
#pragma once

#include <memory>
#include <string>

#include "ergotune/observer.hpp"

namespace ergotune {

/// Counts launches.
std::shared_ptr<Observer> make_launch_counter();
/// Measures the host time of isolated iterations, including launch and wait.
std::shared_ptr<Observer> make_host_timer(int passes);
/// Measures the core voltage under load of the GPU with this UUID; prolongs the stream until a value was read. If there
/// is no source of the voltage, the observer reports no quantity and stops trying.
std::shared_ptr<Observer> make_voltage_reader(std::string uuid);

}  // namespace ergotune

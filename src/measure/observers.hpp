// Observers without hardware of their own; observer_registry.cpp offers them.
#pragma once

#include <memory>

#include "ergotune/measure/observer.hpp"

namespace ergotune {

/// Counts the launches that it saw.
std::shared_ptr<Observer> make_launch_counter();
/// Host time of isolated rounds, launch and wait included.
std::shared_ptr<Observer> make_host_timer(int passes);

}  // namespace ergotune

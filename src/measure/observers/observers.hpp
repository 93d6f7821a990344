// Observers without hardware of their own; observer_registry.cpp offers them.
#pragma once

#include <memory>
#include <string>

#include "ergotune/observer.hpp"

namespace ergotune {

/// Counts the launches that it saw.
std::shared_ptr<Observer> make_launch_counter();
/// Host time of isolated rounds, launch and wait included.
std::shared_ptr<Observer> make_host_timer(int passes);
/// The core voltage under load, of the GPU with this UUID; it holds the stream until it has been read. Where no
/// source tells a voltage it gives none, and asks no more.
std::shared_ptr<Observer> make_voltage_reader(std::string uuid);

}  // namespace ergotune

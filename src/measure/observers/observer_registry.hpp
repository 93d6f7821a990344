// Registry of the observers that can be requested by name: purpose, options and requirements of each.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "measure/runner.hpp"

namespace ergotune {

struct ObserverSpec;

struct ObserverOption {
  enum class Type { boolean, integer, number, text };
  std::string name;
  Type type = Type::text;
  bool list = false;  ///< accepts several values
  std::string help;
  std::vector<Value> default_values;
};

struct ObserverDescription {
  std::string name;
  std::string summary;
  ObserverPhase phase = ObserverPhase::repetitions;
  std::vector<std::string> quantities;  ///< quantities that it always measures; options may add more
  std::vector<ObserverOption> options;
};

/// What an observer is created for. Everything must outlive the call.
struct ObserverContext {
  const DeviceInfo& device;
  const MeasureOptions& measure;
  /// Receives notes for the user, such as which sensor is used. May be null.
  std::vector<std::string>* notes = nullptr;
};

/// The values of all options of an observer by name, including defaults.
using ObserverOptions = std::map<std::string, std::vector<Value>>;

/// An observer that a problem file or --observe may request.
struct ObserverEntry {
  ObserverDescription description;
  std::function<std::shared_ptr<Observer>(const ObserverOptions&, const ObserverContext&)> make;
  /// Checks the names in the option "metrics"; null if the observer has no such option. Throws UserError.
  std::function<void(const std::vector<std::string>&)> check_metrics = {};
  /// True for quantities that the observer can measure although its description does not list them; null: none.
  std::function<bool(const std::string&)> measures = {};
};

/// Registers an observer; must be called before any other use of the registry.
void register_observer(ObserverEntry entry);
/// Returns the values of an option such as "sensors" or "metrics" as strings.
std::vector<std::string> strings_of(const ObserverOptions& options, const char* name);

/// Returns the quantities that a spec requests: those that its observer always measures, and those named in its
/// options.
std::vector<std::string> quantities_of(const ObserverSpec& spec);
/// Returns the name of the observer that measures a quantity; empty if there is none.
std::string observer_of(const std::string& quantity);

/// All observers, in the order in which help lists them.
std::vector<ObserverDescription> observers();
/// Creates an observer. Throws UserError, at the spec's place, for an unknown name or option, a value of the wrong
/// type, or an observer that cannot work on this machine (no sensor).
std::shared_ptr<Observer> make_observer(const ObserverSpec& spec, const ObserverContext& context);
/// Performs the checks of make_observer() that need no device, before anything runs.
void check_observers(const std::vector<ObserverSpec>& specs);
/// Parses "host_time" or "host_time:passes=5" (options are separated by commas; an option given twice is a list).
/// Throws UserError for other syntax. Names are not checked.
ObserverSpec parse_observer(const std::string& text);
/// Parses `text` and adds it to the list; it replaces an earlier request for the same observer. Throws UserError as
/// check_observers() does.
void ask_for_observer(std::vector<ObserverSpec>& observers, const std::string& text);

/// Counts launches.
std::shared_ptr<Observer> make_launch_counter();
/// Measures the host time of isolated iterations, including launch and wait.
std::shared_ptr<Observer> make_host_timer(int passes);
/// Measures the core voltage under load of the GPU with this UUID; prolongs the stream until a value was read. If there
/// is no source of the voltage, the observer reports no quantity and stops trying.
std::shared_ptr<Observer> make_voltage_reader(std::string uuid);

}  // namespace ergotune

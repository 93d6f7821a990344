// The observers that can be requested by name, declared once: what each is for, its options, and what it
// needs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "ergotune/problem.hpp"
#include "measure/runner.hpp"

namespace ergotune {

struct ObserverOption {
  enum class Type { boolean, integer, number, text };
  std::string name;
  Type type = Type::text;
  bool list = false;  ///< takes any number of values
  std::string help;
  std::vector<Value> default_values;
};

struct ObserverDescription {
  std::string name;
  std::string summary;
  ObserverPhase phase = ObserverPhase::repetitions;
  std::vector<std::string> quantities;  ///< that it gives; more where its options say so
  std::vector<ObserverOption> options;
};

/// What an observer is made for. All must live as long as the call.
struct ObserverContext {
  const DeviceInfo& device;
  const MeasureOptions& measure;
  /// Receives what a user should know: which sensor was taken.
  std::vector<std::string>* notes = nullptr;
};

/// The values of every option of an observer by name, defaults filled in.
using ObserverOptions = std::map<std::string, std::vector<Value>>;

/// An observer that a problem file or --observe may name.
struct ObserverEntry {
  ObserverDescription description;
  std::function<std::shared_ptr<Observer>(const ObserverOptions&, const ObserverContext&)> make;
  /// Checks the names in the option "metrics"; null where it has no such option. Throws UserError.
  std::function<void(const std::vector<std::string>&)> check_metrics = {};
  /// Whether it measures a quantity that its description does not list; null: none.
  std::function<bool(const std::string&)> measures = {};
};

/// Adds one to observers(); before any other use of the registry.
void register_observer(ObserverEntry entry);
/// The option "sensors", "metrics" ... as strings.
std::vector<std::string> strings_of(const ObserverOptions& options, const char* name);

/// The quantities that a spec asks for: what its observer gives, and those that its options name.
std::vector<std::string> quantities_of(const ObserverSpec& spec);
/// The observer that gives a quantity; empty where none does.
std::string observer_of(const std::string& quantity);

/// All of them, in the order of `ergotune`'s help.
std::vector<ObserverDescription> observers();
/// Throws UserError, at the spec's place, for an unknown name or option, a value of the wrong type, or what
/// the observer itself cannot do here (no sensor).
std::shared_ptr<Observer> make_observer(const ObserverSpec& spec, const ObserverContext& context);
/// The same complaints as far as they need no device, before anything runs.
void check_observers(const std::vector<ObserverSpec>& specs);
/// From "host_time" or "host_time:passes=5" (options separated by commas, one given twice is a list); throws
/// UserError for what has another form. Names are not looked up.
ObserverSpec parse_observer(const std::string& text);
/// Asks for one written like that; what was asked of the same observer before gives way. Throws what check_observers()
/// throws.
void ask_for_observer(std::vector<ObserverSpec>& observers, const std::string& text);

}  // namespace ergotune

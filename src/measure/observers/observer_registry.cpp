#include "measure/observers/observer_registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "measure/energy/energy.hpp"
#include "measure/observers/trace_observer.hpp"
#include "power/sensors/stored_calibration.hpp"
#include "problem/tables/quantity.hpp"
#include "problem/tables/setting_table.hpp"

namespace ergotune {

// Each is defined in the file of its observers.
void add_host_observers(std::vector<ObserverEntry>& list);
void add_voltage_reader(std::vector<ObserverEntry>& list);

namespace {

using Type = ObserverOption::Type;
using Options = ObserverOptions;

/// Returns the correction for the GPU of the first sensor. Throws UserError if its temperature coefficient is unknown.
EnergyOptions::TemperatureCorrection correction_to(double celsius, const EnergySources& sources) {
  const auto kept = kept_temperature_coefficient(sources.sensors.front()->info());
  if (!kept)
    throw UserError(
        "corrected_energy needs the temperature coefficient of this device's power; \"ergotune temperature FILE\" "
        "measures it, once per device and driver");
  return {celsius, kept->watts_per_degree, kept->standard_error};
}

std::shared_ptr<Observer> make_energy(const Options& options, const ObserverContext& context) {
  const std::vector<std::string> ids = strings_of(options, "sensors");
  const DeviceInfo& device = context.device;
  EnergySources sources = energy_sources(ids, device.name, device.uuid, device.pci_address, device.is_cpu);
  if (context.notes) {
    std::string ids;
    for (const auto& sensor : sources.sensors) ids += (ids.empty() ? "" : ", ") + sensor->info().id;
    const std::string name = sources.sensors.size() == 1 ? sources.sensors.front()->info().name : device.name;
    context.notes->push_back("energy by " + ids + " (" + name + ")");
  }
  EnergyOptions energy;
  energy.precision = context.measure.precision;
  if (const auto idle = calibrated_idle_power(sources.sensors.front()->info())) {
    energy.idle_power = idle->watts;
    energy.idle_power_error = idle->standard_error;
  }
  energy.idle_pause = options.at("idle").front().as_real();
  if (const double celsius = options.at("temperature").front().as_real(); celsius != 0)
    energy.correction = correction_to(celsius, sources);
  energy.budget = options.at("seconds").front().as_real();
  const double exactly = options.at("exactly").front().as_real();
  if (!(exactly >= 0))
    throw UserError(fmt::format("\"exactly\" of observer \"energy\" must be 0 or more, not {}", exactly));
  if (exactly > 0) {
    energy.budget = exactly;
    energy.whole_budget = true;
  }
  if (const double reference = context.measure.reference_seconds; reference > 0) {
    energy.budget = reference;
    energy.whole_budget = true;
    energy.settle_at_least = std::min(2.0, 0.25 * reference);
  }
  return std::make_shared<EnergyMeter>(std::move(sources.sensors), std::move(sources.monitor), energy);
}

/// Returns the quantities that need a sensor, and the time of the same launches.
std::vector<std::string> quantities_of_energy() {
  std::vector<std::string> names{"time"};
  for (const QuantityInfo& info : quantities())
    if (info.needs_sensor()) names.emplace_back(info.name);
  return names;
}

std::shared_ptr<Observer> make_trace(const Options& options, const ObserverContext& context) {
  const std::vector<std::string> ids = strings_of(options, "sensors");
  const DeviceInfo& device = context.device;
  TraceOptions trace;
  trace.before = options.at("before").front().as_real();
  trace.seconds = options.at("seconds").front().as_real();
  trace.after = options.at("after").front().as_real();
  trace.file = options.at("file").front().as_string();
  trace.folder = options.at("folder").front().as_string();
  return make_trace_observer(energy_sources(ids, device.name, device.uuid, device.pci_address, device.is_cpu), trace);
}

std::vector<ObserverEntry> core_observers() {
  std::vector<ObserverEntry> list{
      {{"energy",
        "Energy and power per round, by the device's own sensors or those named",
        ObserverPhase::stream,
        quantities_of_energy(),
        {{"sensors", Type::text, true, "Sensors by id, as \"ergotune devices\" lists them; none: the device's own", {}},
         {"seconds", Type::number, false, "s of launches per configuration at most; 0: what the sensor needs", {0.0}},
         {"exactly",
          Type::number,
          false,
          "s of launches per configuration, whatever the precision, as other tuners measure; 0: until it is precise",
          {0.0}},
         {"idle",
          Type::number,
          false,
          "s of a pause before the first configuration in which idle power is measured, where no calibration knows it",
          {0.0}},
         {"temperature",
          Type::number,
          false,
          "°C to which corrected_energy refers, by the coefficient that \"ergotune temperature\" found; 0: none",
          {0.0}}}},
       make_energy},
      {{"trace",
        "Power, clocks, temperature and throttle reasons over time, around and during the launches, into a CSV file "
        "per configuration",
        ObserverPhase::stream,
        {"settling_time"},
        {{"sensors", Type::text, true, "Sensors by id; none: the device's own", {}},
         {"folder", Type::text, false, "Folder of the files", {"traces"}},
         {"file", Type::text, false, "One file instead, for a single configuration", {""}},
         {"before", Type::number, false, "s recorded before the launches", {1.0}},
         {"seconds", Type::number, false, "s of launches (3 at most, longer with `ergotune trace`)", {2.0}},
         {"after", Type::number, false, "s recorded after them", {1.0}}}},
       make_trace},
  };
  add_host_observers(list);
  add_voltage_reader(list);
  return list;
}

std::vector<ObserverEntry>& entries() {
  static std::vector<ObserverEntry> all = core_observers();
  return all;
}

std::string expected_text(const ObserverOption& option) {
  const char* one = option.type == Type::boolean   ? "true or false"
                    : option.type == Type::integer ? "an integer"
                    : option.type == Type::number  ? "a number"
                                                   : "a string";
  return option.list ? fmt::format("{}, or a list of such", one) : one;
}

bool fits(const Value& value, Type type) {
  switch (type) {
    case Type::boolean:
      return value.is_bool();
    case Type::integer:
      return value.is_integer();
    case Type::number:
      return value.is_number() && !value.is_bool();
    case Type::text:
      break;
  }
  return value.is_string();
}

const ObserverEntry& entry_of(const ObserverSpec& spec) {
  std::vector<std::string> names;
  for (const ObserverEntry& entry : entries()) {
    if (entry.description.name == spec.name) return entry;
    names.push_back(entry.description.name);
  }
  throw UserError(fmt::format("unknown observer \"{}\"{}", spec.name, suggestion(spec.name, names)), spec.place);
}

/// Checks the given options and adds defaults.
Options options_of(const ObserverSpec& spec, const ObserverDescription& description) {
  Options options;
  std::vector<std::string> names;
  for (const ObserverOption& option : description.options) {
    options[option.name] = option.default_values;
    names.push_back(option.name);
  }
  for (const auto& [name, values] : spec.options) {
    const auto option = std::ranges::find_if(description.options,
                                             [&, wanted = name](const ObserverOption& o) { return o.name == wanted; });
    if (option == description.options.end())
      throw UserError(fmt::format("observer \"{}\" has no option \"{}\"{}", spec.name, name,
                                  names.empty() ? "; it has none" : suggestion(name, names)),
                      spec.place);
    const bool right = (option->list || values.size() == 1) &&
                       std::ranges::all_of(values, [&](const Value& value) { return fits(value, option->type); });
    if (!right)
      throw UserError(fmt::format("\"{}\" of observer \"{}\" must be {}", name, spec.name, expected_text(*option)),
                      spec.place);
    options[name] = values;
  }
  return options;
}

}  // namespace

void register_observer(ObserverEntry entry) { entries().push_back(std::move(entry)); }

std::vector<std::string> strings_of(const ObserverOptions& options, const char* name) {
  std::vector<std::string> list;
  for (const Value& value : options.at(name)) list.push_back(value.as_string());
  return list;
}

std::vector<ObserverDescription> observers() {
  std::vector<ObserverDescription> list;
  for (const ObserverEntry& entry : entries()) list.push_back(entry.description);
  return list;
}

std::shared_ptr<Observer> make_observer(const ObserverSpec& spec, const ObserverContext& context) {
  const ObserverEntry& entry = entry_of(spec);
  const Options options = options_of(spec, entry.description);
  try {
    return entry.make(options, context);
  } catch (const UserError& error) {
    if (!error.place().file.empty()) throw;
    throw UserError(error.message(), spec.place);
  }
}

void check_observers(const std::vector<ObserverSpec>& specs) {
  for (const ObserverSpec& spec : specs) {
    const ObserverEntry& entry = entry_of(spec);
    const Options options = options_of(spec, entry.description);
    if (!entry.check_metrics) continue;
    try {
      entry.check_metrics(strings_of(options, "metrics"));
    } catch (const UserError& error) {
      throw UserError(error.message(), spec.place);
    }
  }
}

std::vector<std::string> quantities_of(const ObserverSpec& spec) {
  const ObserverEntry& entry = entry_of(spec);
  const Options options = options_of(spec, entry.description);
  // Explicit metrics replace the default ones.
  if (const auto named = options.find("metrics"); named != options.end() && !named->second.empty())
    return strings_of(options, "metrics");
  return entry.description.quantities;
}

std::string observer_of(const std::string& quantity) {
  for (const ObserverEntry& entry : entries()) {
    const auto& given = entry.description.quantities;
    if (std::ranges::find(given, quantity) != given.end()) return entry.description.name;
    if (entry.measures && entry.measures(quantity)) return entry.description.name;
  }
  return {};
}

ObserverSpec parse_observer(const std::string& text) {
  ObserverSpec spec;
  const std::size_t colon = text.find(':');
  spec.name = text.substr(0, colon);
  for (const std::string& option : colon == text.npos ? std::vector<std::string>() : split(text.substr(colon + 1))) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("an observer is NAME or NAME:OPTION=VALUE,..., not \"{}\"", text));
    spec.options[option.substr(0, equals)].push_back(parse_value(option.substr(equals + 1)));
  }
  if (spec.name.empty()) throw UserError(fmt::format("an observer is NAME or NAME:OPTION=VALUE,..., not \"{}\"", text));
  return spec;
}

void ask_for_observer(std::vector<ObserverSpec>& observers, const std::string& text) {
  ObserverSpec spec = parse_observer(text);
  check_observers({spec});
  std::erase_if(observers, [&](const ObserverSpec& other) { return other.name == spec.name; });
  observers.push_back(std::move(spec));
}

}  // namespace ergotune

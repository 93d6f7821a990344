// ergotune devices: lists devices that can run kernels, and the sensors and controls of each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/process/process.hpp"
#include "cli/command.hpp"
#include "cli/companions.hpp"
#include "cli/output/table.hpp"
#include "device/device.hpp"
#include "device/driver_trial.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control.hpp"
#include "power/nvml_library.hpp"
#include "power/sensors/sensor.hpp"
#include "report/result_document.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DeviceLine {
  DeviceInfo info;
  std::vector<std::string> sensors, controls;
  std::vector<std::string> missing;  ///< sensors looked for, controls and why not
  std::vector<std::string> sharing;  ///< what restricts or disturbs measurements because the device is shared
  std::string refused;               ///< its control, where that may not be used
};

DeviceLine look_at(const DeviceInfo& info) {
  DeviceLine line{info, {}, {}, {}, nvml_sharing_notes(info.uuid, info.pci_address), {}};
  for (const auto& sensor : sensors_for_device(info.uuid, info.pci_address, info.is_cpu, &line.missing))
    line.sensors.push_back(sensor->info().id);
  std::string why_not;
  if (const auto control = control_for_device(info.uuid, info.pci_address, info.is_cpu, &why_not))
    line.controls.push_back(control->id());
  if (!why_not.empty()) line.missing.push_back(why_not);
  line.refused = why_not.substr(0, why_not.find(": "));  // "nvml:0: clocks and limits stay as they are: ..."
  return line;
}

Json to_json(const DeviceLine& line) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json device;
  device["id"] = line.info.id;
  device["name"] = line.info.name;
  device["uuid"] = text_or_null(line.info.uuid);
  device["backend"] = line.info.backend;
  device["pci_address"] = text_or_null(line.info.pci_address);
  device["driver_version"] = text_or_null(line.info.driver_version);
  device["is_cpu"] = line.info.is_cpu;
  device["sensors"] = line.sensors;
  device["controls"] = line.controls;
  device["properties"] = Json::object();
  for (const auto& [name, value] : line.info.properties) device["properties"][name] = ergotune::to_json(value);
  device["missing"] = line.missing;
  device["notes"] = line.sharing;
  return device;
}

/// Sensors and controls of hardware that is no device here: a GPU that only the driver's management library reports, or
/// a node's meter. They are used by their ids, with --sensor or --control.
struct UnattachedSensors {
  std::vector<SensorInfo> sensors;
  std::vector<std::string> controls;
};

UnattachedSensors others_than(const std::vector<DeviceLine>& lines) {
  const auto named = [&](const std::string& id, const std::vector<std::string> DeviceLine::*list) {
    return std::ranges::any_of(lines, [&](const DeviceLine& line) {
      return std::find((line.*list).begin(), (line.*list).end(), id) != (line.*list).end();
    });
  };
  UnattachedSensors others;
  for (SensorInfo& sensor : list_sensors())
    if (!named(sensor.id, &DeviceLine::sensors)) others.sensors.push_back(std::move(sensor));
  if (controls_forbidden()) return others;
  for (std::string& control : list_controls())
    if (!named(control, &DeviceLine::controls) &&
        std::ranges::none_of(lines, [&](const DeviceLine& line) { return line.refused == control; }))
      others.controls.push_back(std::move(control));
  return others;
}

Json to_json(const SensorInfo& sensor) {
  return {
      {"id", sensor.id}, {"name", sensor.name}, {"kind", to_string(sensor.kind)}, {"calibrated", sensor.calibrated}};
}

void print_others(const UnattachedSensors& others) {
  if (!others.sensors.empty()) fmt::print("\nsensors of none of these (--sensor ID):\n");
  for (const SensorInfo& sensor : others.sensors) fmt::print("  {}  {}\n", sensor.id, sensor.name);
  if (!others.controls.empty()) fmt::print("\ncontrols of none of these (--control ID):\n");
  for (const std::string& control : others.controls) fmt::print("  {}\n", control);
}

void print_table(const std::vector<DeviceLine>& lines) {
  Table table({"device", "name", "sensors", "controls"});
  for (std::size_t column = 0; column < 4; ++column) table.align_left(column);
  const auto joined = [](const std::vector<std::string>& list) {
    return list.empty() ? "-" : fmt::format("{}", fmt::join(list, ", "));
  };
  for (const auto& line : lines) table.add({line.info.id, line.info.name, joined(line.sensors), joined(line.controls)});
  fmt::print("{}", table.to_string(0, std::string::npos));
}

void print_details(const DeviceLine& line) {
  fmt::print("\n{} ({})\n", line.info.id, line.info.name);
  if (!line.info.uuid.empty()) fmt::print("  uuid: {}\n", line.info.uuid);
  if (!line.info.pci_address.empty()) fmt::print("  pci address: {}\n", line.info.pci_address);
  if (!line.info.driver_version.empty()) fmt::print("  driver: {}\n", line.info.driver_version);
  for (const auto& [property, value] : line.info.properties) fmt::print("  {} = {}\n", property, value.to_string());
  for (const auto& message : line.missing) fmt::print("  {}\n", message);
}

Json document_of(const std::vector<DeviceLine>& lines, const UnattachedSensors& others,
                 const std::vector<std::string>& notes) {
  Json document;
  document["devices"] = Json::array();
  for (const auto& line : lines) document["devices"].push_back(to_json(line));
  document["other_sensors"] = Json::array();
  for (const SensorInfo& sensor : others.sensors) document["other_sensors"].push_back(to_json(sensor));
  document["other_controls"] = others.controls;
  document["notes"] = notes;
  return document;
}

std::vector<DeviceLine> all_devices(std::vector<std::string>& notes) {
  std::vector<DeviceLine> lines;
  device::leave_out_crashing_drivers(own_program());
  for (const auto& info : list_devices(&notes)) lines.push_back(look_at(info));
  return lines;
}

struct ListOptions : NodeOptions {
  double seconds = 60;
};

NodeListing& node_listing() {
  static NodeListing listing = nullptr;
  return listing;
}

/// Every node's devices, with the node's name before their ids.
void list_cluster(const ListOptions& options, bool json) {
  if (!node_listing())
    throw UserError("this build of ergotune knows no nodes: its extension \"cluster\" was switched off");
  Json document{{"nodes", node_listing()(options.commands, options.nodes, options.seconds)}};
  std::vector<DeviceLine> lines;
  std::vector<std::string> silent;
  for (const Json& node : document["nodes"]) {
    if (node.contains("error")) {
      silent.push_back(
          fmt::format("{}: {}", node.at("worker").get<std::string>(), node.at("error").get<std::string>()));
      continue;
    }
    for (const Json& device : node.at("devices")) {
      DeviceLine line;
      line.info.id = fmt::format("{}/{}", node.at("node").get<std::string>(), device.at("id").get<std::string>());
      line.info.name = device.at("name").get<std::string>();
      line.sensors = device.at("sensors").get<std::vector<std::string>>();
      line.controls = device.at("controls").get<std::vector<std::string>>();
      lines.push_back(std::move(line));
    }
  }
  json ? print_json(document) : print_table(lines);
  for (const std::string& message : silent) fmt::print(stderr, "no answer: {}\n", message);
  if (!silent.empty()) throw Exit{kNoAnswer};
}

}  // namespace

Json devices_document() {
  std::vector<std::string> notes;
  const std::vector<DeviceLine> lines = all_devices(notes);
  return document_of(lines, others_than(lines), notes);
}

void set_node_listing(NodeListing listing) { node_listing() = listing; }

void add_devices_command(Verb app) {
  struct Options : ListOptions {
    bool json = false, details = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb = app.add_verb("devices", "List what can run kernels here, with its sensors and controls");
  add_json_option(verb, options->json);
  verb.add_flag("--details", options->details,
                "Also print each device's properties (as restrictions see them) and what is missing");
  add_node_options(verb, *options, "Ask");
  verb.add_option("--wait", options->seconds, "With nodes: give up after so many seconds (60)");
  verb.footer(
      "Examples:\n  ergotune devices --details\n  ergotune devices --json\n  ergotune devices --node-command 'ssh gpu3 "
      "{}'\n"
      "In Python: ergotune.devices()");
  verb.callback([options] {
    if (options->any()) return list_cluster(*options, options->json);
    std::vector<std::string> notes;
    const std::vector<DeviceLine> lines = all_devices(notes);
    const UnattachedSensors others = others_than(lines);
    if (options->json) return print_json(document_of(lines, others, notes));
    print_table(lines);
    print_others(others);
    if (options->details)
      for (const auto& line : lines) print_details(line);
    for (const auto& line : lines)
      for (const auto& note : line.sharing) fmt::print(stderr, "note: {}: {}\n", line.info.id, note);
    for (const auto& note : notes) fmt::print(stderr, "unavailable: {}\n", note);
  });
}

}  // namespace ergotune::cli

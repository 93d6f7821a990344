// ergotune calibrate: what a sensor's readings mean on the board at hand.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "measure/calibration/calibration.hpp"

namespace ergotune::cli {
namespace {

struct CalibrateArguments {
  std::string sensor, device, meter;
  bool json = false, dry = false;
};

/// The device that heats the sensor's board: the named one, else the one with its UUID or PCI address.
std::unique_ptr<Device> device_for(const CalibrateArguments& arguments, const SensorInfo& sensor) {
  if (!arguments.device.empty()) return open_device(arguments.device);
  for (const auto& info : list_devices()) {
    const bool same_uuid = !sensor.uuid.empty() && info.uuid == sensor.uuid;
    const bool same_pci = !sensor.pci_address.empty() && info.pci_address == sensor.pci_address;
    if (same_uuid || same_pci) return open_device(info.id);
  }
  throw UserError(
      fmt::format("calibrate: no device has the UUID or PCI address of sensor {}; name the device whose load "
                  "it sees with --device "
                  "(\"ergotune devices\" lists them)",
                  sensor.id));
}

std::string in_words(const Calibrated& c, double scale, const char* unit) {
  return fmt::format("{:.4g} {} ({:.4g} to {:.4g})", c.value * scale, unit, c.low * scale, c.high * scale);
}

void print_text(const Calibration& c, const std::filesystem::path& file) {
  fmt::print("{} ({})\n", c.sensor.id, c.sensor.name);
  fmt::print("  kind           {}, explains {:.1f} % of the readings (the other shape {:.1f} %)\n",
             to_string(c.sensor.kind), 100 * c.explained, 100 * c.explained_other);
  fmt::print("  update period  {}\n", in_words(c.update_period, 1e3, "ms"));
  fmt::print("  window         {}\n", in_words(c.window, 1e3, "ms"));
  fmt::print("  lag            {}\n", in_words(c.lag, 1e3, "ms"));
  fmt::print("  read cost      {}\n", in_words(c.read_cost, 1e6, "us"));
  fmt::print("  idle power     {}\n", in_words(c.idle_power, 1, "W"));
  if (c.counter_step) fmt::print("  counter step   {:.4g} mJ\n", *c.counter_step * 1e3);
  if (c.counter_loss) fmt::print("  missed at the start of a load  {}\n", in_words(*c.counter_loss, 1, "J"));
  if (c.meter)
    fmt::print("  against {}: gain {}, offset {}\n", c.meter->sensor, in_words(c.meter->gain, 1, ""),
               in_words(c.meter->offset, 1, "W"));
  for (const auto& note : c.notes) fmt::print("  note: {}\n", note);
  fmt::print("Measurements shorter than {:.2f} s cannot be trusted with this sensor.\n", c.shortest_measurement);
  if (!file.empty()) fmt::print("Kept for this device and driver in {}\n", file.string());
}

void run(const CalibrateArguments& arguments) {
  auto sensor = open_sensor(arguments.sensor);
  auto meter = arguments.meter.empty() ? nullptr : open_sensor(arguments.meter);
  // What an earlier calibration said must not colour this one.
  SensorInfo info = sensor->info();
  info.gain = 1;
  info.offset = info.gain_error = info.level = info.level_error = 0;
  info.lag = 0;
  sensor->set_info(info);
  const auto device = device_for(arguments, info);
  fmt::print(stderr, "calibrating {} with a load on {} ({}), about {} s\n", info.id, device->info().id,
             device->info().name, arguments.meter.empty() ? 40 : 60);
  const auto rig = make_device_rig(*device, std::move(sensor), std::move(meter));
  const Calibration found = calibrate(*rig);
  const auto file = arguments.dry ? std::filesystem::path() : store_calibration(found);
  if (arguments.json)
    print_json(nlohmann::ordered_json::parse(to_json(found)));
  else
    print_text(found, file);
}

}  // namespace

void add_calibrate_command(Verb app) {
  auto arguments = std::make_shared<CalibrateArguments>();
  Verb verb =
      app.add_verb("calibrate", "Measure the properties of a sensor on this device: period, window, delay, scale");
  verb.add_option("--sensor", arguments->sensor, "The sensor (\"ergotune devices\" lists them)").required();
  verb.add_option("--device", arguments->device, "The device whose load it sees (default: by UUID or PCI address)");
  verb.add_option("--meter", arguments->meter,
                  "A better meter to take gain and offset from, e.g. powersensor3:/dev/ttyACM0");
  verb.add_flag("--dry-run", arguments->dry, "Print, but do not keep");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Drives square waves and random loads on the device and fits update period, averaging window and lag. "
      "The result\n"
      "is kept for this device and driver, and used whenever the sensor is opened.\n"
      "Example: ergotune calibrate --sensor nvml:0/energy");
  verb.callback([arguments] { run(*arguments); });
}

}  // namespace ergotune::cli

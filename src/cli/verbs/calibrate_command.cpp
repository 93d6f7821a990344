// ergotune calibrate: determines how a sensor of this GPU averages, lags and updates.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "measure/calibration/calibration.hpp"

namespace ergotune::cli {
namespace {

struct CalibrateArguments {
  std::string sensor, device, meter;
  bool json = false, dry = false;
};

std::string as_text(const Calibrated& c, double scale, const char* unit) {
  return fmt::format("{:.4g} {} ({:.4g} to {:.4g})", c.value * scale, unit, c.low * scale, c.high * scale);
}

void print_text(const Calibration& c, const std::filesystem::path& file) {
  fmt::print("{} ({})\n", c.sensor.id, c.sensor.name);
  fmt::print("  kind           {}, explains {:.1f} % of the readings (the other shape {:.1f} %)\n",
             to_string(c.sensor.kind), 100 * c.explained, 100 * c.explained_other);
  fmt::print("  update period  {}\n", as_text(c.update_period, 1e3, "ms"));
  fmt::print("  window         {}\n", as_text(c.window, 1e3, "ms"));
  fmt::print("  lag            {}\n", as_text(c.lag, 1e3, "ms"));
  fmt::print("  read cost      {}\n", as_text(c.read_cost, 1e6, "us"));
  fmt::print("  idle power     {}\n", as_text(c.idle_power, 1, "W"));
  if (c.counter_step) fmt::print("  counter step   {:.4g} mJ\n", *c.counter_step * 1e3);
  if (c.counter_loss) fmt::print("  missed at the start of a load  {}\n", as_text(*c.counter_loss, 1, "J"));
  if (c.meter)
    fmt::print("  against {}: gain {}, offset {}\n", c.meter->sensor, as_text(c.meter->gain, 1, ""),
               as_text(c.meter->offset, 1, "W"));
  for (const auto& note : c.notes) fmt::print("  note: {}\n", note);
  fmt::print("Measurements shorter than {:.2f} s cannot be trusted with this sensor.\n", c.shortest_measurement);
  if (!file.empty()) fmt::print("Kept for this device and driver in {}\n", file.string());
}

void run(const CalibrateArguments& arguments) {
  const Calibration found = calibrate_sensor(arguments.sensor, arguments.device, arguments.meter,
                                             [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
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
      "Drives square waves and random loads on the device and fits update period, averaging window and lag. The "
      "result\n"
      "is kept for this device and driver, and used whenever the sensor is opened.\n"
      "Example: ergotune calibrate --sensor nvml:0/energy\n"
      "In Python: ergotune.calibrate(\"nvml:0/energy\")");
  verb.callback([arguments] { run(*arguments); });
}

}  // namespace ergotune::cli

// The file that stores a GPU's power-frequency model, beside the GPU's calibration.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/stored_calibration.hpp"
#include "tune/plans/device_model.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

/// s. GPUs age and are moved; an older fit is still used, with a note that it is old.
constexpr double kOld = 180 * 86400.0;

Json to_json(const Estimate& e) { return {{"value", e.value}, {"low", e.low}, {"high", e.high}}; }

Json to_json(const PowerSample& s) {
  Json one{{"clock_mhz", s.clock_mhz}, {"power_w", s.power_w}, {"power_error_w", s.power_error_w}};
  if (s.voltage_v) one["voltage_v"] = *s.voltage_v;
  if (s.memory_clock_mhz) one["memory_clock_mhz"] = *s.memory_clock_mhz;
  if (s.temperature_c) one["temperature_c"] = *s.temperature_c;
  return one;
}

PowerSample sample_from(const Json& one) {
  PowerSample s;
  s.clock_mhz = one.at("clock_mhz").get<double>();
  s.power_w = one.at("power_w").get<double>();
  s.power_error_w = one.value("power_error_w", 0.0);
  const auto optional = [&](const char* name) {
    return one.contains(name) ? std::optional(one.at(name).get<double>()) : std::nullopt;
  };
  s.voltage_v = optional("voltage_v");
  s.memory_clock_mhz = optional("memory_clock_mhz");
  s.temperature_c = optional("temperature_c");
  return s;
}

Json document_of(const DeviceModel& m) {
  Json document{{"board", m.of.gpu},
                {"driver", m.of.driver},
                {"device", m.sampling.device},
                {"source", m.sampling.source},
                {"made_at", m.made_at},
                {"when", iso_time(m.made_at)},
                {"provenance", to_string(m.sampling.provenance)},
                {"low_mhz", m.sampling.low_mhz},
                {"high_mhz", m.sampling.high_mhz},
                {"supported_mhz", m.sampling.supported_mhz}};
  // For readers and other tools: loading recomputes the fit from the samples.
  if (m.model.usable) {
    document["fit"] = {{"ridge_mhz", m.model.found ? to_json(m.model.ridge_mhz) : Json(nullptr)},
                       {"optimal_clock_mhz", to_json(m.model.optimal_clock_mhz)},
                       {"idle_w", to_json(m.model.idle_w)},
                       {"dynamic_w_per_mhz", to_json(m.model.dynamic_w_per_mhz)},
                       {"voltage_slope_per_mhz", to_json(m.model.voltage_slope_per_mhz)},
                       {"relative_deviation", m.model.relative_deviation},
                       {"voltage_measured", m.model.voltage_measured}};
  }
  for (const char* list : {"samples", "throttled"}) document[list] = Json::array();
  for (const PowerSample& s : m.sampling.samples) document["samples"].push_back(to_json(s));
  for (const PowerSample& s : m.sampling.throttled) document["throttled"].push_back(to_json(s));
  return document;
}

DeviceModel model_from(const Json& document) {
  DeviceModel m;
  m.of = {document.at("board").get<std::string>(), document.at("driver").get<std::string>()};
  m.made_at = document.at("made_at").get<double>();
  m.sampling.source = document.value("source", "");
  m.sampling.device = document.value("device", "");
  m.sampling.provenance = Provenance::measured;
  m.sampling.low_mhz = document.at("low_mhz").get<double>();
  m.sampling.high_mhz = document.at("high_mhz").get<double>();
  m.sampling.supported_mhz = document.at("supported_mhz").get<std::vector<double>>();
  for (const Json& one : document.at("samples")) m.sampling.samples.push_back(sample_from(one));
  for (const Json& one : document.at("throttled")) m.sampling.throttled.push_back(sample_from(one));
  m.sampling.time_s.assign(m.sampling.samples.size(), std::nan(""));
  m.model = fit_samples(m.sampling);
  return m;
}

bool same_clocks(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return std::abs(x - y) < 0.5; });
}

}  // namespace

std::filesystem::path device_model_file(const std::string& gpu) {
  const std::filesystem::path folder = calibration_folder();
  if (folder.empty()) return {};
  std::string name = gpu;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  return folder / (name + ".model.json");
}

std::filesystem::path store_device_model(const DeviceModel& model) {
  const std::filesystem::path file = device_model_file(model.of.gpu);
  if (file.empty()) throw Error("nowhere to keep the model: HOME is not set (or give ERGOTUNE_DATA_DIR)");
  std::error_code failure;
  std::filesystem::create_directories(file.parent_path(), failure);
  if (const int code = write_file(file, json_text(document_of(model), 2) + "\n"); code != 0)
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(code)));
  return file;
}

StoredDeviceModel load_device_model(const ModelledDevice& of, const std::vector<double>& supported_mhz) {
  StoredDeviceModel out;
  const std::filesystem::path file = device_model_file(of.gpu);
  const auto text = file.empty() ? std::nullopt : read_file(file);
  if (!text) {
    out.note = "there is no power-frequency model of this device yet";
    return out;
  }
  DeviceModel model;
  try {
    model = model_from(parse_json<Json>(*text));
  } catch (const nlohmann::json::exception&) {
    out.note = fmt::format("the model in {} cannot be read and is made anew", file.string());
    return out;
  }
  if (model.of.driver != of.driver) {
    out.note = fmt::format("the model of this device is stale: it was fitted under driver {}, this is {}",
                           model.of.driver, of.driver.empty() ? "unknown" : of.driver);
    return out;
  }
  if (!supported_mhz.empty() && !same_clocks(model.sampling.supported_mhz, supported_mhz)) {
    out.note = "the model of this device is stale: its clocks are not those of the fit any more";
    return out;
  }
  if (const double age = wall_seconds() - model.made_at; age > kOld)
    out.note = fmt::format("the model of this device is {:.0f} days old; \"ergotune model --no-resume\" fits it anew",
                           age / 86400);
  out.model = std::move(model);
  return out;
}

}  // namespace ergotune

#include "capture/verbs/tuned_problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json_text.hpp"
#include "base/statistics.hpp"
#include "capture/capture_folder.hpp"
#include "capture/verbs/watched_program.hpp"
#include "device/backend.hpp"
#include "device/entries.hpp"
#include "device/opencl/opencl_program.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/configure.hpp"
#include "kernel/wisdom_key.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune::cli {
namespace {

namespace fs = std::filesystem;

std::array<std::uint64_t, 3> global_of(const LaunchGeometry& geometry) {
  std::array<std::uint64_t, 3> global{};
  for (std::size_t d = 0; d < 3; ++d) global[d] = std::uint64_t{geometry.grid[d]} * geometry.block[d];
  return global;
}

/// The problem's constants on a device, with this launch's sizes in place of the captured ones.
Constants constants_of(const Problem& problem, const DeviceInfo& device, const RequestedLaunch& requested) {
  Constants constants = problem.constants_for(device.name, device.properties);
  for (std::size_t d = 0; d < requested.dimensions; ++d) {
    const std::string name = fmt::format("GLOBAL_SIZE_{}", "XYZ"[d]);
    for (auto& [known, value] : constants)
      if (known == name || (known.starts_with("ERGOTUNE_") && known.ends_with(name)))
        value = Value(static_cast<std::int64_t>(requested.global[d]));
  }
  return constants;
}

LaunchGeometry geometry_of(const Problem& problem, const Constants& constants, const Configuration& configuration) {
  const ConfigurationScope names(problem.parameters, configuration, constants, problem.kernel().name);
  return make_geometry(problem.kernel().launch, names.scope());
}

/// "9=50 11=2": the numbers of a function's attributes, and their values.
std::string attributes_text(const std::map<int, int>& attributes) {
  std::string text;
  for (const auto& [attribute, value] : attributes) text += fmt::format("{}={} ", attribute, value);
  return text;
}

/// The problem with its defaults is the program's own launch; what is not the same launch is none that was tuned.
/// Empty, or what differs.
std::string difference(const RequestedLaunch& requested, const LaunchGeometry& own) {
  if (global_of(own) != requested.global) return "its global size does not follow from the problem file's launch";
  for (std::size_t d = 0; d < 3; ++d)
    if (requested.block[d] != 0 && requested.block[d] != own.block[d])
      return "its work-group differs from the captured one";
  if (own.shared_memory_bytes != requested.shared_bytes) return "its shared memory differs from the captured one";
  return {};
}

/// Whether the record's gain over the program's own configuration is shown to be 1 % at least, or unknown. A smaller
/// one can be less than what another use of shared memory costs the other kernels of the program.
bool is_worthwhile(const WisdomRecord& record) {
  constexpr double kLeastGain = 1.01;
  const auto gain = record.quantities.find(kGainOverDefault);
  return gain == record.quantities.end() ||
         gain->second.value - half_width_95(gain->second.standard_error, 0) > kLeastGain;
}

}  // namespace

TunedProblems::TunedProblems(const fs::path& folder, const std::vector<std::string>& others) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed))
    throw UserError("this is not a folder of captures and wisdom", {folder.string(), 0, 0});
  add(folder, folder);
  std::vector<fs::path> below;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.is_directory(failed)) below.push_back(entry.path());
  std::ranges::sort(below);
  for (const fs::path& one : below) add(one, folder);
  for (const std::string& other : others) {
    const std::size_t before = tuned_.size();
    add(fs::is_directory(other, failed) ? fs::path(other) : folder_of(other), folder);
    if (tuned_.size() == before)
      throw UserError("there is no capture: problem.toml with capture.json beside it", {other, 0, 0});
  }
  if (tuned_.empty())
    throw UserError(
        "there is no capture in it: problem.toml with capture.json beside it, as \"ergotune capture\" leaves them "
        "(--problem names one that is elsewhere)",
        {folder.string(), 0, 0});
}

void TunedProblems::add(const fs::path& folder, const fs::path& wisdom) {
  const auto text = read_file(folder / kCaptureRecord);
  std::error_code failed;
  if (!text || !fs::exists(folder / "problem.toml", failed)) return;
  const auto record = parse_json<nlohmann::json>(*text, false);
  const auto field = [&](const char* name) {
    return record.is_object() && record.contains(name) && record[name].is_string() ? record[name].get<std::string>()
                                                                                   : std::string();
  };
  Tuned tuned{load_problem(folder), field("kernel"), field("source_hash"), field("options"), {}};
  if (tuned.kernel.empty() || tuned.source_hash.empty())
    throw UserError("this record of a capture is damaged; capture the kernel again",
                    {(folder / kCaptureRecord).string(), 0, 0});
  const std::string name = wisdom_name(tuned.problem, tuned.problem.kernel());
  auto known = read_wisdom(wisdom_file(wisdom, name));
  if (!known) known = read_wisdom(wisdom_file(folder, name));
  if (known) {
    notes_.insert(notes_.end(), known->warnings.begin(), known->warnings.end());
    tuned.records = std::move(known->records);
  }
  if (tuned.records.empty())
    notes_.push_back(fmt::format("there is no wisdom of {} in {}: \"ergotune tune {} --wisdom {}\" makes it", name,
                                 wisdom.string(), folder.string(), wisdom.string()));
  tuned_.push_back(std::move(tuned));
}

const DeviceInfo* TunedProblems::device_named(const std::string& backend, const std::string& name) {
  if (!devices_.contains(backend)) devices_[backend] = device::backend_named(backend).list(nullptr);
  for (const DeviceInfo& device : devices_[backend])
    if (device.name == name) return &device;
  return nullptr;
}

void TunedProblems::compile(const CompileJob& job, const DeviceInfo& device, ReplacementLaunch& given) {
  given.function = job.function;
  if (device.backend == "opencl") {
    const opencl::PortableProgram program = opencl::program_of(job);
    given.source = program.source;
    given.options = program.options;
    for (const std::string& include : program.include_folders) given.options += " -I" + include;
  } else if (is_compiled_code(job.source)) {
    given.source = job.source;
    std::vector<std::string> options = job.options;
    given.options = attributes_text(device::take_function_attributes(options));
  } else {
    auto& compiler = compilers_[device.id];
    if (!compiler)
      compiler = std::make_unique<CachedCompiler>(device::backend_named(device.backend).open_compiler(device.id),
                                                  CompileCache::default_folder());
    const Binary binary = compiler->compile(job).binary;
    const device::PackedCode packed = device::PackedCode::unpack(binary.bytes);
    given.source = packed.code;
    given.options = attributes_text(packed.attributes);
    given.function = binary.entry;
  }
}

ReplacementLaunch TunedProblems::choose(const Tuned& tuned, const RequestedLaunch& requested) {
  ReplacementLaunch given;
  const DeviceInfo* device = device_named(requested.interface, requested.device);
  if (!device) {
    given.description = fmt::format("the device {} is not known here", requested.device);
    return given;
  }
  const Problem& problem = tuned.problem;
  const Constants constants = constants_of(problem, *device, requested);
  const Configuration own = default_values(problem);
  given.description = difference(requested, geometry_of(problem, constants, own));
  if (!given.description.empty()) return given;
  WisdomRequest request;
  request.device = wisdom_device(*device);
  request.problem_size = problem_size(problem, problem.kernel(), constants);
  request.source_hash = source_hash(problem, problem.kernel(), device->backend, constants);
  request.refuse = [&](const WisdomRecord& record) {
    try {
      (void)geometry_of(problem, constants, wisdom_configuration(problem, constants, record));
      return std::string();
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  const WisdomChoice choice = select_wisdom(tuned.records, request);
  given.description = choice.reason;
  if (!choice.record) return given;
  if (!is_worthwhile(*choice.record)) {
    given.description = "the gain over the program's own is not shown to be 1 %: " + choice.reason;
    return given;
  }
  const auto clock = choice.record->execution.find("core_clock_mhz");
  const bool tuned_here = choice.match == WisdomMatch::exact || choice.match == WisdomMatch::near_size;
  if (tuned_here && clock != choice.record->execution.end()) {
    given.clock_mhz = clock->second.as_real();
    given.clock_latency = quantity_of(*choice.record, "clock_latency");
    if (choice.match == WisdomMatch::exact) given.seconds = quantity_of(*choice.record, "time");
  }
  const Configuration configuration = wisdom_configuration(problem, constants, *choice.record);
  const LaunchGeometry geometry = geometry_of(problem, constants, configuration);
  given.description = fmt::format("{} ({})", describe(problem.parameters, configuration), choice.reason);
  if (configuration == own) {
    given.description = "the program's own is the best known: " + given.description;
    return given;
  }
  compile(make_compile_job(problem, problem.kernel(), *device, constants, configuration), *device, given);
  given.global = global_of(geometry);
  given.block = {geometry.block[0], geometry.block[1], geometry.block[2]};
  given.shared_bytes = geometry.shared_memory_bytes;
  given.absolute_tolerance = problem.verification.absolute_tolerance.value_or(1e-6);
  given.relative_tolerance = problem.verification.relative_tolerance;
  for (const Argument& argument : problem.kernel().arguments)
    given.types.push_back(argument.kind == Argument::Kind::buffer ? to_string(argument.type) : std::string());
  given.use = true;
  return given;
}

ReplacementLaunch TunedProblems::answer(const RequestedLaunch& requested) {
  ReplacementLaunch given;
  const std::string hash = capture::source_hash(requested.source);
  for (const Tuned& tuned : tuned_) {
    if (tuned.kernel != requested.kernel || tuned.source_hash != hash) continue;
    if (tuned.options != requested.options) {
      given.description = "it is compiled with other options than the captured one";
      continue;
    }
    try {
      given = choose(tuned, requested);
    } catch (const std::exception& error) {
      given = {};
      given.description = error.what();
    }
    if (given.use) break;
  }
  return given;
}

}  // namespace ergotune::cli

#include "measure/verify/reference.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "base/hash.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"
#include "measure/buffers/arguments.hpp"
#include "problem/address_field.hpp"

namespace ergotune {
namespace {

constexpr char kMagic[8] = {'E', 'R', 'G', 'O', 'R', 'E', 'F', '2'};

ExpectedOutputs outputs_from_files(const Problem& problem, const ProblemBuffers& buffers) {
  ExpectedOutputs outputs;
  for (const auto& [name, file] : problem.verification.files) {
    const auto& known = buffers.outputs();
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError(
          fmt::format("verification file for \"{}\", which is not an output{}", name, suggestion(name, known)));
    outputs[name] = read_array_file(file, buffers.argument(name).type, buffers.bytes(name),
                                    fmt::format("holds the expected contents of \"{}\"", name));
  }
  return outputs;
}

/// Runs the reference with the constants of `measured`, the device that is measured, and the inputs of its kernels,
/// wherever the reference itself runs. A reference with its own argument list refers to the problem's arguments by
/// name.
ExpectedOutputs run_reference(const Problem& problem, const Kernel& reference, Device& device,
                              const DeviceInfo& measured, const ProblemBuffers& inputs, const Configuration& values) {
  const std::vector<Argument>& arguments = arguments_of(problem, reference);
  const Constants constants = problem.constants_for(measured.name, measured.properties);
  const ConfigurationScope names(problem.parameters, values, constants);
  const Scope scope = names.scope();
  ProblemBuffers buffers(device, {&arguments}, constants, &inputs);
  std::set<std::string> passed;
  add_passed(arguments, scope, passed);
  buffers.choose(passed);
  const Binary binary =
      device.make_compiler()->compile(make_compile_job(problem, reference, device.info(), constants, values));
  const std::unique_ptr<LoadedKernel> kernel = device.load(binary);
  kernel->bind(make_geometry(reference.launch, scope), buffers.bind(arguments, scope));
  device.launch(*kernel);
  device.synchronise();
  if (const std::string outside = buffers.written_outside(); !outside.empty())
    throw UserError(fmt::format("the reference \"{}\" is wrong: {}", reference.function.text(), outside));
  ExpectedOutputs outputs;
  for (const std::string& name : buffers.outputs()) {
    const auto& wanted = inputs.outputs();
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) buffers.read(name, outputs[name]);
  }
  return outputs;
}

}  // namespace

std::optional<ExpectedOutputs> expected_outputs(const Problem& problem, Device& device, const ProblemBuffers& buffers,
                                                const Configuration* configuration) {
  using Kind = Verification::Kind;
  const Verification& verification = problem.verification;
  if (verification.kind == Kind::files) return outputs_from_files(problem, buffers);
  if (verification.kind != Kind::kernel && verification.kind != Kind::host_function) return std::nullopt;
  if (!verification.reference) throw UserError("verification asks for a reference, but the problem has none");
  const Kernel& reference = *verification.reference;
  const Configuration values = configuration ? *configuration : default_values(problem);
  try {
    if (verification.kind == Kind::kernel && has_source_for(reference, device.info().backend)) {
      return run_reference(problem, reference, device, device.info(), buffers, values);
    }
    const std::unique_ptr<Device> host = open_device("host");
    return run_reference(problem, reference, *host, device.info(), buffers, values);
  } catch (const DeviceError& error) {
    throw UserError(fmt::format("the reference \"{}\" does not run: {}", reference.function.text(), error.what()));
  }
}

void save_outputs(const ExpectedOutputs& outputs, const std::filesystem::path& file) {
  // A file descriptor of the session (/proc/PID/fd/N) can only be written in place; hashes detect an incomplete file.
  const bool in_place = file.string().starts_with("/proc/");
  const std::filesystem::path fresh = in_place ? file.string() : file.string() + fmt::format(".{}", ::getpid());
  std::error_code ignored;
  if (!in_place) std::filesystem::create_directories(file.parent_path(), ignored);
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  const auto put = [&](std::uint64_t value) { out.write(reinterpret_cast<const char*>(&value), sizeof value); };
  out.write(kMagic, sizeof kMagic);
  put(outputs.size());
  for (const auto& [name, contents] : outputs) {
    const std::string_view bytes(reinterpret_cast<const char*>(contents.data()), contents.size());
    put(name.size());
    out.write(name.data(), static_cast<std::streamsize>(name.size()));
    put(contents.size());
    put(hash64(bytes));
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  out.close();
  if (in_place) return;
  if (out) {
    std::filesystem::rename(fresh, file, ignored);
  } else {
    std::filesystem::remove(fresh, ignored);
  }
}

std::optional<ExpectedOutputs> load_outputs(const std::filesystem::path& file) {
  std::error_code failed;
  const std::uint64_t size = std::filesystem::file_size(file, failed);
  if (failed) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  char magic[sizeof kMagic] = {};
  in.read(magic, sizeof magic);
  if (!in || std::memcmp(magic, kMagic, sizeof magic) != 0) return std::nullopt;
  const auto get = [&] {
    std::uint64_t value = 0;
    in.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  };
  ExpectedOutputs outputs;
  const std::uint64_t count = get();
  for (std::uint64_t i = 0; in && i < count; ++i) {
    const std::uint64_t length = get();
    if (!in || length > size) return std::nullopt;
    std::string name(length, '\0');
    in.read(name.data(), static_cast<std::streamsize>(length));
    const std::uint64_t bytes = get(), hash = get();
    if (!in || bytes > size) return std::nullopt;
    auto& contents = outputs[name];
    contents.resize(bytes);
    in.read(reinterpret_cast<char*>(contents.data()), static_cast<std::streamsize>(bytes));
    if (!in || hash64({reinterpret_cast<const char*>(contents.data()), contents.size()}) != hash) return std::nullopt;
  }
  if (!in) return std::nullopt;
  return outputs;
}

}  // namespace ergotune

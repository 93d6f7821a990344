#include "measure/verify/output_check.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <type_traits>

#include "base/half.hpp"
#include "base/hash.hpp"
#include "device/backend.hpp"
#include "device/entries.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/compare.hpp"
#include "kernel/configure.hpp"
#include "kernel/wisdom_key.hpp"
#include "measure/buffers/arguments.hpp"
#include "problem/address_field.hpp"
#include "problem/element_type.hpp"

namespace ergotune {
namespace {

constexpr char kMagic[8] = {'E', 'R', 'G', 'O', 'R', 'E', 'F', '2'};

ExpectedOutputs outputs_from_files(const Problem& problem, const ProblemBuffers& buffers) {
  ExpectedOutputs outputs;
  for (const auto& [name, file] : problem.verification.files) {
    const auto& known = buffers.outputs();
    if (std::ranges::find(known, name) == known.end())
      throw UserError(
          fmt::format("verification file for \"{}\", which is not an output{}", name, suggestion(name, known)));
    outputs[name] = read_array_file(file, buffers.argument(name).type, buffers.bytes(name),
                                    fmt::format("holds the expected contents of \"{}\"", name));
  }
  return outputs;
}

/// Whether the reference runs on the device that is measured, not on the host.
bool runs_on(const Device& device, const Verification& verification) {
  return verification.kind == Verification::Kind::kernel &&
         has_source_for(*verification.reference, device.info().backend);
}

/// For each parameter whether what the reference computes, or which outputs there are, may depend on it.
std::vector<bool> parameters_of_reference(const Problem& problem, const Device& device) {
  const Kernel& reference = *problem.verification.reference;
  auto names = code_description(reference, runs_on(device, problem.verification) ? device.info().backend : "host");
  names.merge(launch_names(problem, reference));
  const auto add = [&](const Expression& expression) {
    names.insert(expression.names().begin(), expression.names().end());
  };
  for (const Argument& argument : arguments_of(problem, reference)) {
    for (const Expression* one : {&argument.value, &argument.count}) add(*one);
    for (const Field& field : argument.fields) add(field.value);
  }
  for (const Kernel& kernel : problem.kernels)
    for (const Argument& argument : kernel.arguments)
      if (argument.when) add(*argument.when);
  std::vector<bool> seen;
  for (const Parameter& parameter : problem.parameters)
    seen.push_back(names.contains(parameter.name) ||
                   names.contains(parameter.name.substr(parameter.name.find('.') + 1)));
  return seen;
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
    if (std::ranges::find(wanted, name) != wanted.end()) buffers.read(name, outputs[name]);
  }
  return outputs;
}

/// Throws UserError if the problem's arguments do not fit one of its kernels.
void check_arguments_of_kernels(const Problem& problem, const DeviceInfo& device, const Configuration& values) {
  const auto compiler = open_compiler(device.id);
  const Constants constants = problem.constants_for(device.name, device.properties);
  for (const Kernel& kernel : problem.kernels) {
    try {
      compiler->compile(make_compile_job(problem, kernel, device, constants, values));
    } catch (const device::Mismatch& error) {
      const std::size_t number = error.argument();
      const bool known = number > 0 && number <= kernel.arguments.size();
      throw UserError(error.what(), known ? kernel.arguments[number - 1].place : SourcePlace());
    } catch (const DeviceError&) {  // becomes the configuration's status
    }
  }
}

/// Bytes at the end of an output that check_access() examines, so that it takes some milliseconds for the first
/// configuration and some microseconds for the others.
constexpr std::size_t kExaminedFirst = std::size_t{16} << 20, kExaminedLater = std::size_t{64} << 10;

/// Other contents, which differ in each element by little, as a kernel may use them as an index.
std::vector<std::byte> other_contents(ElementType type, std::span<const std::byte> like) {
  std::vector<std::byte> contents(like.begin(), like.end());
  with_type(type, [&]<class T>(T) {
    for (std::size_t at = 0; at + sizeof(T) <= contents.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, &contents[at], sizeof value);
      if constexpr (std::is_same_v<T, Half>)
        value.bits = half_from(half_to_double(value.bits) + 1);
      else if constexpr (std::is_floating_point_v<T>)
        value += 1;
      else
        value ^= 1;
      std::memcpy(&contents[at], &value, sizeof value);
    }
  });
  return contents;
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::memcmp(a.data(), b.data(), b.size()) == 0;
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
    if (runs_on(device, verification)) {
      return run_reference(problem, reference, device, device.info(), buffers, values);
    }
    const std::unique_ptr<Device> host = open_device("host");
    return run_reference(problem, reference, *host, device.info(), buffers, values);
  } catch (const DeviceError& error) {
    if (error.fault() == DeviceFault::compile) check_arguments_of_kernels(problem, device.info(), values);
    throw UserError(fmt::format("the reference \"{}\" fails: {}", reference.function.text(), error.what()));
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

OutputCheck::OutputCheck(const Problem& problem, Device& device, ProblemBuffers& buffers, const MeasureOptions& options)
    : problem_(problem), device_(device), buffers_(buffers), options_(options), examined_(kExaminedFirst) {
  if (!compares()) return;
  expected_ = expected_outputs(problem, device, buffers);
  expected_for_ = default_values(problem);
  if (problem.verification.per_configuration) seen_by_reference_ = parameters_of_reference(problem, device);
  if (!expected_ && !options.reference_file.empty()) expected_ = load_outputs(options.reference_file);
  const auto is_output = [&](const auto& entry) {
    return std::count(buffers.outputs().begin(), buffers.outputs().end(), entry.first) > 0;
  };
  if (expected_ && !std::ranges::all_of(*expected_, is_output)) expected_.reset();
}

void OutputCheck::read(const std::string& name) {
  std::vector<std::byte>& contents = actual_[name];
  contents.resize(buffers_.bytes(name));
  if (!pinned_.contains(name)) pinned_[name] = device_.pin(contents);
  buffers_.read(name, contents);
}

bool OutputCheck::verifies() const { return options_.verify && problem_.verification.kind != Verification::Kind::none; }

bool OutputCheck::compared(const std::string& name) const {
  const auto& wanted = problem_.verification.outputs;
  return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
}

void OutputCheck::expect(const Configuration& configuration) {
  if (verifier_ || !compares() || !problem_.verification.per_configuration) return;
  constexpr std::size_t kMemory = std::size_t{1} << 30;
  Configuration seen = default_values(problem_);
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen_by_reference_[i]) seen[i] = configuration[i];
  if (expected_ && expected_for_ == seen) return;
  not_finite_.clear();
  if (expected_) {
    for (const auto& [name, contents] : *expected_) earlier_bytes_ += contents.size();
    earlier_.emplace_back(std::move(expected_for_), *std::exchange(expected_, std::nullopt));
  }
  const auto known = std::ranges::find(earlier_, seen, &std::pair<Configuration, ExpectedOutputs>::first);
  if (known == earlier_.end()) {
    if (earlier_bytes_ > kMemory) earlier_bytes_ = 0, earlier_.clear();
    expected_ = expected_outputs(problem_, device_, buffers_, &seen);
  } else {
    expected_ = std::move(known->second);
    for (const auto& [name, contents] : *expected_) earlier_bytes_ -= contents.size();
    earlier_.erase(known);
  }
  expected_for_ = std::move(seen);
}

bool OutputCheck::memory_intact(Measurement& result) {
  std::string fault = buffers_.written_outside();
  if (fault.empty()) fault = buffers_.changed_inputs();
  if (fault.empty()) return true;
  result.status = Status::wrong_result;
  result.message = fault;
  return false;
}

bool OutputCheck::verify(Measurement& result, bool reference_only) {
  for (const std::string& name : buffers_.outputs()) read(name);
  // Checked before the outputs may become the reference.
  if (!memory_intact(result)) return false;
  if (!verifier_) {
    if (problem_.verification.kind == Verification::Kind::first_correct) keep_first();
  }
  if (reference_only) return true;
  if (verifier_ ? passes_user_verifier(result) : right(result)) return true;
  result.status = Status::wrong_result;
  return false;
}

/// The end of what the verified iteration has left.
std::span<const std::byte> OutputCheck::verified_end(const std::string& name) const {
  const std::vector<std::byte>& whole = actual_.at(name);
  return std::span(whole).last(std::min(examined_, whole.size()));
}

/// Whether the end of an output is what the verified iteration has left, within the tolerance.
bool OutputCheck::repeats(const std::string& name, std::span<const std::byte> contents) const {
  return compare_output(problem_.verification, name, buffers_.argument(name).type, contents, verified_end(name)).equal;
}

/// Replaces elements that neither the verified iteration nor one on `other` has written, in what the latter has left,
/// by what the former has. Returns their number.
std::size_t OutputCheck::take_unwritten(const std::string& name, std::span<const std::byte> other,
                                        std::span<std::byte> contents) const {
  const std::span<const std::byte> verified = verified_end(name);
  if (same(contents, verified)) return 0;
  const std::vector<std::byte> first = buffers_.first_contents(name, buffers_.bytes(name) - verified.size());
  const std::size_t size = size_of(buffers_.argument(name).type);
  std::size_t count = 0;
  for (std::size_t at = 0; at + size <= contents.size(); at += size) {
    if (!same(contents.subspan(at), other.subspan(at, size)) ||
        !same(verified.subspan(at), std::span(first).subspan(at, size)))
      continue;
    std::memcpy(&contents[at], &verified[at], size);
    ++count;
  }
  return count;
}

/// After an iteration on restored contents: returns true, and sets status and message of `result`, if it has left most
/// elements alone that the verified one has written.
bool OutputCheck::keeps_results(const std::string& name, std::span<const std::byte> contents,
                                Measurement& result) const {
  const std::span<const std::byte> verified = verified_end(name);
  const std::vector<std::byte> first = buffers_.first_contents(name, buffers_.bytes(name) - verified.size());
  const std::size_t size = size_of(buffers_.argument(name).type);
  std::size_t written = 0, left = 0;
  for (std::size_t at = 0; at + size <= first.size(); at += size) {
    const std::span<const std::byte> before = std::span(first).subspan(at, size);
    if (same(verified.subspan(at), before)) continue;
    ++written;
    left += same(contents.subspan(at), before);
  }
  if (2 * left <= written) return false;
  result.status = Status::wrong_result;
  result.message = fmt::format(
      "a second launch does not write {} of the {} elements of output \"{}\" that the first has written: it "
      "keeps results between launches, and would be timed without its work",
      left, written, name);
  return true;
}

/// Runs an iteration beside other contents of the zones around the buffers. Returns true, and sets status and message
/// of `result`, if its outputs differ.
bool OutputCheck::reads_outside(const std::function<void()>& iterate, Measurement& result) {
  const auto differing = [&](bool other_zones) {
    buffers_.restore();
    if (other_zones) buffers_.change_zones(true);
    iterate();
    if (other_zones) buffers_.change_zones(false);
    std::vector<std::byte> contents;
    for (const std::string& name : buffers_.outputs()) {
      contents.resize(verified_end(name).size());
      buffers_.read_end(name, contents);
      if (!same(contents, verified_end(name)) && !repeats(name, contents)) return name;
    }
    return std::string();
  };
  const std::string name = differing(true);
  if (name.empty() || !differing(false).empty()) return false;  // random numbers differ each time
  result.status = Status::wrong_result;
  result.message = fmt::format(
      "output \"{}\" depends on memory outside of the buffers: is the count of each buffer what the kernel reads?",
      name);
  return true;
}

bool OutputCheck::check_access(const std::function<void()>& iterate, Measurement& result) {
  const bool is_reference =
      examined_ == kExaminedFirst && problem_.verification.kind == Verification::Kind::first_correct && !verifier_;
  const std::vector<std::string> names = buffers_.only_written();
  ExpectedOutputs others;
  if (!names.empty() && buffers_.has_in_out()) buffers_.restore();
  // like what timed launches find: results, so that a maximum or a flag in them shows
  for (const std::string& name : names) {
    others[name] = other_contents(buffers_.argument(name).type, verified_end(name));
    buffers_.write_end(name, others[name]);
  }
  if (!names.empty()) iterate();
  std::vector<std::pair<std::string, bool>> suspects;  // and whether the output is right all the same
  std::vector<std::byte> contents;
  const auto read = [&](const std::string& name) {
    contents.resize(verified_end(name).size());
    buffers_.read_end(name, contents);
  };
  for (const std::string& name : names) {
    read(name);
    const std::size_t unwritten = take_unwritten(name, others[name], contents);
    const std::size_t all = contents.size() / size_of(buffers_.argument(name).type);
    const bool in_whole = problem_.verification.compare.contains(name);
    if (is_reference && !in_whole && unwritten > 0 && 4 * unwritten >= all)
      access_warnings_.push_back(
          fmt::format("{} of the {} elements{} of output \"{}\" are not written: is the grid large enough?", unwritten,
                      all, contents.size() < buffers_.bytes(name) ? " at the end" : "", name));
    if (!same(contents, verified_end(name))) suspects.emplace_back(name, repeats(name, contents));
  }
  bool works = true, random = false;
  if (!suspects.empty()) {
    buffers_.restore();
    // outputs of random numbers differ each time, sums in any order by rounding
    iterate();
    for (const auto& [name, right] : suspects) {
      read(name);
      works = works && !keeps_results(name, contents, result);
      if (right ? !same(contents, verified_end(name)) : !repeats(name, contents)) {
        random = random || !right;
        if (is_reference && works && !right)
          access_warnings_.push_back(
              fmt::format("output \"{0}\" differs from launch to launch, so that others cannot agree with it: give "
                          "random numbers a "
                          "seed; if its elements are right in any order, write compare = {{ {0} = \"sorted\" }} in "
                          "[verification]; if "
                          "sums are added up in any order, raise relative_tolerance there",
                          name));
        continue;
      }
      buffers_.note_read(name);
      access_warnings_.push_back(fmt::format(
          "output \"{0}\" depends on what it contains before the kernel runs, so that it is restored before "
          "each launch: declare it access = \"read_write\"",
          name));
    }
  }
  if (!reads_inside_ && works && !random && !buffers_.swaps() && !buffers_.outputs().empty())
    works = reads_inside_ = !reads_outside(iterate, result);
  examined_ = kExaminedLater;
  result.warnings.insert(result.warnings.end(), access_warnings_.begin(), access_warnings_.end());
  return works;
}

bool OutputCheck::has_all_references() const {
  const auto& outputs = buffers_.outputs();
  return !compares() || (expected_ && std::ranges::all_of(
                                          outputs, [&](const std::string& name) { return expected_->contains(name); }));
}

/// Keeps the first outputs of each name as the expected ones. Arguments that depend on the configuration are added when
/// they first occur, in this process or another.
void OutputCheck::keep_first() {
  if (has_all_references()) return;
  if (!expected_) expected_.emplace();
  if (!options_.reference_file.empty())
    if (auto known = load_outputs(options_.reference_file)) expected_->merge(*known);
  bool fresh = false;
  for (const std::string& name : buffers_.outputs()) fresh |= expected_->emplace(name, actual_[name]).second;
  if (fresh && !options_.reference_file.empty()) save_outputs(*expected_, options_.reference_file);
}

bool OutputCheck::passes_user_verifier(Measurement& result) {
  std::vector<OutputView> views;
  for (const std::string& name : buffers_.outputs()) {
    OutputView view;
    view.argument = &buffers_.argument(name);
    view.actual = actual_[name];
    if (expected_ && expected_->contains(name)) view.expected = expected_->at(name);
    views.push_back(view);
  }
  double error = std::numeric_limits<double>::quiet_NaN();
  std::string message;
  const bool is_right = verifier_(views, message, error);
  // Python's functions answer yes or no
  const std::int64_t n = std::isnan(error) ? 0 : 1;
  result.quantities["error"] = {error, 0, n, "verification by the user's function", {}, Provenance::measured};
  if (!is_right) result.message = message.empty() ? "the user's verification rejects the outputs" : message;
  return is_right;
}

/// True if the first configuration, with whose outputs all others agree, left an output as it was.
bool OutputCheck::unchanged(const std::string& name) {
  const auto known = unchanged_.find(name);
  if (known != unchanged_.end()) return known->second;
  return unchanged_[name] = buffers_.first_contents(name) == expected_->at(name);
}

/// NaN equals NaN, so that a kernel which computes nothing else agrees: warns of such elements in an expected output,
/// and returns false where there are no others.
bool OutputCheck::has_numbers(const std::string& name, Measurement& result) {
  const ElementType type = buffers_.argument(name).type;
  const std::vector<std::byte>& contents = expected_->at(name);
  const auto known = not_finite_.try_emplace(name);
  std::size_t& count = known.first->second;
  if (known.second) count = not_finite_in(type, contents);
  const std::size_t all = contents.size() / size_of(type);
  if (count > 0)
    result.warnings.push_back(
        fmt::format("{} of the {} elements that output \"{}\" is compared with are NaN or infinite: do the inputs have "
                    "suitable contents (fill)?",
                    count, all, name));
  return count < all;
}

bool OutputCheck::right(Measurement& result) {
  if (!compares()) return true;
  const bool first_correct = problem_.verification.kind == Verification::Kind::first_correct;
  double error = 0;
  bool compared_numbers = false;
  for (const std::string& name : buffers_.outputs()) {
    const auto known = expected_->find(name);
    if (known == expected_->end() || !compared(name)) continue;
    const BufferComparison found =
        compare_output(problem_.verification, name, buffers_.argument(name).type, actual_[name], known->second);
    error = std::max(error, found.error);
    if (!found.equal) {
      result.message =
          fmt::format("{}output \"{}\": {}", result.message.empty() ? "" : result.message + "; ", name, found.message);
      continue;
    }
    compared_numbers |= has_numbers(name, result);
    if (first_correct && unchanged(name)) {
      result.warnings.push_back(fmt::format(
          "output \"{}\" contains what it did before the kernel ran, in this configuration and in the first: "
          "nothing shows that the kernel writes it",
          name));
    }
  }
  if (std::isfinite(error) && (compared_numbers || !result.message.empty())) {
    std::string method =
        first_correct ? "compared with the first configuration, no reference" : "compared with the reference";
    for (const auto& [name, how] : problem_.verification.compare)
      if (how != Compare::elements) method += fmt::format("; {} as a whole ({})", name, to_string(how));
    result.quantities["error"] = {error, 0, 1, method, {}, Provenance::measured};
  }
  return result.message.empty();
}

}  // namespace ergotune

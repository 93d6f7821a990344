// ergotune wisdom: lists, checks, merges and explains wisdom files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/configure.hpp"
#include "kernel/wisdom.hpp"
#include "kernel/wisdom_key.hpp"
#include "problem/tables/device_profile.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct WisdomOptions {
  std::string source, kernel, output, format = "ergotune", device, backend, objective, problem, size;
  std::vector<std::string> sources;
  bool json = false;
};

struct ReadFile {
  std::filesystem::path file;
  Wisdom wisdom;
};

std::vector<ReadFile> read_all(const std::string& source) {
  std::vector<ReadFile> files;
  for (const auto& file : wisdom_files(source)) files.push_back({file, read_wisdom(file).value_or(Wisdom{})});
  return files;
}

/// The kernel of a file: from its header, else from the file name.
std::string kernel_of(const ReadFile& file) {
  return file.wisdom.kernel.empty() ? file.file.stem().string() : file.wisdom.kernel;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

/// "M=4096,N=64", or as --size takes it where the names are unknown.
std::string size_text(const WisdomRecord& record) {
  const bool named = record.size_names.size() == record.problem_size.size();
  std::string text;
  for (std::size_t i = 0; i < record.problem_size.size(); ++i)
    text += fmt::format("{}{}{}{}", i == 0 ? "" : ",", named ? record.size_names[i] : "", named ? "=" : "",
                        record.problem_size[i]);
  return text;
}

Json record_json(const ReadFile& file, const WisdomRecord& record) {
  Json json{{"kernel", file.wisdom.kernel}, {"file", file.file.string()}};
  json.update(Json::parse(to_json_line(record)));
  return json;
}

void list(const WisdomOptions& options) {
  const auto files = read_all(options.source);
  Json records = Json::array(), warnings = Json::array();
  Table table({"kernel", "device", "size", "objective", "value", "how", "tuned", "configuration"});
  for (const std::size_t column : {0, 1, 2, 3, 5, 6, 7}) table.align_left(column);
  for (const ReadFile& file : files) {
    for (const WisdomRecord& r : file.wisdom.records) {
      records.push_back(record_json(file, r));
      table.add({file.wisdom.kernel, r.device.name, size_text(r), (r.maximise ? "max " : "") + r.objective,
                 r.score ? human(*r.score, unit_of(r.objective)) + (r.of_round ? " a round" : "") : "", r.provenance,
                 r.tuned_at.substr(0, 10), values_text(r.configuration)});
    }
    for (const std::string& warning : file.wisdom.warnings) warnings.push_back(warning);
    print_warnings(file.wisdom.warnings);
  }
  if (options.json) {
    print_json({{"records", records}, {"warnings", warnings}});
  } else if (records.empty()) {
    fmt::print("There is no wisdom in {}\n", options.source);
  } else {
    fmt::print("{}", table.to_string(0, terminal_width()));
  }
}

/// Collects the records of each kernel by the file that they are exported to. Throws UserError if the export would
/// replace an input file.
std::map<std::filesystem::path, Wisdom> by_target(const std::vector<ReadFile>& files, const std::string& output) {
  std::map<std::filesystem::path, Wisdom> targets;
  for (const ReadFile& file : files) {
    print_warnings(file.wisdom.warnings);
    if (file.wisdom.records.empty()) continue;
    const std::string kernel = kernel_of(file);
    const auto target = wisdom_file(output, kernel);
    Wisdom& all = targets.try_emplace(target, Wisdom{kernel, {}, {}}).first->second;
    if (all.kernel != kernel)
      throw UserError(fmt::format("the kernels {} and {} would be written to one file; export their files one by one",
                                  all.kernel, kernel),
                      {target.string(), 0, 0});
    for (const WisdomRecord& record : file.wisdom.records)
      if (std::ranges::find(all.records, record) == all.records.end()) all.records.push_back(record);
  }
  for (const auto& [target, wisdom] : targets) {
    std::error_code error;
    for (const ReadFile& file : files)
      if (std::filesystem::equivalent(target, file.file, error))
        throw UserError("this is a file that is exported from, and would be replaced; name another folder with -o",
                        {target.string(), 0, 0});
  }
  return targets;
}

void export_wisdom(const WisdomOptions& options) {
  Json written = Json::array();
  std::vector<std::string> notes;
  for (const auto& [target, wisdom] : by_target(read_all(options.source), options.output)) {
    const std::string text = options.format == "kernel-launcher" ? to_kernel_launcher(wisdom, notes) : to_text(wisdom);
    if (text.empty()) continue;
    std::error_code error;
    std::filesystem::create_directories(options.output, error);
    write_named_file(target, text);
    const auto records = std::ranges::count(text, '\n') - 1;
    written.push_back({{"file", target.string()}, {"kernel", wisdom.kernel}, {"records", records}});
    if (!options.json) fmt::print("Wrote {}: {} records\n", target.string(), records);
  }
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
  if (options.json) print_json({{"files", written}, {"format", options.format}, {"notes", notes}});
  if (written.empty()) throw Exit{kNoAnswer};
}

void merge(const WisdomOptions& options) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;  // records read and new ones, by kernel
  for (const std::string& source : options.sources) {
    for (const ReadFile& file : read_all(source)) {
      print_warnings(file.wisdom.warnings);
      if (file.wisdom.records.empty()) continue;
      const std::string kernel = kernel_of(file);
      auto& [read, added] = counts[kernel];
      read += file.wisdom.records.size();
      added += add_to_wisdom(options.output, kernel, file.wisdom.records);
    }
  }
  Json files = Json::array();
  for (const auto& [kernel, count] : counts) {
    const std::string file = wisdom_file(options.output, kernel).string();
    files.push_back({{"file", file}, {"kernel", kernel}, {"read", count.first}, {"added", count.second}});
    if (!options.json) fmt::print("{}: {} of {} records are new\n", file, count.second, count.first);
  }
  if (options.json) print_json({{"files", files}});
  if (counts.empty()) throw UserError("there is no record in any of these");
}

const Kernel& kernel_named(const Problem& problem, const std::string& name) {
  std::vector<std::string> names;
  for (const Kernel& kernel : problem.kernels) {
    if (wisdom_name(problem, kernel) == name) return kernel;
    names.push_back(wisdom_name(problem, kernel));
  }
  throw UserError(fmt::format("{} has no kernel \"{}\"{}", problem.file.string(), name, suggestion(name, names)));
}

/// The problem's constants on a device with this name for work of these sizes; missing sizes are taken from the file.
Constants constants_on(const Problem& problem, const Kernel& kernel, const std::string& device,
                       const std::vector<std::int64_t>& sizes) {
  Constants constants = problem.constants_for(device, known_properties(device));
  const auto names = size_names(problem, kernel);
  for (std::size_t i = 0; i < std::min(names.size(), sizes.size()); ++i) constants[names[i]] = sizes[i];
  return constants;
}

/// Removes restrictions that use unknown properties of the device.
Problem with_known_restrictions(Problem problem, const Constants& constants) {
  const Configuration values = default_values(problem);
  const ConfigurationScope names(problem.parameters, values, constants);
  std::erase_if(problem.restrictions, [&](const Restriction& restriction) {
    if (restriction.function) return false;
    for (const std::string& name : restriction.expression.names())
      if (!names.find(name)) return true;
    try {
      (void)restriction.expression.evaluate_bool(names.scope());
      return false;
    } catch (const UserError&) {  // occupancy() needs properties that it does not name
      return true;
    }
  });
  return problem;
}

/// The launcher's reason for rejecting a configuration; empty: it is valid.
std::string fault_of(const Problem& problem, const Kernel& kernel, const Constants& constants,
                     const WisdomRecord& record) {
  try {
    (void)launchable_configuration(problem, kernel, constants, record);
    return {};
  } catch (const UserError& error) {
    return error.message();
  }
}

/// The reason why a record is invalid for the current problem, on its device and for its size; empty: it is valid.
std::string error_on_tuned_device(const Problem& problem, const std::string& name, const WisdomRecord& record) {
  for (const Kernel& kernel : problem.kernels) {
    if (wisdom_name(problem, kernel) != name) continue;
    const std::string backend = source_backend(kernel, record.device.backend);
    const Constants constants = constants_on(problem, kernel, record.device.name, record.problem_size);
    if (!record.source_hash.empty() && !backend.empty() &&
        source_hash(problem, kernel, backend, constants) != record.source_hash)
      return "stale: the source has changed since it was tuned";
    return fault_of(with_known_restrictions(problem, constants), kernel, constants, record);
  }
  return {};
}

void check(const WisdomOptions& options) {
  const auto files = read_all(options.source);
  std::optional<Problem> problem;
  if (!options.problem.empty()) problem = load_problem(options.problem);
  Json documents = Json::array();
  std::size_t records = 0;
  std::vector<std::string> faults;
  for (const ReadFile& file : files) {
    std::vector<std::string> here = file.wisdom.warnings;
    for (const WisdomRecord& record : file.wisdom.records) {
      const std::string fault = problem ? error_on_tuned_device(*problem, file.wisdom.kernel, record) : std::string();
      if (!fault.empty())
        here.push_back(fmt::format("{}: {} on {}: {}", file.file.string(), values_text(record.configuration),
                                   record.device.name, fault));
    }
    if (file.wisdom.kernel.empty()) here.push_back(file.file.string() + ": no header names its kernel");
    records += file.wisdom.records.size();
    documents.push_back({{"file", file.file.string()},
                         {"kernel", file.wisdom.kernel},
                         {"records", file.wisdom.records.size()},
                         {"faults", here}});
    faults.insert(faults.end(), here.begin(), here.end());
  }
  if (options.json) {
    print_json({{"ok", faults.empty()}, {"files", documents}});
  } else {
    for (const std::string& fault : faults) fmt::print("{}\n", fault);
    fmt::print("{}, {}, {}\n", counted(files.size(), "file"), counted(records, "record"),
               counted(faults.size(), "fault"));
  }
  if (!faults.empty()) throw Exit{kNoAnswer};
}

std::vector<std::int64_t> sizes_from(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const std::string& word : split(text)) {
    char* end = nullptr;
    const long long size = std::strtoll(word.c_str(), &end, 10);
    if (word.empty() || *end || size < 1)
      throw UserError(fmt::format("--size takes whole numbers with commas, as in 4096,4096, not \"{}\"", text));
    sizes.push_back(size);
  }
  return sizes;
}

/// The device of this machine or the simulated one with this id (empty: the one that `tune` takes), or the one with
/// this name: as in the wisdom's records, else as in the profiles.
WisdomDevice device_named(const std::string& name, const std::string& backend, const Wisdom& wisdom,
                          const Problem* problem) {
  const std::string kind = name.substr(0, name.find(':'));
  if (kind == "sim") {
    const DeviceProfile profile = load_device_profile(name.substr(4));
    return wisdom_device("simulated " + profile.name, "simulated", profile.properties);
  }
  if (name.empty() || std::ranges::count(std::array{"cuda", "hip", "opencl", "host"}, kind) > 0)
    return wisdom_device(open_device(name, problem)->info());
  for (const WisdomRecord& record : wisdom.records)
    if (record.device.name == name && !record.device.architecture.empty()) return record.device;
  WisdomDevice device = wisdom_device(name, backend, {});
  return device;
}

/// Throws UserError for a kernel of which there is no wisdom.
void require_kernel(const WisdomOptions& options, const Wisdom& wisdom) {
  if (!wisdom.kernel.empty() || !wisdom.records.empty()) return;
  std::vector<std::string> names;
  for (const ReadFile& file : read_all(options.source)) names.push_back(kernel_of(file));
  throw UserError(fmt::format("{} has no kernel \"{}\"; it has {}", options.source, options.kernel,
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

/// Throws UserError for a number of sizes that no record has.
void require_sizes(const Wisdom& wisdom, const std::vector<std::int64_t>& size) {
  const WisdomRecord* sized = nullptr;
  for (const WisdomRecord& record : wisdom.records) {
    if (record.problem_size.size() == size.size()) return;
    if (!record.problem_size.empty()) sized = &record;
  }
  if (size.empty() || !sized) return;
  throw UserError(fmt::format("--size has {}, and the records of {} have {}{}", counted(size.size(), "number"),
                              wisdom.kernel, sized->problem_size.size(),
                              sized->size_names.empty() ? "" : fmt::format(": {}", fmt::join(sized->size_names, ","))));
}

void why(const WisdomOptions& options) {
  const auto file = wisdom_file(options.source, options.kernel);
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(options.source, error);
  (void)wisdom_files(options.source);  // throws if the folder does not exist
  const Wisdom wisdom = read_wisdom(is_file ? std::filesystem::path(options.source) : file).value_or(Wisdom{});
  print_warnings(wisdom.warnings);
  std::optional<Problem> problem;
  if (options.problem.empty())
    require_kernel(options, wisdom);
  else
    problem = load_problem(options.problem);
  WisdomRequest request;
  request.device = device_named(options.device, options.backend, wisdom, problem ? &*problem : nullptr);
  request.problem_size = sizes_from(options.size);
  require_sizes(wisdom, request.problem_size);
  request.objective = options.objective;
  Constants constants;
  if (problem) {
    const Kernel& kernel = kernel_named(*problem, options.kernel);
    const std::string backend = source_backend(kernel, request.device.backend);
    constants = constants_on(*problem, kernel, request.device.name, request.problem_size);
    if (!backend.empty()) request.source_hash = source_hash(*problem, kernel, backend, constants);
    problem = with_known_restrictions(std::move(*problem), constants);
    request.refuse = [&](const WisdomRecord& record) {
      return fault_of(*problem, kernel_named(*problem, options.kernel), constants, record);
    };
  }
  const WisdomChoice choice = select_wisdom(wisdom.records, request);
  Json otherwise = nullptr;
  if (problem && !choice.record) otherwise = to_json(problem->parameters, default_configuration(*problem, constants));
  if (options.json) {
    Json document{{"kernel", options.kernel},
                  {"configuration", choice.record ? to_json(choice.record->configuration) : otherwise},
                  {"reason", choice.reason},
                  {"distance", choice.record ? Json(choice.distance) : Json()},
                  {"match", to_string(choice.match)},
                  {"stale", choice.stale}};
    if (choice.record) document["record"] = Json::parse(to_json_line(*choice.record));
    print_json(document);
  } else {
    fmt::print("{}\n", choice.reason);
    if (choice.record) fmt::print("{}\n", values_text(choice.record->configuration));
    if (choice.record && !choice.record->execution.empty())
      fmt::print("it ran at {}\n", values_text(choice.record->execution));
  }
}

void add_why(Verb app, const std::shared_ptr<WisdomOptions>& options) {
  Verb verb = app.add_verb("why", "Which configuration an application would be given, and why");
  verb.add_option("source", options->source, "Folder or file of wisdom").required();
  verb.add_option("kernel", options->kernel, "Name of the kernel").required();
  verb.add_option("--device", options->device,
                  "Id of a device here or of a simulated one (sim:a100), or name of any, as `ergotune devices` prints "
                  "them (default: the one that tune "
                  "takes)");
  verb.add_option("--size", options->size, "Problem size, as in 4096,4096 (default: any)");
  verb.add_option("--objective", options->objective, "What is preferred where there is a choice");
  verb.add_option("--backend", options->backend,
                  "Kind of a device that the wisdom does not know: cuda, hip, opencl, host")
      .one_of({"cuda", "hip", "opencl", "host"});
  verb.add_option("--problem", options->problem,
                  "Problem file: what is stale, or not in its space for this size, is left out")
      .existing_path();
  add_json_option(verb, options->json);
  verb.footer("Example:\n  ergotune wisdom why wisdom gemm --device \"NVIDIA H100 80GB HBM3\" --size 4096");
  verb.callback([options] { why(*options); });
}

void add_readers(Verb app, const std::shared_ptr<WisdomOptions>& options) {
  Verb verb = app.add_verb("list", "Print the records");
  verb.add_option("source", options->source, "Folder or file of wisdom").required();
  add_json_option(verb, options->json);
  verb.footer("Example:\n  ergotune wisdom list wisdom");
  verb.callback([options] { list(*options); });

  verb = app.add_verb("check", "Look for damage, and for what a problem file has made stale");
  verb.add_option("source", options->source, "Folder or file of wisdom").required();
  verb.add_option("--problem", options->problem, "Problem file that the records are held against").existing_path();
  add_json_option(verb, options->json);
  verb.footer("Example:\n  ergotune wisdom check wisdom --problem gemm.toml\nEnds with 1 when something is wrong.");
  verb.callback([options] { check(*options); });
}

void add_writers(Verb app, const std::shared_ptr<WisdomOptions>& options) {
  Verb verb = app.add_verb("export", "Write the records in another format");
  verb.add_option("source", options->source, "Folder or file of wisdom").required();
  verb.add_option("--format", options->format, "ergotune, or kernel-launcher (its version 1.0)")
      .show_default()
      .one_of({"ergotune", "kernel-launcher"});
  verb.add_option("-o,--output", options->output, "Folder to write to").required();
  add_json_option(verb, options->json);
  verb.footer("Example:\n  ergotune wisdom export wisdom --format kernel-launcher -o launcher");
  verb.callback([options] { export_wisdom(*options); });

  verb = app.add_verb("merge", "Add the records of several folders or files to one folder");
  verb.add_option("sources", options->sources, "Folders or files of wisdom, ergotune's or Kernel Launcher's")
      .required();
  verb.add_option("-o,--output", options->output, "Folder to add to").required();
  add_json_option(verb, options->json);
  verb.footer("Example:\n  ergotune wisdom merge wisdom wisdom-of-a-colleague -o merged");
  verb.callback([options] { merge(*options); });
}

}  // namespace

void add_wisdom_command(Verb app) {
  auto options = std::make_shared<WisdomOptions>();
  Verb verb = app.add_verb("wisdom", "List, merge, convert and check what applications choose from, or ask why");
  verb.require_verb();
  add_readers(verb, options);
  add_why(verb, options);
  add_writers(verb, options);
  verb.footer(
      "Examples:\n"
      "  ergotune wisdom list wisdom\n"
      "  ergotune wisdom why wisdom gemm --device \"NVIDIA H100 80GB HBM3\" --size 4096\n"
      "In Python: ergotune.export_results(\"results.db\", \"wisdom\", format=\"wisdom\");\n"
      "ergotune.launcher.Kernel launches by it");
}

}  // namespace ergotune::cli

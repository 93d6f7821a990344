// ergotune wisdom: what applications are given to choose from.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/table.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/kernel/wisdom.hpp"
#include "ergotune/kernel/wisdom_key.hpp"
#include "ergotune/problem/load.hpp"
#include "kernel/configure.hpp"

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

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

std::string size_text(const std::vector<std::int64_t>& size) {
  std::string text;
  for (const std::int64_t n : size) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text;
}

std::string values_text(const Constants& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.to_string());
  return text;
}

Json values_json(const Constants& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = to_json(value);
  return json;
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
      table.add({file.wisdom.kernel, r.device.name, size_text(r.problem_size), (r.maximise ? "max " : "") + r.objective,
                 r.score ? fmt::format("{:.6g}", *r.score) : "", r.provenance, r.tuned_at.substr(0, 10), values_text(r.configuration)});
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

void export_wisdom(const WisdomOptions& options) {
  Json written = Json::array();
  std::vector<std::string> notes;
  for (const ReadFile& file : read_all(options.source)) {
    print_warnings(file.wisdom.warnings);
    const std::string text = options.format == "kernel-launcher" ? to_kernel_launcher(file.wisdom, notes) : to_text(file.wisdom);
    if (text.empty()) continue;
    std::error_code error;
    std::filesystem::create_directories(options.output, error);
    const auto target = wisdom_file(options.output, file.wisdom.kernel);
    write_named_file(target, text);
    written.push_back({{"file", target.string()}, {"kernel", file.wisdom.kernel}, {"records", std::count(text.begin(), text.end(), '\n') - 1}});
    if (!options.json) fmt::print("Wrote {}: {} records\n", target.string(), std::count(text.begin(), text.end(), '\n') - 1);
  }
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
  if (options.json) print_json({{"files", written}, {"format", options.format}, {"notes", notes}});
  if (written.empty()) throw Exit{kNoAnswer};
}

void merge(const WisdomOptions& options) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;  // read and new, by kernel
  for (const std::string& source : options.sources) {
    for (const ReadFile& file : read_all(source)) {
      print_warnings(file.wisdom.warnings);
      if (file.wisdom.records.empty()) continue;
      const std::string kernel = file.wisdom.kernel.empty() ? file.file.stem().string() : file.wisdom.kernel;
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

/// What is wrong with a record for the problem as it is now; empty: nothing.
std::string fault_for(const Problem& problem, const std::string& kernel, const WisdomRecord& record) {
  const Kernel* which = nullptr;
  for (const Kernel& each : problem.kernels)
    if (wisdom_name(problem, each) == kernel) which = &each;
  if (!which) return {};
  const std::string backend = source_backend(*which, record.device.backend);
  const Constants constants = problem.constants_for(record.device.name, {});
  if (!record.source_hash.empty() && !backend.empty() && source_hash(problem, *which, backend, constants) != record.source_hash)
    return "stale: the source has changed since it was tuned";
  for (const auto& [name, value] : record.configuration) {
    const auto parameter = std::find_if(problem.parameters.begin(), problem.parameters.end(), [&](const auto& p) { return p.name == name; });
    if (parameter == problem.parameters.end()) return fmt::format("the problem has no parameter \"{}\"", name);
    const auto& values = parameter->values;
    if (!values.empty() && std::find(values.begin(), values.end(), value) == values.end())
      return fmt::format("{} has no value {}", name, value.to_literal());
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
      const std::string fault = problem ? fault_for(*problem, file.wisdom.kernel, record) : std::string();
      if (!fault.empty())
        here.push_back(fmt::format("{}: {} on {}: {}", file.file.string(), values_text(record.configuration), record.device.name, fault));
    }
    if (file.wisdom.kernel.empty()) here.push_back(file.file.string() + ": no header says which kernel this is of");
    records += file.wisdom.records.size();
    documents.push_back({{"file", file.file.string()}, {"kernel", file.wisdom.kernel}, {"records", file.wisdom.records.size()}, {"faults", here}});
    faults.insert(faults.end(), here.begin(), here.end());
  }
  if (options.json) {
    print_json({{"ok", faults.empty()}, {"files", documents}});
  } else {
    for (const std::string& fault : faults) fmt::print("{}\n", fault);
    fmt::print("{} files, {} records, {} faults\n", files.size(), records, faults.size());
  }
  if (!faults.empty()) throw Exit{kNoAnswer};
}

std::vector<std::int64_t> sizes_from(const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    char* end = nullptr;
    const long long size = std::strtoll(word.c_str(), &end, 10);
    if (word.empty() || *end || size < 1) throw UserError(fmt::format("--size takes whole numbers with commas, as in 4096,4096, not \"{}\"", text));
    sizes.push_back(size);
  }
  return sizes;
}

/// The device asked about: what is known of one of that name in the wisdom, else what profiles know.
WisdomDevice device_named(const std::string& name, const std::string& backend, const Wisdom& wisdom) {
  for (const WisdomRecord& record : wisdom.records)
    if (record.device.name == name && !record.device.architecture.empty()) return record.device;
  WisdomDevice device = wisdom_device(name, backend, {});
  return device;
}

void why(const WisdomOptions& options) {
  const auto file = wisdom_file(options.source, options.kernel);
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(options.source, error);
  (void)wisdom_files(options.source);  // says so where there is no such folder
  const Wisdom wisdom = read_wisdom(is_file ? std::filesystem::path(options.source) : file).value_or(Wisdom{});
  print_warnings(wisdom.warnings);
  WisdomRequest request;
  request.device = device_named(options.device, options.backend, wisdom);
  request.problem_size = sizes_from(options.size);
  request.objective = options.objective;
  Json otherwise = nullptr;
  std::optional<Problem> problem;
  if (!options.problem.empty()) {
    problem = load_problem(options.problem);
    const Kernel& kernel = kernel_named(*problem, options.kernel);
    const std::string backend = source_backend(kernel, request.device.backend);
    if (!backend.empty()) request.source_hash = source_hash(*problem, kernel, backend, problem->constants_for(options.device, {}));
    request.refuse = [&](const WisdomRecord& record) { return fault_for(*problem, options.kernel, record); };
    otherwise = to_json(problem->parameters, default_values(*problem));
  }
  const WisdomChoice choice = select_wisdom(wisdom.records, request);
  if (options.json) {
    Json document{{"kernel", options.kernel},
                  {"configuration", choice.record ? values_json(choice.record->configuration) : otherwise},
                  {"reason", choice.reason},
                  {"distance", choice.record ? Json(choice.distance) : Json()},
                  {"match", to_string(choice.match)},
                  {"stale", choice.stale}};
    if (choice.record) document["record"] = Json::parse(to_json_line(*choice.record));
    print_json(document);
  } else {
    fmt::print("{}\n", choice.reason);
    if (choice.record) fmt::print("{}\n", values_text(choice.record->configuration));
    if (choice.record && !choice.record->execution.empty()) fmt::print("it ran at {}\n", values_text(choice.record->execution));
  }
}

void add_why(Verb app, const std::shared_ptr<WisdomOptions>& options) {
  Verb verb = app.add_verb("why", "Which configuration an application would be given, and why");
  verb.add_option("source", options->source, "Folder or file of wisdom").required();
  verb.add_option("kernel", options->kernel, "Name of the kernel").required();
  verb.add_option("--device", options->device, "Name of the device, as `ergotune devices` prints it").required();
  verb.add_option("--size", options->size, "Problem size, as in 4096,4096 (default: any)");
  verb.add_option("--objective", options->objective, "What is preferred where there is a choice");
  verb.add_option("--backend", options->backend, "Kind of a device that the wisdom does not know: cuda, hip, opencl, host")
      .one_of({"cuda", "hip", "opencl", "host"});
  verb.add_option("--problem", options->problem, "Problem file: stale records and values that it does not have are left out").existing_file();
  add_json_option(verb, options->json);
  verb.footer("Example:\n  ergotune wisdom why wisdom gemm --device \"NVIDIA H100 80GB HBM3\" --size 4096,4096");
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
  verb.add_option("--problem", options->problem, "Problem file that the records are held against").existing_file();
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
  verb.add_option("sources", options->sources, "Folders or files of wisdom, ergotune's or Kernel Launcher's").required();
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
      "  ergotune wisdom why wisdom gemm --device \"NVIDIA H100 80GB HBM3\" --size 4096,4096");
}

}  // namespace ergotune::cli

// ergotune counters: lists the hardware counters of a chip, and the launches needed to count some of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "cli/command.hpp"
#include "counters/counters_observer.hpp"
#include "counters/cupti.hpp"
#include "device/cuda/cuda_platform.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "measure/observers/cupti_api.hpp"
#include "problem/tables/counter_names.hpp"

namespace ergotune::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Set in the child process that calls CUPTI: without a driver, some versions of CUPTI end the process.
constexpr const char* kChild = "ERGOTUNE_ASKS_CUPTI";

struct CountersArguments {
  std::string device, search;
  std::vector<std::string> names;
  bool all = false, json = false;
};

/// The chip to query: an architecture ("sm_90"), or a device, which is opened to check that the user may count.
struct Where {
  std::string chip;
  std::unique_ptr<Device> device;
  std::optional<cupti::ProfiledDevice> profiled;

  explicit Where(const std::string& name) {
    if (name.starts_with("sm_")) {
      const std::string digits = name.substr(3);
      const bool plain = !digits.empty() && digits.size() < 4 && std::ranges::all_of(digits, ::isdigit);
      chip = plain ? cupti::chip_of_architecture(std::stoi(digits)) : "";
      if (chip.empty())
        throw UserError(fmt::format("--device \"{}\": counters are read of sm_75 and later, named like sm_90", name));
      return;
    }
    device = open_device(name);
    if (device->info().backend != "cuda")
      throw UserError(
          fmt::format("--device \"{}\": hardware counters are NVIDIA's, of a CUDA device or an architecture such as "
                      "sm_90; CPUs have the observer \"perf\"; AMD's (rocprofiler-sdk) are not read, rocprofv3 counts "
                      "from outside (the page \"Hardware counters\")",
                      name));
    profiled.emplace(cuda::find_device(device->info().id).device);
    chip = profiled->chip();
  }
  std::span<const std::uint8_t> availability() const {
    return profiled ? std::span<const std::uint8_t>(profiled->availability()) : std::span<const std::uint8_t>();
  }
};

std::string default_device() {
  for (const DeviceInfo& info : list_devices())
    if (info.backend == "cuda") return info.id;
  return {};
}

Json library_document() {
  std::uint32_t version = 0;
  cupti::api().cuptiGetVersion(&version);
  return {{"library", cupti::api().library_name()}, {"version", cupti::version_text(version)}};
}

bool found_in(const std::string& wanted, std::initializer_list<std::string_view> texts) {
  return wanted.empty() || std::ranges::any_of(texts, [&](std::string_view text) {
           return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(),
                              [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); }) !=
                  text.end();
         });
}

Json list_document(const CountersArguments& arguments) {
  const std::string device = arguments.device.empty() ? default_device() : arguments.device;
  std::optional<Where> where;
  std::vector<std::string> missing;
  Json document{{"chip", nullptr}, {"cupti", nullptr}, {"counters", Json::array()}};
  if (!device.empty()) {
    where.emplace(device);
    std::vector<std::string> metrics;
    for (const CounterInfo& counter : counter_names())
      for (std::string& metric : metrics_behind(std::string(counter.name))) metrics.push_back(std::move(metric));
    missing = cupti::lacking(where->chip, metrics, where->availability());
    document["chip"] = where->chip;
    document["cupti"] = library_document();
  } else if (arguments.all) {
    throw UserError("--all lists a chip's own metrics: name the chip, as in --device sm_90");
  }
  for (const CounterInfo& counter : counter_names()) {
    if (!found_in(arguments.search, {counter.name, counter.meaning})) continue;
    const auto metrics = metrics_behind(std::string(counter.name));
    const bool lacks = std::ranges::any_of(
        metrics, [&](const std::string& metric) { return std::ranges::find(missing, metric) != missing.end(); });
    document["counters"].push_back({{"name", counter.name},
                                    {"unit", counter.unit},
                                    {"meaning", counter.meaning},
                                    {"usual", counter.usual},
                                    {"available", where ? Json(!lacks) : Json(nullptr)},
                                    {"metrics", metrics}});
  }
  if (!arguments.all) return document;
  static constexpr const char* kKinds[] = {"counters", "ratios", "throughputs"};
  for (int kind = 0; kind < 3; ++kind) {
    Json& list = document["metrics_of_the_chip"][kKinds[kind]] = Json::array();
    for (const std::string& name : cupti::base_metrics(where->chip, kind))
      if (found_in(arguments.search, {name})) list.push_back(name);
  }
  return document;
}

Json check_document(const CountersArguments& arguments) {
  const std::string device = arguments.device.empty() ? default_device() : arguments.device;
  if (device.empty()) throw UserError("there is no CUDA device here: name the chip, as in --device sm_90");
  const Where where(device);
  const CounterPlan plan = plan_counters(arguments.names, where.chip, where.availability());
  Json counters = Json::array();
  for (const std::string& name : plan.counters)
    counters.push_back({{"name", name},
                        {"unit", unit_of_counter(name)},
                        {"metrics", metrics_behind(name)},
                        {"says", cupti::describe(where.chip, metrics_behind(name).front())}});
  return {{"chip", where.chip},
          {"cupti", library_document()},
          {"permitted", where.profiled ? Json(true) : Json(nullptr)},
          {"passes", plan.passes},
          {"counters", std::move(counters)},
          {"missing", plan.missing}};
}

void print_list(const Json& document) {
  const bool chip = !document["chip"].is_null();
  fmt::print("{:<28} {:<4} {:<2} meaning{}\n", "counter", "unit", "",
             chip ? fmt::format("  ({})", document["chip"].get<std::string>()) : "");
  for (const Json& counter : document["counters"]) {
    const bool lacks = counter["available"] == Json(false);
    fmt::print("{:<28} {:<4} {:<2} {}{}\n", counter["name"].get<std::string>(), counter["unit"].get<std::string>(),
               counter["usual"].get<bool>() ? "*" : "", counter["meaning"].get<std::string>(),
               lacks ? "  [not on this chip]" : "");
  }
  fmt::print("* one of the usual twenty, which are counted where none is named\n");
  if (!document.contains("metrics_of_the_chip")) return;
  for (const auto& [kind, names] : document["metrics_of_the_chip"].items()) {
    fmt::print("\n{}, {} of {}:\n", names.size(), kind, document["chip"].get<std::string>());
    for (const Json& name : names) fmt::print("  {}\n", name.get<std::string>());
  }
}

void print_check(const Json& document) {
  const Json& cupti = document["cupti"];
  fmt::print("{}: {} counters in {} pass{} (CUPTI {}, {})\n", document["chip"].get<std::string>(),
             document["counters"].size(), document["passes"].get<int>(), document["passes"] == Json(1) ? "" : "es",
             cupti["version"].get<std::string>(), cupti["library"].get<std::string>());
  if (document["permitted"] == Json(true)) fmt::print("counting is permitted here\n");
  for (const Json& counter : document["counters"])
    fmt::print("  {:<28} {}\n", counter["name"].get<std::string>(),
               fmt::join(counter["metrics"].get<std::vector<std::string>>(), ", "));
  for (const Json& name : document["missing"]) fmt::print("  {:<28} not on this chip\n", name.get<std::string>());
}

using Answer = Json (*)(const CountersArguments&);

/// Runs the same command in a child process and returns its document.
Json ask_in_child(const std::string& verb, const CountersArguments& arguments) {
  std::vector<std::string> strings{own_program(), "counters", verb};
  strings.insert(strings.end(), arguments.names.begin(), arguments.names.end());
  if (!arguments.device.empty()) strings.insert(strings.end(), {"--device", arguments.device});
  if (!arguments.search.empty()) strings.insert(strings.end(), {"--search", arguments.search});
  if (arguments.all) strings.emplace_back("--all");
  strings.emplace_back("--json");
  ProcessOptions options;
  options.environment[kChild] = "1";
  options.timeout = 60;
  const ProcessResult result = run_process(strings, options);
  if (result.ok()) return Json::parse(result.out);
  if (result.exit_code > 0) {
    std::string message = result.err;
    if (const std::string own = "ergotune: "; message.starts_with(own)) message.erase(0, own.size());
    while (!message.empty() && message.back() == '\n') message.pop_back();
    if (result.exit_code == 2) throw UserError(message);
    throw Error(message);
  }
  throw UserError(
      fmt::format("CUPTI {} the process that asked it{}. Where there is no driver, versions 12.6 to 13.1 answer and "
                  "later ones do not (pip install nvidia-cuda-cupti-cu12==12.9.79); ERGOTUNE_CUPTI names the library",
                  result.timed_out ? "did not answer" : "ended",
                  result.signal ? fmt::format(" with signal {}", result.signal) : ""));
}

void answer(const std::string& verb, const CountersArguments& arguments, Answer here, void (*print)(const Json&)) {
  const bool child = !environment_variable(kChild).empty();
  const Json document = child ? here(arguments) : ask_in_child(verb, arguments);
  if (arguments.json)
    print_json(document);
  else
    print(document);
}

}  // namespace

void add_counters_command(Verb app) {
  auto arguments = std::make_shared<CountersArguments>();
  Verb verb = app.add_verb("counters", "Hardware counters: which there are, and what counting them takes");
  verb.require_verb();
  verb.footer(
      "Examples:\n  ergotune counters list\n  ergotune counters check ipc dram__bytes_read.sum --device sm_90\n"
      "  ergotune tune gemm.toml --device cuda:0 --observe counters\n"
      "In Python: the command only; observers=[\"counters\"] counts");
  Verb list = verb.add_verb("list", "Counters by the names that papers use, and a chip's own metrics");
  list.add_option("--device", arguments->device,
                  "A CUDA device (cuda:0), or a chip without one: sm_75, sm_80, sm_89, sm_90 ...");
  list.add_option("--search", arguments->search, "Only those with this in their name or meaning");
  list.add_flag("--all", arguments->all, "Also the metrics of the chip itself, by thousands");
  add_json_option(list, arguments->json);
  list.footer(
      "Examples:\n  ergotune counters list --device sm_90\n  ergotune counters list --device sm_90 --all --search dram "
      "--json");
  list.callback([arguments] { answer("list", *arguments, list_document, print_list); });
  Verb check =
      verb.add_verb("check", "Whether a chip has these counters, in how many launches, and whether you may read them");
  check.add_option("NAMES", arguments->names, "Counters or metrics of the chip (the usual twenty)");
  check.add_option("--device", arguments->device,
                   "A CUDA device, where permission is tried too, or a chip such as sm_90");
  add_json_option(check, arguments->json);
  check.footer(
      "Examples:\n  ergotune counters check --device sm_90\n"
      "  ergotune counters check ipc dram__bytes_read.sum --device sm_90 --json");
  check.callback([arguments] { answer("check", *arguments, check_document, print_check); });
}

}  // namespace ergotune::cli

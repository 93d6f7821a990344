// ergotune measure: measures one configuration, in the same way as `tune`.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/apart.hpp"
#include "analysis/kernel_clocks.hpp"
#include "base/json_text.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "ergotune/error.hpp"
#include "kernel/round.hpp"
#include "measure/metrics.hpp"
#include "problem/tables/quantity.hpp"
#include "tune/session/single_configuration.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MeasureArguments : LiveArguments {
  std::string configuration;
  std::optional<std::string> store, attribute;
  std::optional<double> clock_latency, max_slowdown;
  bool no_resume = false, json = false, apart = false, kernel_clocks = false;
};

void print_measurement(const PreparedSession& prepared, ConfigurationIndex index, const Measurement& measurement) {
  fmt::print("{} on {}: {}\n  {}\n", prepared.problem.name, prepared.device.name, to_string(measurement.status),
             describe(prepared.space->parameters(), prepared.space->configuration(index)));
  if (!measurement.message.empty()) fmt::print("  {}\n", measurement.message);
  const auto print_value = [&](const std::string& name) {
    const auto found = measurement.quantities.find(name);
    const bool own = found != measurement.quantities.end() && found->second.provenance != Provenance::measured;
    fmt::print("  {:<22} {}{}\n", name, with_interval(measurement, name, prepared.problem.metrics),
               mark_of(own ? found->second.provenance : prepared.evaluator->provenance()));
  };
  for (const auto& [name, quantity] : measurement.quantities) print_value(name);
  for (const auto& [name, value] : measurement.metrics) print_value(name);
  for (const std::string& warning : measurement.warnings) fmt::print("  note: {}\n", warning);
}

/// The measurement of one configuration of a prepared problem.
struct Measured {
  PreparedSession prepared;
  Configuration configuration;
  Measurement measurement;
};

Measured measured_with(Problem problem, const RunConfig& run, const MeasureArguments& arguments) {
  SetupOptions setup = setup_with(arguments, run);
  setup.run.store = arguments.store.value_or("");
  setup.resume = !arguments.no_resume;
  setup.run.jobs = 1;
  Measured result{prepare_session(std::move(problem), setup), {}, {}};
  PreparedSession& prepared = result.prepared;
  for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  const ConfigurationIndex index = named_configuration(prepared, arguments.configuration);
  result.configuration = prepared.space->configuration(index);
  const SingleMeasurement one = ergotune::measure_one(prepared, index);
  result.measurement = one.measurement;
  if (one.known)
    fmt::print(stderr, "note: this was measured before and comes from {}; --no-resume measures anew\n",
               prepared.store->file().string());
  return result;
}

Json document_of(const Measured& measured) {
  const PreparedSession& prepared = measured.prepared;
  Json document{{"problem", prepared.problem.name},
                {"device", prepared.device.id},
                {"device_name", prepared.device.name},
                {"configuration", to_json(prepared.space->parameters(), measured.configuration)}};
  document.update(to_json(measured.measurement));
  document["compile_seconds"] = measured.measurement.compile_seconds;
  document["verify_seconds"] = measured.measurement.verify_seconds;
  document["measure_seconds"] = measured.measurement.measure_seconds;
  return document;
}

/// Prints the attribution as a table, with the remainder that the shares do not cover.
void print_attribution(const Attribution& attribution) {
  if (attribution.shares.empty()) {
    fmt::print("\nNothing is attributed: some of the rounds that it takes were not measured\n");
    return;
  }
  fmt::print("\nattributed to kernels ({}, modelled)\n", to_string(attribution.method));
  std::vector<std::string> titles{"kernel"};
  for (const auto& [quantity, shares] : attribution.shares) titles.insert(titles.end(), {quantity, "of the round"});
  Table table(titles);
  const auto cells = [&](const std::string& name, const auto& share_of) {
    std::vector<std::string> row{name};
    for (const auto& [quantity, shares] : attribution.shares) {
      const Quantity share = share_of(quantity, shares);
      const std::string unit = unit_of(quantity, {});
      row.push_back(fmt::format("{} +- {}", human(share.value, unit), human(share.half_width(), unit)));
      row.push_back(fmt::format("{:.1f} %", 100 * share.value / attribution.whole.at(quantity).value));
    }
    table.add(row);
  };
  for (std::size_t p = 0; p < attribution.parts.size(); ++p)
    cells(attribution.parts[p].name, [&](const std::string&, const auto& shares) { return shares[p]; });
  cells("the round", [&](const std::string& quantity, const auto&) { return attribution.whole.at(quantity); });
  table.align_left(0);
  fmt::print("{}", table.to_string(0, terminal_width()));
}

void print_rounds(const std::vector<IterationVariant>& rounds, const std::vector<Measurement>& measurements,
                  const std::vector<Metric>& metrics) {
  Table table({"round", "time", "energy", "overlap", ""});
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const Measurement& m = measurements[i];
    const auto reported = [&](const char* quantity) {
      return m.quantities.contains(quantity) ? with_interval(m, quantity, metrics) : std::string("-");
    };
    table.add({rounds[i].name, reported("time"), reported("energy"), reported("overlap"),
               m.ok() ? "" : fmt::format("{}: {}", to_string(m.status), m.message)});
  }
  table.align_left(0);
  table.align_left(4);
  fmt::print("{}", table.to_string(0, terminal_width()));
}

/// Measures the iteration as given, its launches in sequence, and each kernel alone, and what the method of attribution
/// needs in addition.
void measure_apart(const MeasureArguments& arguments) {
  const std::optional<AttributionMethod> method =
      arguments.attribute ? std::optional(attribution_method(*arguments.attribute)) : std::nullopt;
  const ProblemFile problem = load_with(arguments);
  const std::vector<IterationVariant> rounds = iteration_variants(problem, method);
  std::vector<Measurement> measurements(rounds.size());
  std::vector<Json> entries(rounds.size());
  std::unique_ptr<Store> store;
  std::int64_t session = 0;
  // The iteration as given is measured last, since `show` and `report` use the session worked on last.
  for (std::size_t i = rounds.size(); i-- > 0;) {
    Measured measured = measured_with(rounds[i].problem, problem.run, arguments);
    measurements[i] = measured.measurement;
    entries[i] = {{"round", rounds[i].name}};
    entries[i].update(document_of(measured));
    store = std::move(measured.prepared.store);
    session = measured.prepared.store_session;
  }
  std::optional<Attribution> attribution;
  if (method) attribution = attribute(problem, *method, rounds, measurements);
  if (attribution && store) store->note(session, "attribution", json_text(attribution_document(*attribution)));
  if (arguments.json)
    return print_json(attribution ? Json{{"rounds", entries}, {"attribution", attribution_document(*attribution)}}
                                  : Json(entries));
  print_rounds(rounds, measurements, problem.metrics);
  for (const char* quantity : {"time", "energy"}) {
    const auto side = measurements[0].value(quantity), after = measurements[1].value(quantity);
    if (side && after && *side > 0) fmt::print("\nin sequence over as given, {}: {:.3f}", quantity, *after / *side);
  }
  fmt::print("\n");
  if (attribution) print_attribution(*attribution);
}

/// What is known of a kernel for --kernel-clocks.
struct KernelAtClocks {
  std::vector<AtClock> at;  ///< of all its launches in an iteration
  double latency = 0;       ///< s, the longest change of clock that was seen
};

/// Measures a kernel's launches alone at each clock of the problem. `visit` is called with the device's view of them.
KernelAtClocks measure_at_clocks(const MeasureArguments& arguments, const RunConfig& run, Problem alone,
                                 const std::string& kernel,
                                 const std::function<void(const PreparedSession&, const Configuration&)>& visit) {
  SetupOptions setup = setup_with(arguments, run);
  setup.run.store = arguments.store.value_or("");
  setup.resume = !arguments.no_resume;
  setup.energy = true;
  PreparedSession prepared = prepare_session(std::move(alone), setup);
  const auto& parameters = prepared.space->parameters();
  const auto clock = std::ranges::find_if(
      parameters, [](const Parameter& parameter) { return parameter.kind == ParameterKind::core_clock_mhz; });
  if (clock == parameters.end() || clock->values.size() < 2)
    throw UserError("--kernel-clocks chooses among several clocks: give core_clock_mhz under [execution]");
  Configuration configuration = prepared.space->configuration(named_configuration(prepared, arguments.configuration));
  visit(prepared, configuration);
  KernelAtClocks found;
  for (const Value& value : clock->values) {
    configuration[static_cast<std::size_t>(clock - parameters.begin())] = value;
    const auto index = prepared.space->index_of(configuration);
    if (!index) throw UserError(fmt::format("--kernel-clocks: {} MHz is excluded by a restriction", value.to_string()));
    const Measurement m = ergotune::measure_one(prepared, *index).measurement;
    const auto seconds = m.value("time"), joules = m.value("energy");
    if (!usable(m.status) || !seconds || !joules)
      throw UserError(fmt::format("{} at {} MHz has no time or no energy: {}", kernel, value.to_string(), m.message));
    found.latency = std::max(found.latency, m.value("clock_latency").value_or(0));
    found.at.push_back({value.as_real(), *seconds, *joules, m.standard_error("energy")});
  }
  std::ranges::sort(found.at, [](const AtClock& a, const AtClock& b) { return a.clock_mhz < b.clock_mhz; });
  return found;
}

/// How many launches of which kernel follow each other in an iteration.
using LaunchesInOrder = std::vector<std::pair<std::size_t, double>>;

LaunchesInOrder launches_in_order(Problem problem, const PreparedSession& prepared,
                                  const Configuration& configuration) {
  problem.parameters = prepared.space->parameters();
  LaunchesInOrder order;
  visit_launches(problem, prepared.constants, configuration,
                 [&](const IterationLaunch& launch, const Scope&, const BufferNames&) {
                   if (launch.branch != 0)
                     throw UserError("--kernel-clocks: kernels that run concurrently share one clock");
                   const auto launches = static_cast<double>(launch.launches);
                   if (!order.empty() && order.back().first == launch.kernel)
                     order.back().second += launches;
                   else
                     order.emplace_back(launch.kernel, launches);
                 });
  return order;
}

/// Launches of a kernel are taken to be alike.
std::vector<KernelStretch> stretches_of(const Problem& problem, const LaunchesInOrder& order,
                                        const std::vector<KernelAtClocks>& kernels) {
  std::map<std::size_t, double> total;
  for (const auto& [kernel, launches] : order) total[kernel] += launches;
  std::vector<KernelStretch> stretches;
  for (const auto& [kernel, launches] : order) {
    KernelStretch stretch{problem.kernels[kernel].name, kernels[kernel].at};
    const double share = launches / total[kernel];
    for (AtClock& at : stretch.at) at.seconds *= share, at.joules *= share, at.joules_error *= share;
    stretches.push_back(std::move(stretch));
  }
  return stretches;
}

Json at_json(double seconds, double joules) { return {{"time", seconds}, {"energy", joules}}; }

/// Whether kernels should have separate clocks.
void measure_kernel_clocks(const MeasureArguments& arguments) {
  const ProblemFile problem = load_with(arguments);
  const std::vector<IterationVariant> rounds = iteration_variants(problem);
  constexpr std::size_t kFirstAlone = 2;  // after the round as given and in sequence
  LaunchesInOrder order;
  std::vector<KernelAtClocks> kernels;
  double latency = 0;
  for (std::size_t k = 0; k < problem.kernels.size(); ++k) {
    kernels.push_back(measure_at_clocks(arguments, problem.run, rounds[kFirstAlone + k].problem,
                                        problem.kernels[k].name,
                                        [&](const PreparedSession& prepared, const Configuration& configuration) {
                                          if (order.empty())
                                            order = launches_in_order(problem, prepared, configuration);
                                        }));
    latency = std::max(latency, kernels.back().latency);
  }
  if (arguments.clock_latency) latency = *arguments.clock_latency;
  if (latency <= 0)
    throw UserError(
        "--kernel-clocks: no change of clock was seen whose time could be measured; give --clock-latency SECONDS");
  const std::vector<KernelStretch> stretches = stretches_of(problem, order, kernels);
  const KernelClocks chosen = choose_kernel_clocks(
      stretches, latency, arguments.max_slowdown.value_or(std::numeric_limits<double>::infinity()));
  if (arguments.json) {
    Json clocks = Json::array();
    for (std::size_t i = 0; i < stretches.size(); ++i)
      clocks.push_back({{"kernel", stretches[i].kernel}, {"clock_mhz", chosen.clocks_mhz[i]}});
    Json common{{"clock_mhz", chosen.common_mhz}}, apart{{"clocks", clocks}, {"changes", chosen.changes}};
    common.update(at_json(chosen.common_seconds, chosen.common_joules));
    apart.update(at_json(chosen.seconds, chosen.joules));
    return print_json({{"clock_latency", latency},
                       {"common", common},
                       {"apart", apart},
                       {"saved", chosen.saved},
                       {"saved_standard_error", chosen.saved_error},
                       {"pays", chosen.pays},
                       {"provenance", to_string(Provenance::modelled)}});
  }
  Table table({"kernel", "clock", "time", "energy"});
  table.align_left(0);
  for (std::size_t i = 0; i < stretches.size() && i < 20; ++i)
    for (const AtClock& at : stretches[i].at)
      if (at.clock_mhz == chosen.clocks_mhz[i])
        table.add({stretches[i].kernel, fmt::format("{:g} MHz", at.clock_mhz), human(at.seconds, "s"),
                   human(at.joules, "J")});
  fmt::print("{}", table.to_string(0, terminal_width()));
  if (stretches.size() > 20) fmt::print("and {} more stretches\n", stretches.size() - 20);
  fmt::print("\none clock, {:g} MHz: {}, {}\n", chosen.common_mhz, human(chosen.common_seconds, "s"),
             human(chosen.common_joules, "J"));
  fmt::print("{} changes of {} each: {}, {} (modelled from the kernels alone)\n", chosen.changes, human(latency, "s"),
             human(chosen.seconds, "s"), human(chosen.joules, "J"));
  if (chosen.pays)
    fmt::print("A clock for each kernel saves {} +- {} ({:.1f} %).\n", human(chosen.saved, "J"),
               human(1.96 * chosen.saved_error, "J"), 100 * chosen.saved / chosen.common_joules);
  else
    fmt::print("Use one clock: changing it saves nothing that exceeds the intervals.\n");
}

void measure(const MeasureArguments& arguments) {
  if (arguments.kernel_clocks) return measure_kernel_clocks(arguments);
  if (arguments.apart || arguments.attribute) return measure_apart(arguments);
  const ProblemFile problem = load_with(arguments);
  const Measured measured = measured_with(problem, problem.run, arguments);
  if (arguments.json)
    print_json(document_of(measured));
  else
    print_measurement(measured.prepared, *measured.prepared.space->index_of(measured.configuration),
                      measured.measurement);
  if (!usable(measured.measurement.status)) throw Exit{kNoAnswer};
}

}  // namespace

void add_measure_command(Verb app) {
  auto arguments = std::make_shared<MeasureArguments>();
  Verb verb = app.add_verb("measure", "Measure one configuration");
  add_live_options(verb, *arguments);
  verb.add_option("-c,--config", arguments->configuration,
                  "The configuration, \"A=64, B=2\" or a JSON object; parameters left out take their defaults");
  verb.add_option("--store", arguments->store,
                  "Keep the result here, and show what is known already (default: nowhere)");
  verb.add_flag("--no-resume", arguments->no_resume, "Measure anew what is stored");
  verb.add_flag("--apart", arguments->apart,
                "Of several kernels: the round as given, the same launches in sequence, and each kernel alone");
  verb.add_flag("--kernel-clocks", arguments->kernel_clocks,
                "Of several kernels in sequence: whether they should have separate clocks, by the energy of each "
                "kernel at each clock and the time that a change takes");
  verb.add_option("--clock-latency", arguments->clock_latency, "That time (the longest that was measured)")
      .kind("SECONDS")
      .positive();
  verb.add_option("--max-slowdown", arguments->max_slowdown,
                  "With --kernel-clocks: how much slower the round may be than at its fastest, as 0.05 (any)")
      .kind("NUMBER")
      .positive();
  verb.add_option("--attribute", arguments->attribute,
                  "Also attribute the round's energy and time to kernels, modelled: marginal (the round less the round "
                  "without it) or shapley (what it adds, over all orders; up to four)");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune measure gemm.toml --config '{\"MWG\": 64, \"NWG\": 64}' --json\n"
      "  ergotune measure gemm.toml --observe host_time:passes=3\n"
      "  ergotune measure pipeline.toml --attribute shapley --store apart.db\n"
      "  ergotune measure gemm.toml --device sim:a100 --objective energy --store results.db\n"
      "In Python: ergotune.measure(problem, {\"MWG\": 64}); with --apart ergotune.measure_apart");
  verb.callback([arguments] { measure(*arguments); });
}

}  // namespace ergotune::cli

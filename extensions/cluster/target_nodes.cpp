// The target that consists of other nodes.
#include <fmt/format.h>

#include <algorithm>

#include "base/process/process.hpp"
#include "cluster/cluster.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "tune/session/session.hpp"
#include "tune/target/target_clocks.hpp"
#include "tune/target/target_parts.hpp"

namespace ergotune {
namespace {

void validate_node_inputs(const SetupOptions& options, const Problem& problem) {
  if (options.in_process || options.verifier || !options.observers.empty() ||
      !problem.device_of_external_memory().empty())
    throw UserError(
        "nodes measure in processes of their own: callables and memory of this process cannot be used there");
  if (!is_live(options.run.device) && !options.run.device.starts_with("sim:"))
    throw UserError(fmt::format(
        "a recording is replayed here; leave out --node-command and --nodes, or name another device than \"{}\"",
        options.run.device));
  if (options.run.cache_folder.is_relative() && !options.run.cache_folder.empty())
    throw UserError("--cache-dir is a folder of each node: it has to be an absolute path");
}

/// The problem as nodes open it: with the session's settings, except those that apply to the session only.
ProblemFile for_nodes(const Problem& problem, const SetupOptions& options) {
  ProblemFile sent = problem;
  sent.run = options.run;
  sent.run.node_commands.clear();
  sent.run.nodes.clear();
  sent.run.store.clear();
  sent.run.plan.clear();
  sent.run.prior.clear();
  return sent;
}

ClusterOptions cluster_options(const SetupOptions& options) {
  ClusterOptions cluster;
  cluster.commands = options.run.node_commands;
  if (options.run.nodes == "slurm") {
    for (std::string& command : node_commands(options.run.nodes)) cluster.commands.push_back(std::move(command));
  } else if (!options.run.nodes.empty()) {
    cluster.commands_file = options.run.nodes;
  }
  cluster.program = options.worker_command.empty() ? own_program() : options.worker_command.front();
  cluster.version = ERGOTUNE_VERSION;
  cluster.interrupted = options.interrupted;
  cluster.open.silence = options.run.node_silence;
  cluster.open.energy = options.energy;
  cluster.open.take_over = options.take_over;
  cluster.open.further_metrics = options.further_metrics;
  cluster.retry = std::min(5.0, options.run.node_silence);
  cluster.notify = options.notify;
  return cluster;
}

/// Opens the nodes named by options.run.node_commands and options.run.nodes.
void open_nodes(Target& target, const SetupOptions& options) {
  validate_node_inputs(options, target.problem);
  auto cluster = std::make_unique<Cluster>(for_nodes(target.problem, options), cluster_options(options));
  const agents::Opened& opened = cluster->opened();
  target.live = cluster.get();
  target.device = opened.devices.front();
  target.gpu_key = opened.gpu_key;
  target.base_clock_mhz = opened.base_clock_mhz;
  target.notes = opened.notes;
  const bool measured = opened.measured;
  const std::string conditions = opened.compiler;
  const Problem resolved = deserialise(opened.problem);
  target.evaluator = std::move(cluster);
  target.device_lock = std::make_shared<bool>(true);  // the agents hold the device locks
  convert_clock_parameters(target.problem);
  const LiveOptions live = live_options(target.problem, options);
  target.problem.parameters = resolved.parameters;
  target.problem.execution_parameters = resolved.execution_parameters;
  // Constants of a simulated device are looked up by the name of its profile.
  const std::string name = measured ? target.device.name : target.device.name.substr(std::string("simulated ").size());
  target.constants = target.problem.constants_for(name, target.device.properties);
  if (options.adapt) options.adapt(target.problem, target.device.properties);
  build_space(target, options);
  set_conditions(target, options, live);
  // If outputs are compared with the first correct ones, every node uses those of the default configuration.
  const auto fallback = target.space->default_configuration();
  if (measured && fallback && live.measure.verify &&
      target.original.verification.kind == Verification::Kind::first_correct)
    target.live->establish_reference({target.space->configuration(*fallback)});
  if (!measured) target.conditions = conditions;
}

}  // namespace

void register_cluster() {
  register_target({[](const Problem& problem, const SetupOptions& options) {
                     return !problem.program && (!options.run.node_commands.empty() || !options.run.nodes.empty()) &&
                            !options.run.device.starts_with("replay:");
                   },
                   open_nodes});
}

}  // namespace ergotune

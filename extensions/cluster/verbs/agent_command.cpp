// ergotune agent: measures on a node for a session on another machine, which starts it (--node-command, --nodes).
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <memory>

#include "base/json_text.hpp"
#include "base/process/process.hpp"
#include "cli/command.hpp"
#include "cli/companions.hpp"
#include "cli/run_here.hpp"
#include "cluster/agent.hpp"
#include "cluster/node_transport.hpp"
#include "ergotune/error.hpp"

namespace ergotune::cli {

namespace {

/// Reserves the pipe for the agent: output of drivers, compilers or kernels goes to standard error, and standard input
/// reads nothing.
void take_pipe(AgentOptions& options) {
  options.in = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  options.out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (options.in < 0 || options.out < 0)
    throw Error("an agent's standard input and output are its pipe to a session, and it has none");
  if (const int nowhere = ::open("/dev/null", O_RDONLY | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDIN_FILENO);
    ::close(nowhere);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

std::vector<std::string> all_commands(std::vector<std::string> commands, const std::string& nodes) {
  if (!nodes.empty())
    for (std::string& command : node_commands(nodes)) commands.push_back(std::move(command));
  return commands;
}

nlohmann::ordered_json document_of(const std::vector<NodeDocument>& nodes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NodeDocument& node : nodes) {
    nlohmann::ordered_json entry{
        {"node", node.node.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(node.node)},
        {"worker", node.command}};
    if (node.failure.empty())
      entry.update(nlohmann::ordered_json::parse(node.document));
    else
      entry["error"] = node.failure;
    list.push_back(std::move(entry));
  }
  return list;
}

nlohmann::ordered_json list_node_devices(const std::vector<std::string>& named, const std::string& nodes,
                                         double seconds) {
  return document_of(list_nodes(all_commands(named, nodes), own_program(), seconds));
}

class CompanionOnNodes final : public Companion {
 public:
  CompanionOnNodes(const std::vector<std::string>& commands, const std::string& what)
      : nodes_(commands, own_program(), what, kSeconds) {}
  void begin() override { nodes_.begin(); }
  std::string end() override { return document_of(nodes_.end(kSeconds)).dump(); }

 private:
  static constexpr double kSeconds = 60;
  NodeCompanions nodes_;
};

std::unique_ptr<Companion> open_node_companions(const std::vector<std::string>& named, const std::string& nodes,
                                                const std::string& what) {
  return std::make_unique<CompanionOnNodes>(all_commands(named, nodes), what);
}

}  // namespace

void add_agent_command(Verb app) {
  set_node_listing(list_node_devices);
  set_node_companions(open_node_companions);
  auto node = std::make_shared<std::string>();
  Verb verb =
      app.add_verb("agent", "Measure on this node for a session elsewhere (started by --node-command and --nodes)");
  verb.add_option("--node", *node, "Name of this node (SLURMD_NODENAME, else the host's)").kind("TEXT");
  verb.footer(
      "Standard input and output are a pipe to the session, and nothing that prints can disturb it. For a terminal "
      "this is of no\n"
      "use: see the page \"Clusters: several nodes\".\n"
      "Example:\n  ergotune tune gemm.toml --node-command 'ssh gpu3 /opt/bin/ergotune agent' --budget 10min\n"
      "In Python: ergotune.tune(problem, executor=...) starts it on each worker");
  verb.callback([node] {
    AgentOptions options;
    if (::isatty(STDIN_FILENO) == 1)
      throw UserError("an agent is started by a session, as in ergotune tune gemm.toml --node-command 'ssh gpu3 {}'");
    take_pipe(options);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);  // the session handles Ctrl-C and ends its agents itself
    options.interrupted = interruption();
    options.program = ERGOTUNE_VERSION;
    options.node = *node;
    options.list_devices = [] { return json_text(devices_document()); };
    options.accompany = [](const std::string& what) { return make_companion(nlohmann::json::parse(what)); };
    if (const int code = run_agent(options); code != 0) throw Exit{code};
  });
}

}  // namespace ergotune::cli

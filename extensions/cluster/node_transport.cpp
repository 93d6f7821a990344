#include "cluster/node_transport.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

class CommandTransport final : public NodeTransport {
 public:
  CommandTransport(const std::string& command, SocketPair sockets)
      : NodeTransport(agents::kKind, sockets.ours, agents::kPreamble), process_(start(command, sockets.theirs)) {}
  ~CommandTransport() override { end(); }

  ProcessEnding end() override {
    if (process_.pid() <= 0) return ending_;
    // ssh and srun forward TERM to the other side and end; a command that does not is killed. A stopped process must be
    // continued to receive the signal: the kernel does so only for orphans adopted by a process of another session,
    // which is not the case in every container.
    process_.kill(SIGTERM);
    process_.kill(SIGCONT);
    std::optional<int> status = process_.wait(0.5);
    if (!status) {
      process_.kill(SIGKILL);
      status = process_.wait();
    }
    return ending_ = log_.ending(status.value_or(0));
  }

 private:
  ChildProcess start(const std::string& command, int socket) {
    const int log = log_.descriptor();
    const std::string errors = log >= 0 ? fmt::format("2>>/proc/{}/fd/{}", ::getpid(), log) : "2>/dev/null";
    try {
      ChildProcess process = ChildProcess::start(
          {"/bin/sh", "-c", fmt::format("exec 0<&3 1>&3 3>&- {}; {}", errors, command)}, {}, socket);
      ::close(socket);
      return process;
    } catch (...) {
      ::close(socket);
      throw;
    }
  }

  ChildLog log_;
  ProcessEnding ending_;
  ChildProcess process_;
};

/// Expands "1-3,07" after `prefix`.
void expand_numbers(const std::string& prefix, const std::string& numbers, const std::string& rest,
                    std::vector<std::string>& hosts) {
  for (const std::string& part : split(numbers)) {
    const std::size_t dash = part.find('-');
    const std::string low = part.substr(0, dash), high = dash == part.npos ? low : part.substr(dash + 1);
    const auto digits = [](const std::string& text) {
      return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
    };
    if (!digits(low) || !digits(high))
      throw UserError(fmt::format("\"{}\" is not a list of hosts", prefix + "[" + numbers + "]"));
    const long last = std::stol(high);
    if (last - std::stol(low) > 100000) throw UserError(fmt::format("[{}] are too many hosts", part));
    for (long n = std::stol(low); n <= last; ++n)
      for (const std::string& host : expand_hosts(fmt::format("{}{:0{}}{}", prefix, n, low.size(), rest)))
        hosts.push_back(host);
  }
}

}  // namespace

std::vector<std::string> expand_hosts(const std::string& list) {
  std::vector<std::string> hosts;
  std::size_t begin = 0, depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']' && depth > 0) --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const std::string one = list.substr(begin, i - begin);
    begin = i + 1;
    if (one.empty()) continue;
    const std::size_t open = one.find('['), close = one.find(']');
    if (open == one.npos && close == one.npos) {
      hosts.push_back(one);
    } else if (open == one.npos || close == one.npos || close < open) {
      throw UserError(fmt::format("\"{}\" is not a list of hosts", one));
    } else {
      expand_numbers(one.substr(0, open), one.substr(open + 1, close - open - 1), one.substr(close + 1), hosts);
    }
  }
  return hosts;
}

StartNode start_by_command(const std::string& command, const std::string& program) {
  const std::string agent = shell_word(program) + " agent";
  std::string whole = command;
  for (std::size_t at = whole.find("{}"); at != whole.npos; at = whole.find("{}", at + agent.size()))
    whole.replace(at, 2, agent);
  return [whole]() -> std::unique_ptr<NodeTransport> {
    return std::make_unique<CommandTransport>(whole, make_socket_pair());
  };
}

std::string ended_with(NodeTransport& transport) {
  const ProcessEnding ending = transport.end();
  return ending.added_to("it ended with " + ending.description);
}

std::vector<std::string> node_commands(const std::string& nodes) {
  std::vector<std::string> commands;
  if (nodes == "slurm") {
    const std::string job = environment_variable("SLURM_JOB_ID"), list = environment_variable("SLURM_JOB_NODELIST");
    if (job.empty() || list.empty())
      throw UserError(
          "--nodes slurm: this process is in no allocation (SLURM_JOB_ID and SLURM_JOB_NODELIST are not set); start it "
          "by sbatch or salloc, or name nodes with --node-command 'srun -w NODE -N1 -n1 --overlap --mpi=none --input=0 "
          "--unbuffered {}'");
    // --overlap: the allocation's own step (this session) may use the same CPUs.
    for (const std::string& host : expand_hosts(list))
      commands.push_back(
          fmt::format("srun --jobid={} -w {} -N1 -n1 --overlap --mpi=none --input=0 --unbuffered {{}}", job, host));
    return commands;
  }
  const auto text = read_file(nodes);
  if (!text)
    throw UserError(fmt::format("--nodes takes slurm, or a file with a command in each line, and {} cannot be read: {}",
                                nodes, std::strerror(errno)));
  for (const std::string& line : split(*text, '\n')) {
    const std::string command(trimmed(line));
    if (command.empty() || command.front() == '#') continue;
    if (command.find(" slots=") == command.npos)
      commands.push_back(command);
    else
      commands.push_back(fmt::format("ssh {} {{}}", command.substr(0, command.find(' '))));
  }
  return commands;
}

namespace {

/// The next message of this type. Throws Error with why none came until then, on host_seconds().
template <class Expected>
Expected receive(NodeTransport& transport, NodeDocument& node, double until) {
  agents::Stream& stream = transport.stream();
  while (true) {
    while (auto message = stream.next()) {
      if (const auto* hello = std::get_if<agents::Hello>(&*message)) node.node = hello->node;
      if (const auto* refused = std::get_if<agents::Refused>(&*message)) throw Error(refused->message);
      if (auto* expected = std::get_if<Expected>(&*message)) return std::move(*expected);
    }
    if (stream.ended()) throw Error(ended_with(transport));
    if (host_seconds() > until) throw Error("it does not answer");
    pollfd polled{stream.in(), stream.events(), 0};
    ::poll(&polled, 1, 100);
    stream.flush();
  }
}

void receive_document(NodeTransport& transport, NodeDocument& node, double until) {
  try {
    node.document = receive<agents::Listed>(transport, node, until).document;
  } catch (const Error& error) {
    node.failure = error.what();
  }
}

}  // namespace

std::vector<NodeDocument> list_nodes(const std::vector<std::string>& commands, const std::string& program,
                                     double seconds) {
  std::vector<NodeDocument> nodes;
  std::vector<std::unique_ptr<NodeTransport>> transports;
  for (const std::string& command : commands) {
    nodes.push_back({command, {}, {}, {}});
    transports.push_back(start_by_command(command, program)());
    transports.back()->stream().post(agents::List{});
  }
  const double until = host_seconds() + seconds;
  for (std::size_t i = 0; i < nodes.size(); ++i) receive_document(*transports[i], nodes[i], until);
  return nodes;
}

NodeCompanions::NodeCompanions(const std::vector<std::string>& commands, const std::string& program,
                               const std::string& what, double seconds) {
  for (const std::string& command : commands) {
    nodes_.push_back({command, {}, {}, {}});
    transports_.push_back(start_by_command(command, program)());
    transports_.back()->stream().post(agents::Accompany{what});
  }
  try {
    wait_until_ready(seconds);
  } catch (const UserError&) {
    end(seconds);  // waits until the nodes that were ready have restored their settings
    throw;
  }
}

void NodeCompanions::wait_until_ready(double seconds) {
  const double until = host_seconds() + seconds;
  std::set<std::string> names;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    NodeDocument& node = nodes_[i];
    try {
      receive<agents::Ready>(*transports_[i], node, until);
    } catch (const Error& error) {
      throw UserError(fmt::format("node {}: {}", node.node.empty() ? node.command : node.node, error.what()));
    }
    if (!names.insert(node.node).second)
      throw UserError(fmt::format("two of the commands reach the node {}; it must be named once", node.node));
  }
}

void NodeCompanions::begin() {
  for (const auto& transport : transports_) transport->stream().post(agents::Begin{});
}

std::vector<NodeDocument> NodeCompanions::end(double seconds) {
  for (const auto& transport : transports_) transport->stream().post(agents::Stop{});
  const double until = host_seconds() + seconds;
  for (std::size_t i = 0; i < nodes_.size(); ++i) receive_document(*transports_[i], nodes_[i], until);
  return nodes_;
}

}  // namespace ergotune

#include "cluster/node_documents.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <set>

#include "base/clock.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
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
    node.trouble = error.what();
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

// Distributes requests among nodes that join and leave. Each request is assigned to at most one node at a time, is
// answered once, and is assigned to another node if its node is lost. Independent of pipes, processes and clocks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "evaluate/evaluator.hpp"

namespace ergotune {

class Dispatch {
 public:
  using Node = std::size_t;
  /// Number of nodes lost while a request ran on them after which the request is given back as the cause; and number of
  /// losses of any kind after which it is given back.
  static constexpr int kLosses = 2, kMaxLosses = 20;

  /// Adds a node with its devices and the number of requests that it can hold.
  void add_node(Node node, std::vector<std::string> devices, std::size_t room);
  void add(EvaluationRequest request);
  /// The next request and the node to which it is assigned: the least loaded one that can hold more.
  std::optional<std::pair<Node, EvaluationRequest>> next();
  /// Marks a request as running. Returns null if it is not assigned to that node; else a pointer valid until the next
  /// call.
  const EvaluationRequest* begun(Node node, std::uint64_t id);
  /// Removes and returns the request answered by a node; nullopt if it is not assigned to that node: late, or already
  /// answered.
  std::optional<EvaluationRequest> answered(Node node, std::uint64_t id);
  /// Removes a node; its requests are assigned again. If the node was `lost`, its running requests have lost one more
  /// node; those over the limit are returned. If the node left by itself, no loss is counted.
  std::vector<EvaluationRequest> remove_node(Node node, bool lost);
  void clear();

  /// Number of unanswered requests.
  std::size_t pending() const { return tasks_.size(); }

 private:
  struct Task {
    EvaluationRequest request;
    std::optional<Node> node;
    bool begun = false;
    int losses = 0, losses_waiting = 0;
  };
  struct Place {
    std::vector<std::string> devices;
    std::size_t room = 1;
    std::set<std::uint64_t> tasks;
  };

  void enqueue(std::uint64_t id, bool first);
  Place* least_loaded_node(const std::deque<std::uint64_t>& queue, const std::string& device, Node& node);

  std::unordered_map<std::uint64_t, Task> tasks_;
  std::map<Node, Place> nodes_;
  /// By requested device; requests that any device may run are under "".
  std::map<std::string, std::deque<std::uint64_t>> queues_;
};

}  // namespace ergotune

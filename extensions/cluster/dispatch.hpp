// Who measures what, when nodes come and go: each request is with one node at most, is answered once, and is given to
// another node when its own is lost. Knows nothing of pipes, processes or clocks.
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
  /// Nodes that may be lost while a request runs on them before it is taken for the reason; and losses of any kind.
  static constexpr int kLosses = 2, kLossesWaiting = 20;

  /// A node comes, with devices and room for so many requests.
  void add_node(Node node, std::vector<std::string> devices, std::size_t room);
  void add(EvaluationRequest request);
  /// The next request and the node that is to have it: of those with room the one that is least full.
  std::optional<std::pair<Node, EvaluationRequest>> next();
  /// It runs now. Null for what that node does not have; else valid until the next call.
  const EvaluationRequest* begun(Node node, std::uint64_t id);
  /// The request that a node's answer is for; nullopt for one that it does not have: late, or answered before.
  std::optional<EvaluationRequest> answered(Node node, std::uint64_t id);
  /// A node is gone. What it had waits again. Where it was `lost`, what ran there has lost a node once more, and those
  /// that have lost too many are given back; where it left by itself none has.
  std::vector<EvaluationRequest> remove_node(Node node, bool lost);
  void clear();

  /// Requests that are not answered.
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
  Place* roomy(const std::deque<std::uint64_t>& queue, const std::string& device, Node& node);

  std::unordered_map<std::uint64_t, Task> tasks_;
  std::map<Node, Place> nodes_;
  /// By the device that is requested; under "" what any may run.
  std::map<std::string, std::deque<std::uint64_t>> queues_;
};

}  // namespace ergotune

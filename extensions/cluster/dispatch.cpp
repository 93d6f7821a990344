#include "cluster/dispatch.hpp"

#include <algorithm>

namespace ergotune {

void Dispatch::add_node(Node node, std::vector<std::string> devices, std::size_t room) {
  nodes_[node] = {std::move(devices), std::max<std::size_t>(1, room), {}};
  const auto queues = std::exchange(queues_, {});
  for (const auto& [device, queue] : queues)
    for (const std::uint64_t id : queue) enqueue(id, false);
}

/// A request for an absent device is assigned to any free one; its answer names that device.
void Dispatch::enqueue(std::uint64_t id, bool first) {
  EvaluationRequest& request = tasks_.at(id).request;
  const auto has = [&](const auto& entry) {
    const auto& devices = entry.second.devices;
    return std::ranges::find(devices, request.gpu) != devices.end();
  };
  if (!request.gpu.empty() && !nodes_.empty() && std::ranges::none_of(nodes_, has)) {
    // All of them to the same device, since they are compared with each other.
    request.gpu = nodes_.begin()->second.devices.empty() ? std::string() : nodes_.begin()->second.devices.front();
  }
  auto& queue = queues_[request.gpu];
  first ? queue.push_front(id) : queue.push_back(id);
}

void Dispatch::add(EvaluationRequest request) {
  const std::uint64_t id = request.id;
  tasks_[id] = {std::move(request), std::nullopt, false, 0, 0};
  enqueue(id, false);
}

/// The least full node that can hold more and run the requests of a queue.
Dispatch::Place* Dispatch::least_loaded_node(const std::deque<std::uint64_t>& queue, const std::string& device,
                                             Node& chosen) {
  Place* best = nullptr;
  double least = 1;
  if (queue.empty()) return nullptr;
  for (auto& [node, place] : nodes_) {
    if (!device.empty() && std::ranges::find(place.devices, device) == place.devices.end()) continue;
    const double full = static_cast<double>(place.tasks.size()) / static_cast<double>(place.room);
    if (full >= least) continue;
    least = full;
    best = &place;
    chosen = node;
  }
  return best;
}

std::optional<std::pair<Dispatch::Node, EvaluationRequest>> Dispatch::next() {
  for (auto queue = queues_.rbegin(); queue != queues_.rend(); ++queue) {  // requests for a specific device first
    Node node = 0;
    Place* place = least_loaded_node(queue->second, queue->first, node);
    if (!place) continue;
    const std::uint64_t id = queue->second.front();
    queue->second.pop_front();
    Task& task = tasks_.at(id);
    task.node = node;
    task.begun = false;
    place->tasks.insert(id);
    return std::pair{node, task.request};
  }
  return std::nullopt;
}

const EvaluationRequest* Dispatch::begun(Node node, std::uint64_t id) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || task->second.node != node) return nullptr;
  task->second.begun = true;
  return &task->second.request;
}

std::optional<EvaluationRequest> Dispatch::answered(Node node, std::uint64_t id) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || task->second.node != node) return std::nullopt;
  EvaluationRequest request = std::move(task->second.request);
  nodes_.at(node).tasks.erase(id);
  tasks_.erase(task);
  return request;
}

std::vector<EvaluationRequest> Dispatch::remove_node(Node node, bool lost) {
  std::vector<EvaluationRequest> given_up;
  const auto place = nodes_.find(node);
  if (place == nodes_.end()) return given_up;
  const Place gone = std::move(place->second);
  nodes_.erase(place);
  // In front, the oldest first: a strategy expects results roughly in the order of its requests.
  for (auto id = gone.tasks.rbegin(); id != gone.tasks.rend(); ++id) {
    Task& task = tasks_.at(*id);
    task.node.reset();
    task.losses += lost && task.begun;
    task.losses_waiting += lost && !task.begun;
    if (task.losses >= kLosses || task.losses_waiting >= kMaxLosses) {
      given_up.push_back(std::move(task.request));
      tasks_.erase(*id);
    } else {
      enqueue(*id, true);
    }
  }
  // Requests that wait for its devices wait for others.
  for (const std::string& device : gone.devices) {
    const auto queue = queues_.find(device);
    if (queue == queues_.end()) continue;
    const std::deque<std::uint64_t> waiting = std::move(queue->second);
    queues_.erase(queue);
    for (const std::uint64_t id : waiting) enqueue(id, false);
  }
  return given_up;
}

void Dispatch::clear() {
  tasks_.clear();
  queues_.clear();
  for (auto& [node, place] : nodes_) place.tasks.clear();
}

}  // namespace ergotune

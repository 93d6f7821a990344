#include "tune/session_recorder.hpp"

#include <utility>
#include <vector>

namespace ergotune {

SessionRecorder::SessionRecorder(Store* store, std::int64_t session) : store_(store), session_(session) {
  if (store_) thread_ = std::thread([this] { loop(); });
}

SessionRecorder::~SessionRecorder() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SessionRecorder::about_to_run(const EvaluationRequest& request) {
  // A repetition is of a configuration that is known to run.
  if (!store_ || request.repeat) return;
  std::unique_lock lock(mutex_);
  queue_.push_back({Kind::begin, request.id, request.configuration, {}});
  open_[request.id] = request.configuration;
  changed_.notify_all();
  changed_.wait(lock, [&] { return fault_ || written_.erase(request.id) > 0; });
}

std::uint64_t SessionRecorder::add(std::uint64_t request, const Configuration& configuration,
                                   const Measurement& measurement) {
  const std::lock_guard lock(mutex_);
  if (fault_) std::rethrow_exception(fault_);
  ++added_;
  if (!store_) {
    durable_ = added_;
    return added_;
  }
  queue_.push_back({Kind::add, request, configuration, measurement});
  open_.erase(request);
  return added_;
}

void SessionRecorder::kick() { changed_.notify_all(); }

void SessionRecorder::withdraw_open() {
  const std::lock_guard lock(mutex_);
  for (auto& [request, configuration] : open_)
    queue_.push_back({Kind::withdraw, request, std::move(configuration), {}});
  open_.clear();
  changed_.notify_all();
}

std::uint64_t SessionRecorder::durable() const {
  const std::lock_guard lock(mutex_);
  return durable_;
}

void SessionRecorder::flush() {
  std::unique_lock lock(mutex_);
  changed_.notify_all();
  changed_.wait(lock, [&] { return fault_ || (queue_.empty() && !busy_) || !store_; });
  if (fault_) std::rethrow_exception(fault_);
}

void SessionRecorder::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::deque<Operation> operations = std::exchange(queue_, {});
    busy_ = true;
    lock.unlock();
    std::exception_ptr fault;
    std::uint64_t rows = 0;
    std::vector<std::uint64_t> begun;
    try {
      for (const Operation& operation : operations) {
        switch (operation.kind) {
          case Kind::begin:
            store_->begin(session_, operation.configuration);
            begun.push_back(operation.request);
            break;
          case Kind::add:
            store_->add(session_, operation.configuration, operation.measurement);
            ++rows;
            break;
          case Kind::withdraw:
            store_->withdraw(session_, operation.configuration);
            break;
        }
      }
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    durable_ += rows;
    written_.insert(begun.begin(), begun.end());
    if (fault && !fault_) fault_ = fault;
    changed_.notify_all();
    if (fault_) return;
  }
}

}  // namespace ergotune

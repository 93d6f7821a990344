// A thread that compiles while the application continues. It is created at first use, and only if background
// compilation is enabled.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace ergotune::launcher {

class Background {
 public:
  Background() = default;
  /// Waits for the running task; drops the others.
  ~Background() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// A forked process has the object but not the thread, for which it would wait: it keeps the object.
  struct Delete {
    void operator()(Background* object) const {
      if (object->owner_ == ::getpid()) delete object;
    }
  };

  /// Queues a task, which must not throw. Returns false without queueing it if the system cannot create a thread.
  bool add(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    try {
      if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      return false;
    }
    tasks_.push_back(std::move(task));
    changed_.notify_one();
    return true;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
      if (ended_) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;
  pid_t owner_ = ::getpid();
  std::thread thread_;
};

}  // namespace ergotune::launcher

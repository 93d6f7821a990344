// One thread that compiles while the application goes on; made when it is first needed, and only where it is allowed.
#pragma once

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
  /// Waits for the task that runs; the others are dropped.
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

  /// `task` throws nothing. False, and nothing is done, where the system gives no thread.
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
  std::thread thread_;
};

}  // namespace ergotune::launcher

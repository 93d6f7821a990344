#include "store/sqlite/flusher.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

namespace ergotune {

namespace {

constexpr std::chrono::milliseconds kBetweenFlushes{100};

/// Opens the log each time, since SQLite may have created a new file of that name.
void flush_file(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // checkpointed and removed: its content is in the database, which SQLite has flushed
  ::fdatasync(descriptor);
  ::close(descriptor);
}

}  // namespace

Flusher::Flusher(std::filesystem::path log) : log_(std::move(log)), thread_([this] { run(); }) {}

Flusher::~Flusher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Flusher::wrote() {
  {
    const std::lock_guard lock(mutex_);
    ++written_;
  }
  changed_.notify_all();
}

void Flusher::wait() {
  std::unique_lock lock(mutex_);
  const std::uint64_t until = awaited_ = written_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return flushed_ >= until; });
}

void Flusher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || flushed_ < written_; });
    if (flushed_ == written_) return;  // stopped, and nothing left to flush
    const std::uint64_t now = written_;
    lock.unlock();
    flush_file(log_);
    lock.lock();
    flushed_ = now;
    changed_.notify_all();
    // A commit during a flush waits for it: all commits within a short time share one flush.
    changed_.wait_for(lock, kBetweenFlushes, [&] { return stop_ || awaited_ > flushed_; });
  }
}

}  // namespace ergotune

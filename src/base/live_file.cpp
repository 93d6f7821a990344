#include "base/live_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"

namespace ergotune {

namespace {
constexpr std::uint64_t kMagic = 0x32'45'56'49'4c'47'52'45;  // "ERGLIVE2"
constexpr double kForgotten = 10;                            // s after which an open window counts as abandoned
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<double>::is_always_lock_free);

/// A hash of this boot of the machine and the namespace of its process ids; 0: unknown.
std::uint64_t this_machine() {
  std::error_code error;
  const auto processes = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  const std::string boot = read_file("/proc/sys/kernel/random/boot_id").value_or("");
  return error || boot.empty() ? 0 : hash64(boot + processes.string());
}
}  // namespace

/// Written by several processes: all fields that two of them may access are atomic.
struct LiveFile::Layout {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::int64_t> owner;
  std::atomic<std::uint64_t> machine;  ///< this_machine() of the owner
  std::atomic<std::uint32_t> requested, state_length;
  std::atomic<std::uint64_t> state_version;  ///< odd while the state is being written
  std::atomic<double> window_since;          ///< s since the Unix epoch; 0: no measurement
  std::atomic<std::uint64_t> next;
  struct Place {
    std::atomic<std::uint64_t> number;  ///< of the sample, from 1; 0 while it is being written
    LiveSample sample;
  } places[kSamples];
  char state[kStateBytes];
};

std::unique_ptr<LiveFile> LiveFile::create(const std::filesystem::path& file) {
  ::unlink(file.c_str());
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return nullptr;
  // Allocates everything now, so that a full disk does not kill the session by a signal later.
  void* memory = MAP_FAILED;
  if (::posix_fallocate(descriptor, 0, sizeof(Layout)) == 0)
    memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) {
    ::unlink(file.c_str());
    return nullptr;
  }
  auto* layout = static_cast<Layout*>(memory);
  layout->owner.store(::getpid());
  layout->machine.store(this_machine());
  layout->magic.store(kMagic);
  return std::unique_ptr<LiveFile>(new LiveFile(layout, file));
}

std::unique_ptr<LiveFile> LiveFile::open(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (::lseek(descriptor, 0, SEEK_END) == static_cast<off_t>(sizeof(Layout)))
    memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<LiveFile> live(new LiveFile(static_cast<Layout*>(memory), {}));
  return live->layout_->magic.load() == kMagic ? std::move(live) : nullptr;
}

LiveFile::~LiveFile() {
  if (!made_.empty()) ::unlink(made_.c_str());
  ::munmap(layout_, sizeof(Layout));
}

void LiveFile::set_state(std::string_view text) {
  if (text.size() > kStateBytes) return;
  layout_->state_version.fetch_add(1);
  std::memcpy(layout_->state, text.data(), text.size());
  layout_->state_length.store(static_cast<std::uint32_t>(text.size()));
  layout_->state_version.fetch_add(1);
}

std::string LiveFile::state() const {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::uint64_t before = layout_->state_version.load();
    std::string text(layout_->state, std::min<std::size_t>(layout_->state_length.load(), kStateBytes));
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && layout_->state_version.load() == before) return text;
    ::usleep(100);
  }
  return {};
}

void LiveFile::add(const LiveSample& sample) {
  const std::uint64_t number = layout_->next.fetch_add(1);
  Layout::Place& place = layout_->places[number % kSamples];
  place.number.store(0);
  place.sample = sample;
  place.number.store(number + 1, std::memory_order_release);
  layout_->window_since.store(sample.window == 2 ? 0 : sample.time);
}

std::vector<LiveSample> LiveFile::samples(std::uint64_t& next) const {
  std::vector<LiveSample> list;
  const std::uint64_t end = layout_->next.load();
  const std::uint64_t oldest = end > kSamples ? end - kSamples : 0;
  for (std::uint64_t number = std::max(std::min(next, end), oldest); number < end; ++number) {
    const Layout::Place& place = layout_->places[number % kSamples];
    if (place.number.load(std::memory_order_acquire) != number + 1) continue;
    LiveSample sample = place.sample;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (place.number.load() != number + 1) continue;  // has been overwritten
    sample.reasons[sizeof sample.reasons - 1] = 0;
    list.push_back(sample);
  }
  next = end;
  return list;
}

bool LiveFile::measuring() const {
  const double since = layout_->window_since.load();
  return since > 0 && wall_seconds() - since < kForgotten;
}

void LiveFile::ask(std::uint32_t requests) { layout_->requested.fetch_or(requests); }
void LiveFile::take_back(std::uint32_t requests) { layout_->requested.fetch_and(~requests); }
std::uint32_t LiveFile::requested() const { return layout_->requested.load(std::memory_order_relaxed); }

long LiveFile::owner() const { return static_cast<long>(layout_->owner.load()); }
bool LiveFile::made_here() const {
  const std::uint64_t machine = layout_->machine.load();
  return machine != 0 && machine == this_machine();
}
bool LiveFile::owner_lives() const {
  const auto pid = static_cast<pid_t>(owner());
  return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
}

namespace {

std::mutex path_mutex;

std::filesystem::path& path_of_process() {
  static std::filesystem::path path = [] {
    const char* given = std::getenv("ERGOTUNE_LIVE");
    return std::filesystem::path(given ? given : "");
  }();
  return path;
}

}  // namespace

std::filesystem::path live_path() {
  const std::lock_guard lock(path_mutex);
  return path_of_process();
}

void set_live_path(const std::filesystem::path& file) {
  const std::lock_guard lock(path_mutex);
  path_of_process() = file;
}

LiveFile* live_file() {
  thread_local std::filesystem::path known;
  thread_local std::unique_ptr<LiveFile> mapped;
  if (const std::filesystem::path path = live_path(); path != known) {
    known = path;
    mapped = path.empty() ? nullptr : LiveFile::open(path);
  }
  return mapped.get();
}

}  // namespace ergotune

#include "capture/inject/cuda/cuda_timing.hpp"

#include <mutex>
#include <vector>

#include "capture/inject/session.hpp"

namespace ergotune::inject::cuda {
namespace {

struct Pair {
  Handle start = nullptr, stop = nullptr;
  std::shared_ptr<KernelLog::Entry> entry;
  bool first = false;
};
struct Waiting {
  std::mutex mutex;
  std::vector<Pair> pairs;
};
Waiting& waiting() {
  static Waiting* const list = new Waiting;
  return *list;
}

bool wants_times() {
  const Session& session = Session::get();
  const Driver& driver = Driver::get();
  const bool able = driver.cuEventCreate && driver.cuEventRecord && driver.cuEventQuery && driver.cuEventElapsedTime &&
                    driver.cuEventDestroy_v2;
  return able && (session.wants(CaptureRequest::Mode::list) || session.wishes().kernel.empty());
}

void destroy(Handle event) {
  if (event) (void)Driver::get().cuEventDestroy_v2(event);
}

Handle recorded(Handle stream) {
  Handle event = nullptr;
  if (Driver::get().cuEventCreate(&event, 0) != 0) return nullptr;
  if (Driver::get().cuEventRecord(event, stream) == 0) return event;
  destroy(event);
  return nullptr;
}

}  // namespace

Handle start_timing(Handle stream) {
  if (!wants_times()) return nullptr;
  int capturing = 0;  // events would become part of the graph
  if (Driver::get().cuStreamIsCapturing &&
      (Driver::get().cuStreamIsCapturing(stream, &capturing) != 0 || capturing != 0))
    return nullptr;
  return recorded(stream);
}

void stop_timing(const std::shared_ptr<KernelLog::Entry>& entry, Handle started, Handle stream) {
  if (!started) return;
  const Handle stop = recorded(stream);
  if (!stop) return destroy(started);
  std::size_t many = 0;
  {
    const std::lock_guard lock(waiting().mutex);
    waiting().pairs.push_back({started, stop, entry, entry->launches == 1});
    many = waiting().pairs.size();
  }
  if (many % 64 == 0) collect_times();
}

void collect_times() {
  std::vector<Pair> ended;
  {
    const std::lock_guard lock(waiting().mutex);
    std::vector<Pair> left;
    for (Pair& pair : waiting().pairs)
      (Driver::get().cuEventQuery(pair.stop) == 0 ? ended : left).push_back(std::move(pair));
    waiting().pairs = std::move(left);
  }
  for (const Pair& pair : ended) {
    float milliseconds = 0;
    if (Driver::get().cuEventElapsedTime(&milliseconds, pair.start, pair.stop) == 0 && milliseconds > 0)
      KernelLog::get().add_time(*pair.entry, static_cast<std::uint64_t>(milliseconds * 1e6), pair.first);
    destroy(pair.start);
    destroy(pair.stop);
  }
}

}  // namespace ergotune::inject::cuda

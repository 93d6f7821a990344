// Defaults of optional features of devices: views of buffers, pinned memory, additional queues, external objects.
#include "device/device.hpp"

#include <fmt/format.h>

namespace ergotune {
namespace {

[[noreturn]] void unsupported(const Device& device, const char* what) {
  throw DeviceError(DeviceFault::unsupported, fmt::format("{} has no {}", device.info().id, what));
}

}  // namespace

std::unique_ptr<Buffer> Device::view(Buffer&, std::size_t, std::size_t) { unsupported(*this, "parts of buffers"); }
std::unique_ptr<Buffer> Device::wrap_buffer(void*, std::size_t) { unsupported(*this, "buffers of others"); }
std::unique_ptr<PinnedMemory> Device::pin(std::span<std::byte>) { return nullptr; }
void Device::launch_runs(std::span<const LaunchRun> runs, Queue* queue) {
  for (const LaunchRun& run : runs) launch(*run.kernel, run.count, queue);
}
std::unique_ptr<LaunchGraph> Device::record_graph(const std::function<void()>&) { return nullptr; }
void Device::launch_graph(LaunchGraph&) { unsupported(*this, "graphs of launches"); }
Queue& Device::main_queue() { unsupported(*this, "queues"); }
std::unique_ptr<Queue> Device::make_queue(const QueueOptions&) { unsupported(*this, "further queues"); }
std::unique_ptr<Queue> Device::wrap_queue(void*) { unsupported(*this, "queues of others"); }
void Device::wait(Queue&, const Marker&) { unsupported(*this, "queues that wait for each other"); }

}  // namespace ergotune

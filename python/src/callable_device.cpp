// Python callables as kernels: the device on which they run does everything except their launches, so that they are
// timed, observed and stored like any kernel (ergotune/_callables).
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "api/exchange.hpp"
#include "bindings.hpp"
#include "device/decorator.hpp"
#include "ergotune/error.hpp"
#include "evaluate/live/worker_transport.hpp"
#include "hooks.hpp"
#include "kernel/compare.hpp"
#include "measure/allocation_limits.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune::python {
namespace {

using Held = std::shared_ptr<py::object>;

constexpr std::string_view kEntry = "python callable";

/// Converts an exception of a callable by the kind that ergotune._callables assigns to it. Requires the GIL.
[[noreturn]] void raise_fault(const py::error_already_set& error) {
  note_interruption(error);
  const py::object value = error.value();
  const auto kind = py::str(py::getattr(value, "kind", py::str(""))).cast<std::string>();
  const std::string message = kind.empty() ? described(error, py::none()) : py::str(value).cast<std::string>();
  if (kind == "user") throw UserError(message);
  if (kind == "wrong") throw WrongOutputs(message);
  if (kind == "compile") throw DeviceError(DeviceFault::compile, message);
  if (kind == "launch") throw DeviceError(DeviceFault::launch, message);
  if (kind == "memory") throw DeviceError(DeviceFault::out_of_memory, message);
  if (kind == "device") throw DeviceError(DeviceFault::runtime, message);  // the process is not used any more
  throw Error(message);
}

template <class Work>
auto in_python(Work work) {
  const py::gil_scoped_acquire gil;
  const InterruptibleCall call;
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      InterruptibleCall::check();
    } else {
      auto made = work();
      InterruptibleCall::check();
      return made;
    }
  } catch (const py::error_already_set& error) {
    raise_fault(error);
  }
}

/// The values of the configuration as text.
std::string values_of(const CompileJob& job) {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, text] : job.defines) values[name] = text;
  return values.dump();
}

class CallableCompiler : public Compiler {
 public:
  CallableCompiler(Held session, std::function<std::unique_ptr<Compiler>()> open_other)
      : session_(std::move(session)), open_other_(std::move(open_other)) {}

  Binary compile(const CompileJob& job) override {
    if (!job.source.starts_with(kPythonCallable)) return other().compile(job);
    Binary binary;
    binary.bytes = values_of(job);
    binary.entry = kEntry;
    in_python([&] { session_->attr("compile")(binary.bytes); });
    return binary;
  }
  std::string identity() const override { return "Python callable"; }

 private:
  Compiler& other() {
    if (!other_) other_ = open_other_();
    return *other_;
  }
  Held session_;
  std::function<std::unique_ptr<Compiler>()> open_other_;
  std::unique_ptr<Compiler> other_;
};

class CallableKernel : public LoadedKernel {
 public:
  explicit CallableKernel(Held kernel) : kernel_(std::move(kernel)) {
    in_python([&] {
      const auto resources = kernel_->attr("resources").cast<std::map<std::string, int>>();
      const auto take = [&](const char* name, int& into) {
        if (const auto found = resources.find(name); found != resources.end()) into = found->second;
      };
      take("registers", resources_.registers);
      take("shared_bytes", resources_.shared_bytes);
      take("local_bytes", resources_.local_bytes);
      take("max_threads_per_block", resources_.max_threads_per_block);
      take("spilled_registers", resources_.spilled_registers);
      order_ = py::str(kernel_->attr("order")).cast<std::string>();
      changes_arguments_ = kernel_->attr("changes_arguments").cast<bool>();
      needs_reset_ = kernel_->attr("needs_reset").cast<bool>();
      remark_ = py::str(kernel_->attr("remark")).cast<std::string>();
    });
  }
  Resources resources() const override { return resources_; }
  void bind(const LaunchGeometry&, const std::vector<KernelArgument>&) override {}
  std::unique_ptr<LoadedKernel> another() override { return std::make_unique<CallableKernel>(kernel_); }
  bool changes_own_inputs() const override { return changes_arguments_; }
  bool needs_reset() const override { return needs_reset_; }
  std::string remark() const override { return remark_; }
  void reset_own_inputs() override {
    if (changes_arguments_) in_python([&] { kernel_->attr("restore")(); });
  }

  /// The queue to which its launches go: "queue", the one that it was given; "legacy", CUDA's default stream; "any".
  const std::string& order() const { return order_; }
  void launch(std::size_t count) {
    in_python([&] { kernel_->attr("launch")(count); });
  }

  /// One launch as the device has recorded it: null before the first, and where it cannot be recorded.
  std::unique_ptr<LaunchGraph> graph;
  bool tried_graph = false;

 private:
  Held kernel_;
  Resources resources_;
  std::string order_, remark_;
  bool changes_arguments_ = false, needs_reset_ = false;
};

class CallableDevice : public Device {
 public:
  CallableDevice(std::unique_ptr<Device> device, Held session)
      : device_(std::move(device)), session_(std::move(session)) {}

  std::unique_ptr<Compiler> make_compiler() override {
    return std::make_unique<CallableCompiler>(session_, [this] { return device_->make_compiler(); });
  }
  std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
    if (binary.entry != kEntry) return device_->load(binary);
    device_->synchronise();  // the callable may use another queue for its preparation
    auto kernel = in_python([&] { return keep(session_->attr("prepare")(binary.bytes)); });
    auto loaded = std::make_unique<CallableKernel>(std::move(kernel));
    if (loaded->order() != "queue") device_->settle();
    capturable_ = loaded->order() == "queue";
    return loaded;
  }
  void launch(LoadedKernel& kernel, std::size_t count, Queue* queue) override {
    auto* callable = dynamic_cast<CallableKernel*>(&kernel);
    if (!callable) return device_->launch(kernel, count, queue);
    if (info().is_cpu || recording_) return callable->launch(count);
    if (callable->order() == "queue") return launch_on_queue(*callable, count);
    if (callable->order() == "legacy") return launch_on_legacy(*callable, count);
    device_->synchronise();
    callable->launch(count);
    device_->settle();
  }
  std::unique_ptr<LaunchGraph> record_graph(const std::function<void()>& work) override {
    if (!capturable_) return nullptr;
    recording_ = true;
    auto graph = device_->record_graph([&] {
      try {
        work();
      } catch (const DeviceError&) {
        throw;
      } catch (const std::exception& error) {  // what cannot be recorded as a graph may still run without one
        throw DeviceError(DeviceFault::launch, error.what());
      }
    });
    recording_ = false;
    return graph;
  }

  const DeviceInfo& info() const override { return device_->info(); }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  std::unique_ptr<Buffer> view(Buffer& whole, std::size_t offset, std::size_t bytes) override {
    return device_->view(whole, offset, bytes);
  }
  std::unique_ptr<Buffer> wrap_buffer(void* native, std::size_t bytes) override {
    return device_->wrap_buffer(native, bytes);
  }
  void settle() override { device_->settle(); }
  void write(Buffer& buffer, std::span<const std::byte> data, std::size_t offset) override {
    device_->write(buffer, data, offset);
  }
  void read(const Buffer& buffer, std::span<std::byte> data, std::size_t offset) override {
    device_->read(buffer, data, offset);
  }
  std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory) override { return device_->pin(memory); }
  void copy(Buffer& to, const Buffer& from, Queue* queue) override { device_->copy(to, from, queue); }
  void fill(Buffer& buffer, unsigned char byte, Queue* queue) override { device_->fill(buffer, byte, queue); }
  void launch_graph(LaunchGraph& graph) override { device_->launch_graph(graph); }
  void hold() override { device_->hold(); }
  void release() override { device_->release(); }
  Queue& main_queue() override { return device_->main_queue(); }
  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override { return device_->make_queue(options); }
  std::unique_ptr<Queue> wrap_queue(void* native) override { return device_->wrap_queue(native); }
  void wait(Queue& queue, const Marker& marker) override { device_->wait(queue, marker); }
  std::unique_ptr<Marker> make_marker() override { return device_->make_marker(); }
  void record(Marker& marker, Queue* queue) override { device_->record(marker, queue); }
  bool passed(const Marker& marker) override { return device_->passed(marker); }
  double seconds_between(const Marker& start, const Marker& stop) override {
    return device_->seconds_between(start, stop);
  }
  void synchronise() override { device_->synchronise(); }

 private:
  /// As graphs of one launch, so that the device never waits for Python.
  void launch_on_queue(CallableKernel& kernel, std::size_t count) {
    if (!std::exchange(kernel.tried_graph, true)) kernel.graph = record_graph([&] { kernel.launch(1); });
    if (!kernel.graph) return kernel.launch(count);
    for (std::size_t i = 0; i < count; ++i) device_->launch_graph(*kernel.graph);
  }
  /// The default stream waits for the main queue, and the main queue for it.
  void launch_on_legacy(CallableKernel& kernel, std::size_t count) {
    if (!legacy_) {
      legacy_ = device_->wrap_queue(reinterpret_cast<void*>(std::uintptr_t{1}));  // CU_STREAM_LEGACY, hipStreamLegacy
      before_ = device_->make_marker();
      after_ = device_->make_marker();
    }
    device_->record(*before_);
    device_->wait(*legacy_, *before_);
    kernel.launch(count);
    device_->record(*after_, legacy_.get());
    device_->wait(device_->main_queue(), *after_);
  }

  std::unique_ptr<Device> device_;
  Held session_;
  std::unique_ptr<Queue> legacy_;
  std::unique_ptr<Marker> before_, after_;
  bool capturable_ = false, recording_ = false;
};

/// `hook`: has open_device(id, is_cpu, queue) and open_compiler(id), which return a session or None.
void set_device_hook(const py::object& hook) {
  if (hook.is_none()) return decorate_devices({});
  const Held held = keep(hook);
  DeviceDecorator decorator;
  decorator.device = [held](std::unique_ptr<Device> device) -> std::unique_ptr<Device> {
    const DeviceInfo& info = device->info();
    const auto queue = info.is_cpu ? 0 : reinterpret_cast<std::uintptr_t>(device->main_queue().native_handle());
    Held session = in_python([&] { return keep(held->attr("open_device")(info.id, info.is_cpu, queue)); });
    if (session->is_none()) return device;
    return std::make_unique<CallableDevice>(std::move(device), std::move(session));
  };
  decorator.compiler = [held](const std::string& id) -> std::unique_ptr<Compiler> {
    Held session = in_python([&] { return keep(held->attr("open_compiler")(id)); });
    if (session->is_none()) return nullptr;
    return std::make_unique<CallableCompiler>(std::move(session), [held, id] {
      const py::gil_scoped_acquire gil;
      held->attr("close")();
      return ergotune::open_compiler(id);
    });
  };
  decorate_devices(std::move(decorator));
}

}  // namespace

void bind_callables(py::module_& module) {
  module.def("set_device_hook", &set_device_hook, py::arg("hook"));
  module.def("run_worker", &run_worker, py::arg("descriptor"), py::arg("log"),
             py::call_guard<py::gil_scoped_release>());
  module.def("limit_worker", &limit_worker, py::arg("seconds"), py::arg("message"));
  module.def("begin_allocation_limits", &AllocationLimits::begin);
  module.def("sampled_elements", [](std::size_t count) {
    const std::vector<std::size_t> indices = sampled_elements(count);
    return py::array_t<std::int64_t>(static_cast<py::ssize_t>(indices.size()),
                                     reinterpret_cast<const std::int64_t*>(indices.data()));
  });
  module.def("usual_size", [](const py::array_t<double>& sizes) {
    return usual_size({sizes.data(), sizes.data() + sizes.size()});
  });
  module.def(
      "callable_source", [](const std::string& text) { return std::string(kPythonCallable) + text; }, py::arg("text"));
}

}  // namespace ergotune::python

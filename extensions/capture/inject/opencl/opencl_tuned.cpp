#include "capture/inject/opencl/opencl_tuned.hpp"

#include "capture/inject/session.hpp"

namespace ergotune::inject {
namespace {

bool same(const LaunchShape& a, const LaunchShape& b) {
  return a.dimensions == b.dimensions && a.global == b.global && a.block_is_open == b.block_is_open &&
         (a.block_is_open || a.block == b.block);
}

/// Compiles what the answer says; the message of what failed, or nothing.
std::string build(TunedLaunch& tuned, cl_context context, cl_device_id device, const Answer& answer,
                  std::size_t arguments) {
  const char* text = answer.code.c_str();
  const std::size_t length = answer.code.size();
  cl_int code = CL_SUCCESS;
  tuned.program = next().CreateProgramWithSource(context, 1, &text, &length, &code);
  if (tuned.program) code = next().BuildProgram(tuned.program, 1, &device, answer.options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) return "it does not compile (" + std::to_string(code) + ")";
  tuned.kernel = next().CreateKernel(tuned.program, answer.function.c_str(), &code);
  if (!tuned.kernel) return "it has no kernel of that name (" + std::to_string(code) + ")";
  if (info_of<cl_uint>(next().GetKernelInfo, tuned.kernel, CL_KERNEL_NUM_ARGS) != arguments)
    return "it has other arguments";
  tuned.versions.assign(arguments, 0);
  return {};
}

std::shared_ptr<TunedLaunch> ask(cl_command_queue queue, cl_device_id device, const KernelState& kernel,
                                 const LaunchShape& shape) {
  auto tuned = std::make_shared<TunedLaunch>();
  tuned->device = device;
  tuned->requested = shape;
  if (!kernel.program->without_source.empty()) return tuned;
  const auto answer =
      ask_for_launch(kernel.name, kernel.program->source, kernel.program->options, device_name(device), shape, 0);
  if (!answer || !answer->use) return tuned;
  tuned->description = answer->description;
  tuned->shape = answer->shape;
  const std::string failure = build(*tuned, info_of<cl_context>(next().GetCommandQueueInfo, queue, CL_QUEUE_CONTEXT),
                                    device, *answer, kernel.arguments.size());
  tuned->use = failure.empty();
  if (!tuned->use) Session::get().send({"failed", kernel.name, tuned->description, failure});
  return tuned;
}

std::shared_ptr<TunedLaunch> tuned_for(cl_command_queue queue, KernelState& kernel, const LaunchShape& shape) {
  const auto device = info_of<cl_device_id>(next().GetCommandQueueInfo, queue, kQueueDevice);
  const std::lock_guard lock(kernel.mutex);
  for (const auto& known : kernel.tuned)
    if (known->device == device && same(known->requested, shape)) return known;
  // a program that never launches twice alike is not worth asking for each
  constexpr std::size_t kMostShapes = 64;
  if (kernel.tuned.size() >= kMostShapes) return nullptr;
  kernel.tuned.push_back(ask(queue, device, kernel, shape));
  return kernel.tuned.back();
}

bool set_arguments(TunedLaunch& tuned, const KernelState& kernel) {
  const auto& set = next().SetKernelArg;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const ArgumentValue& value = kernel.arguments[i];
    if (!value.set || value.shared_virtual) return false;
    if (tuned.versions[i] == value.version) continue;
    if (set(tuned.kernel, static_cast<cl_uint>(i), value.size, value.local ? nullptr : value.bytes.data()) !=
        CL_SUCCESS)
      return false;
    tuned.versions[i] = value.version;
  }
  return true;
}

struct Reported {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::shared_ptr<TunedLaunch>>> used;
};
Reported& reported() {
  static Reported* const list = new Reported;
  return *list;
}

}  // namespace

TunedLaunch::~TunedLaunch() {
  if (kernel) next().ReleaseKernel(kernel);
  if (program) next().ReleaseProgram(program);
}

std::optional<cl_int> launch_tuned(cl_command_queue queue, KernelState& kernel, const LaunchShape& shape,
                                   const std::size_t* offset, cl_uint waits, const cl_event* waits_for,
                                   cl_event* event) {
  if (kernel.has_execution_info) return std::nullopt;
  const std::shared_ptr<TunedLaunch> tuned = tuned_for(queue, kernel, shape);
  if (!tuned || !tuned->use) return std::nullopt;
  const std::lock_guard lock(tuned->mutex);
  if (tuned->use && set_arguments(*tuned, kernel)) {
    const cl_int code =
        next().EnqueueNDRangeKernel(queue, tuned->kernel, static_cast<cl_uint>(shape.dimensions), offset,
                                    tuned->shape.global.data(), tuned->shape.block.data(), waits, waits_for, event);
    if (code == CL_SUCCESS) {
      if (tuned->launches++ == 0) {
        const std::lock_guard list(reported().mutex);
        reported().used.emplace_back(kernel.name, tuned);
      }
      return code;
    }
  }
  tuned->use = false;
  Session::get().send({"failed", kernel.name, tuned->description, "it could not be launched"});
  return std::nullopt;
}

void report_tuned() {
  const std::lock_guard lock(reported().mutex);
  for (const auto& [name, tuned] : reported().used) {
    const std::lock_guard of_it(tuned->mutex);
    if (tuned->launches)
      Session::get().send(
          {"used", name, tuned->description, description_of(tuned->shape), std::to_string(tuned->launches)});
    tuned->launches = 0;
  }
}

}  // namespace ergotune::inject

#include "capture/inject/opencl/opencl_capture.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "capture/inject/session.hpp"

namespace ergotune::inject {
namespace {

using capture::CapturedArgument;

template <class T>
bool argument_info(cl_kernel kernel, cl_uint position, cl_uint name, T& value) {
  const auto& function = next().GetKernelArgInfo;
  return function && function(kernel, position, name, sizeof value, &value, nullptr) == CL_SUCCESS;
}
std::string argument_text(cl_kernel kernel, cl_uint position, cl_uint name) {
  char text[256] = {};
  const auto& function = next().GetKernelArgInfo;
  return function && function(kernel, position, name, sizeof text - 1, text, nullptr) == CL_SUCCESS ? text : "";
}

/// A kernel that can be asked about its arguments: the program's own where the driver keeps what it needs, else one
/// built for the purpose.
class InformedKernel {
 public:
  InformedKernel(cl_context context, cl_device_id device, cl_kernel handle, const KernelState& kernel)
      : kernel_(handle) {
    cl_uint address = 0;
    if (kernel.arguments.empty() || argument_info(handle, 0, kArgAddress, address)) return;
    const char* source = kernel.program->source.c_str();
    const std::size_t length = kernel.program->source.size();
    cl_int code = CL_SUCCESS;
    program_ = next().CreateProgramWithSource(context, 1, &source, &length, &code);
    const std::string options = kernel.program->options + " -cl-kernel-arg-info";
    const bool built =
        program_ && next().BuildProgram(program_, 1, &device, options.c_str(), nullptr, nullptr) == CL_SUCCESS;
    if (built) own_ = next().CreateKernel(program_, kernel.name.c_str(), &code);
    if (!own_ || !argument_info(own_, 0, kArgAddress, address))
      throw Refused("the driver does not report its arguments (-cl-kernel-arg-info)", true);
    kernel_ = own_;
  }
  ~InformedKernel() {
    if (own_) next().ReleaseKernel(own_);
    if (program_) next().ReleaseProgram(program_);
  }
  InformedKernel(const InformedKernel&) = delete;
  InformedKernel& operator=(const InformedKernel&) = delete;
  cl_kernel get() const { return kernel_; }

 private:
  cl_kernel kernel_ = nullptr, own_ = nullptr;
  cl_program program_ = nullptr;
};

template <class T>
T work_group_info(cl_kernel kernel, cl_device_id device, cl_uint name) {
  T value{};
  const auto& function = next().GetKernelWorkGroupInfo;
  if (function) (void)function(kernel, device, name, sizeof value, &value, nullptr);
  return value;
}

void finish_queue(cl_command_queue queue) { (void)next().Finish(queue); }

/// "const float*" -> "float": what the problem file calls the elements.
std::string plain_type(std::string type) {
  for (const std::string_view word : {"const ", "__global ", "__constant ", "volatile ", "restrict "})
    for (std::size_t at; (at = type.find(word)) != std::string::npos;) type.erase(at, word.size());
  while (!type.empty() && (type.back() == '*' || type.back() == ' ')) type.pop_back();
  return type;
}

}  // namespace

OpenclCapture::OpenclCapture(cl_command_queue queue, cl_kernel handle, const KernelState& kernel,
                             const LaunchShape& shape, const std::vector<cl_event>& waits_for)
    : queue_(queue),
      context_(info_of<cl_context>(next().GetCommandQueueInfo, queue, CL_QUEUE_CONTEXT)),
      device_(info_of<cl_device_id>(next().GetCommandQueueInfo, queue, kQueueDevice)) {
  if (!kernel.program->without_source.empty()) throw Refused("its program was " + kernel.program->without_source, true);
  for (const cl_event event : waits_for) {
    // only the program itself ends it, perhaps after this call
    if (info_of<cl_uint>(next().GetEventInfo, event, kEventCommandType) == kCommandUser &&
        info_of<cl_int>(next().GetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS) > CL_COMPLETE)
      throw Refused("it waits for an event of the program's own", false);
  }
  if (!waits_for.empty()) (void)next().WaitForEvents(static_cast<cl_uint>(waits_for.size()), waits_for.data());
  finish_queue(queue);
  launch_.kernel = kernel.name;
  launch_.dimensions = shape.dimensions;
  launch_.global = shape.global;
  launch_.block = shape.block;
  launch_.block_was_open = shape.block_is_open;
  launch_.most_threads = work_group_info<std::size_t>(handle, device_, CL_KERNEL_WORK_GROUP_SIZE);
  if (shape.block_is_open)
    choose_block(work_group_info<std::array<std::size_t, 3>>(handle, device_, kCompileWorkGroupSize));
  launch_.tune_rounding = Session::get().wishes().tune_rounding;
  take_code(kernel);
  const InformedKernel informed(context_, device_, handle, kernel);
  const auto count = info_of<cl_uint>(next().GetKernelInfo, handle, CL_KERNEL_NUM_ARGS);
  for (cl_uint i = 0; i < count; ++i) {
    if (i >= kernel.arguments.size() || !kernel.arguments[i].set)
      throw Refused("its argument " + std::to_string(i) + " was set in a way that is not seen", true);
    take_argument(informed.get(), i, kernel.arguments[i]);
  }
  for (const Buffer& buffer : buffers_) launch_.arguments[buffer.argument].bytes = read(buffer);
}

void OpenclCapture::choose_block(const std::array<std::size_t, 3>& demanded) {
  if (demanded[0] != 0) {
    launch_.block = demanded;
    return;
  }
  const std::size_t most = launch_.most_threads ? std::min<std::size_t>(launch_.most_threads, 256) : 64;
  launch_.block = {capture::block_sizes(launch_.global[0], 1, most).back(), 1, 1};
}

void OpenclCapture::take_code(const KernelState& kernel) {
  launch_.program = program_command();
  launch_.device = device_name(device_);
  launch_.source = kernel.program->source;
  const std::vector<std::string> words = capture::split_options(kernel.program->options);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-I")) {
      launch_.options.push_back(words[i]);
      continue;
    }
    std::string folder = words[i].size() > 2 ? words[i].substr(2) : i + 1 < words.size() ? words[++i] : "";
    if (folder.size() > 1 && (folder.front() == '"' || folder.front() == '\''))
      folder = folder.substr(1, folder.size() - 2);
    launch_.include_folders.push_back(std::filesystem::absolute(folder).lexically_normal().string());
  }
}

void OpenclCapture::take_argument(cl_kernel informed, cl_uint position, const ArgumentValue& value) {
  CapturedArgument argument;
  argument.name = argument_text(informed, position, kArgName);
  argument.type = plain_type(argument_text(informed, position, kArgTypeName));
  const std::string which = "its argument " + (argument.name.empty() ? std::to_string(position) : argument.name);
  cl_uint address = 0;
  if (!argument_info(informed, position, kArgAddress, address))
    throw Refused("the driver does not report " + which, true);
  if (value.shared_virtual) throw Refused(which + " is shared virtual memory, whose extent is unknown", true);
  for (const std::string_view type : {"image", "sampler_t", "pipe", "queue_t", "event_t", "reserve_id_t"})
    if (argument.type.starts_with(type))
      throw Refused(which + " is " + argument.type + "; only buffers and values are captured", true);
  if (address == kAddressLocal) {
    argument.kind = CapturedArgument::Kind::local_memory;
    argument.local_bytes = value.size;
  } else if (address == kAddressGlobal || address == kAddressConstant) {
    cl_bitfield qualifiers = 0;
    argument.constant =
        address == kAddressConstant ||
        (argument_info(informed, position, kArgTypeQualifier, qualifiers) && (qualifiers & kTypeConst) != 0);
    take_buffer(argument, value, position);
  } else {
    argument.kind = CapturedArgument::Kind::scalar;
    argument.bytes = value.bytes;
  }
  launch_.arguments.push_back(std::move(argument));
}

void OpenclCapture::take_buffer(CapturedArgument& argument, const ArgumentValue& value, cl_uint position) {
  cl_mem memory = nullptr;
  if (value.bytes.size() == sizeof memory) std::memcpy(&memory, value.bytes.data(), sizeof memory);
  if (!memory) {  // a null pointer: as a number it is the same bytes
    argument.kind = CapturedArgument::Kind::scalar;
    argument.type = "ulong";
    argument.bytes.assign(sizeof memory, std::byte{0});
    return;
  }
  const std::string which = "its argument " + argument.name;
  if (info_of<cl_uint>(next().GetMemObjectInfo, memory, kMemType) != kMemObjectBuffer)
    throw Refused(which + " is an image or a pipe; only buffers are captured", true);
  // parts of one buffer are one memory only where they are the same part
  cl_mem whole = info_of<cl_mem>(next().GetMemObjectInfo, memory, kMemAssociated);
  const auto offset = whole ? info_of<std::size_t>(next().GetMemObjectInfo, memory, kMemOffset) : 0;
  const auto bytes = info_of<std::size_t>(next().GetMemObjectInfo, memory, CL_MEM_SIZE);
  if (!whole) whole = memory;
  for (const Buffer& other : buffers_) {
    const cl_mem others_parent = info_of<cl_mem>(next().GetMemObjectInfo, other.memory, kMemAssociated);
    const auto others_offset =
        others_parent ? info_of<std::size_t>(next().GetMemObjectInfo, other.memory, kMemOffset) : 0;
    const bool overlaps = (others_parent ? others_parent : other.memory) == whole &&
                          offset < others_offset + other.bytes && others_offset < offset + bytes;
    if (overlaps && (offset != others_offset || bytes != other.bytes))
      throw Refused(which + " and another one overlap in one buffer", true);
  }
  bytes_ += bytes;
  if (bytes_ > Session::get().wishes().most_bytes)
    throw Refused("its buffers have more than " + std::to_string(Session::get().wishes().most_bytes >> 20) +
                      " MiB (--max-memory)",
                  false);
  argument.memory = reinterpret_cast<std::uintptr_t>(whole) ^ (offset * 0x9e3779b97f4a7c15u);
  buffers_.push_back({position, bytes, memory});
}

std::vector<std::byte> OpenclCapture::read(const Buffer& buffer) {
  std::vector<std::byte> contents(buffer.bytes);
  const auto read_from = [&](cl_mem memory) {
    return next().EnqueueReadBuffer(queue_, memory, 1, 0, buffer.bytes, contents.data(), 0, nullptr, nullptr);
  };
  if (read_from(buffer.memory) == CL_SUCCESS) return contents;
  // made so that the host may not read it: by way of a copy
  cl_int code = CL_SUCCESS;
  const cl_mem copy = next().CreateBuffer(context_, CL_MEM_READ_WRITE, buffer.bytes, nullptr, &code);
  if (copy) {
    code = next().EnqueueCopyBuffer(queue_, buffer.memory, copy, 0, 0, buffer.bytes, 0, nullptr, nullptr);
    if (code == CL_SUCCESS) {
      finish_queue(queue_);
      code = read_from(copy);
    }
    next().ReleaseMemObject(copy);
  }
  if (!copy || code != CL_SUCCESS) throw Refused("a buffer cannot be read (" + std::to_string(code) + ")", false);
  return contents;
}

std::vector<std::string> OpenclCapture::finish(const std::string& folder) {
  finish_queue(queue_);
  for (const Buffer& buffer : buffers_) launch_.arguments[buffer.argument].after = read(buffer);
  return capture::write_capture(std::move(launch_), folder);
}

}  // namespace ergotune::inject

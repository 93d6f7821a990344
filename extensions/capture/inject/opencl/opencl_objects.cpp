#include "capture/inject/opencl/opencl_objects.hpp"

#include "capture/inject/opencl/opencl_tuned.hpp"

namespace ergotune::inject {

Objects& Objects::get() {
  static Objects* const objects = new Objects;
  return *objects;
}

void Objects::add(cl_program program, ProgramState state) {
  const std::lock_guard lock(mutex_);
  programs_[program] = std::make_shared<ProgramState>(std::move(state));
}

void Objects::built(cl_program program, const char* options) {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(program);
  if (found == programs_.end()) return;
  // kernels that exist keep what they were made from
  auto state = std::make_shared<ProgramState>(*found->second);
  state->options = options ? options : "";
  found->second = std::move(state);
}

std::shared_ptr<ProgramState> Objects::find(cl_program program) {
  const std::shared_lock lock(mutex_);
  const auto found = programs_.find(program);
  return found == programs_.end() ? nullptr : found->second;
}

void Objects::add(cl_kernel kernel, std::string name, std::shared_ptr<ProgramState> program) {
  if (!program) return;
  auto state = std::make_unique<KernelState>();
  state->name = std::move(name);
  state->entry = KernelLog::get().entry(state->name, program->source, program->options);
  state->program = std::move(program);
  const std::lock_guard lock(mutex_);
  kernels_[kernel] = std::move(state);
}

KernelState* Objects::find(cl_kernel kernel) {
  const std::shared_lock lock(mutex_);
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? nullptr : found->second.get();
}

void Objects::clone(cl_kernel from, cl_kernel to) {
  const KernelState* original = find(from);
  if (!original) return;
  auto state = std::make_unique<KernelState>();
  state->name = original->name;
  state->program = original->program;
  state->arguments = original->arguments;
  state->has_execution_info = original->has_execution_info;
  state->entry = original->entry;
  const std::lock_guard lock(mutex_);
  kernels_[to] = std::move(state);
}

void Objects::refer(cl_program program, int by) {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(program);
  if (found != programs_.end() && (found->second->references += by) <= 0) programs_.erase(found);
}

void Objects::refer(cl_kernel kernel, int by) {
  std::unique_ptr<KernelState> ended;  // what it holds is released without the lock
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(kernel);
  if (found == kernels_.end() || (found->second->references += by) > 0) return;
  ended = std::move(found->second);
  kernels_.erase(found);
}

}  // namespace ergotune::inject

// NVRTC's or hiprtc's functions in front of their own (LD_PRELOAD): what a program compiles at run time is noted on its
// way. Programs that look them up in its library find these as well.
#include <map>
#include <mutex>

#include "base/kernel_source/identifiers.hpp"
#include "capture/inject/gpu/gpu_hooks.hpp"

#define RTC(name) ERGOTUNE_NAMED(nvrtc##name, hiprtc##name)
#define RTC_NAME(name) ERGOTUNE_NAMED("nvrtc" name, "hiprtc" name)

namespace ergotune::inject::gpu {
namespace {

using Program = void*;
constexpr int kInternalError = 11;

struct Sources {
  std::mutex mutex;
  std::map<Program, std::shared_ptr<RuntimeSource>> made;
  std::vector<std::shared_ptr<const RuntimeSource>> compiled;
};
Sources& sources() {
  static Sources* const all = new Sources;
  return *all;
}

/// Calls the compiler's own function; `note` then sees the program's source, where there is one.
template <class Note, class... Arguments>
int call_and_note_source(const char* name, Program program, Note&& note, Arguments... arguments) {
  const auto look = [&] {
    if (!Session::get().wants(CaptureRequest::Mode::capture)) return;
    const std::lock_guard lock(sources().mutex);
    const auto found = sources().made.find(program);
    if (found != sources().made.end()) note(*found->second);
  };
  return call_and_note(name, kInternalError, look, program, arguments...);
}

}  // namespace

std::pair<std::shared_ptr<const RuntimeSource>, std::string> source_of(const std::string& symbol,
                                                                       const std::string& word) {
  const std::lock_guard lock(sources().mutex);
  for (auto source = sources().compiled.rbegin(); source != sources().compiled.rend(); ++source) {
    for (const auto& [lowered, expression] : (*source)->names)
      if (lowered == symbol) return {*source, expression};
    // extern "C", or a plain function
    if ((*source)->names.empty() && kernel_source::identifiers_in((*source)->text).contains(word))
      return {*source, word};
  }
  return {};
}

}  // namespace ergotune::inject::gpu

using namespace ergotune::inject::gpu;

ERGOTUNE_EXPORT int RTC(CreateProgram)(Program* program, const char* source, const char* name, int count,
                                       const char* const* headers, const char* const* include_names) {
  const auto note = [&] {
    if (!source || !Session::get().wants(CaptureRequest::Mode::capture)) return;
    auto made = std::make_shared<RuntimeSource>();
    made->text = source;
    for (int i = 0; i < count && headers && include_names; ++i)
      made->headers.emplace_back(include_names[i], headers[i]);
    const std::lock_guard lock(sources().mutex);
    sources().made[*program] = std::move(made);
  };
  return call_and_note(RTC_NAME("CreateProgram"), kInternalError, note, program, source, name, count, headers,
                       include_names);
}

ERGOTUNE_EXPORT int RTC(AddNameExpression)(Program program, const char* expression) {
  return call_and_note_source(
      RTC_NAME("AddNameExpression"), program, [&](RuntimeSource& source) { source.names.emplace_back("", expression); },
      expression);
}

ERGOTUNE_EXPORT int RTC(CompileProgram)(Program program, int count, const char* const* options) {
  const auto note = [&](const RuntimeSource& source) {
    auto compiled = std::make_shared<RuntimeSource>(source);
    for (int i = 0; i < count && options; ++i) compiled->options.emplace_back(options[i]);
    auto* const lower =
        reinterpret_cast<int (*)(Program, const char*, const char**)>(Driver::find(RTC_NAME("GetLoweredName")));
    for (auto& [lowered, expression] : compiled->names) {
      const char* text = nullptr;
      if (lower && lower(program, expression.c_str(), &text) == 0 && text) lowered = text;
    }
    sources().compiled.push_back(std::move(compiled));
  };
  return call_and_note_source(RTC_NAME("CompileProgram"), program, note, count, options);
}

ERGOTUNE_EXPORT int RTC(DestroyProgram)(Program* program) {
  if (program)
    quietly([&] {
      const std::lock_guard lock(sources().mutex);
      sources().made.erase(*program);
    });
  return call_and_note(
      RTC_NAME("DestroyProgram"), kInternalError, [] {}, program);
}

// The C interface. No exception leaves it.
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "base/files.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/launcher.h"
#include "ergotune/problem_file.hpp"
#include "launcher/tuned_kernel.hpp"

using namespace ergotune;
using namespace ergotune::launcher;

struct ergotune_kernel {
  TunedKernel kernel;
};

namespace {

constexpr int kMistake = -1000;
thread_local std::string last_error, last_answer;

/// Returns the result of `call`, or kMistake if it throws.
template <class Call>
int guarded(Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "something that is not a std::exception was thrown";
  }
  return kMistake;
}

std::string text(const char* given) { return given ? given : ""; }

/// Parses numbers as in problem files, independently of the application's locale.
Value value_from(const std::string& word) {
  const char *begin = word.data() + (word.starts_with('+') ? 1 : 0), *end = word.data() + word.size();
  std::int64_t integer = 0;
  if (const auto read = std::from_chars(begin, end, integer); read.ec == std::errc() && read.ptr == end) return integer;
  double real = 0;
  if (const auto read = std::from_chars(begin, end, real); read.ec == std::errc() && read.ptr == end) return real;
  return word;
}

Constants constants_from(const std::string& list) {
  Constants constants;
  for (const std::string& word : split(list)) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("constants are given as \"n=4096,type=float\", not as \"{}\"", list));
    constants[word.substr(0, equals)] = value_from(word.substr(equals + 1));
  }
  return constants;
}

std::vector<std::filesystem::path> folders_from(std::string list, const std::filesystem::path& beside) {
  if (list.empty()) list = environment_variable("ERGOTUNE_WISDOM");
  if (list.empty()) return {beside / "wisdom"};
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : split(list, ':'))
    if (!folder.empty()) folders.emplace_back(folder);
  return folders;
}

KernelSettings settings_from(const ergotune_options* given, const std::filesystem::path& folder) {
  ergotune_options options{};
  // The structure of an application that was built with an older header is shorter.
  if (given) {
    if (given->size < offsetof(ergotune_options, warn))
      throw UserError("ergotune_options.size is to be sizeof(ergotune_options)");
    std::memcpy(&options, given, std::min(given->size, sizeof options));
  }
  KernelSettings settings;
  settings.backend = text(options.backend);
  settings.kernel = text(options.kernel);
  settings.objective = options.objective ? options.objective : environment_variable("ERGOTUNE_OBJECTIVE");
  settings.wisdom = folders_from(text(options.wisdom), folder);
  settings.wisdom_in_environment = text(options.wisdom).empty() && !environment_variable("ERGOTUNE_WISDOM").empty();
  settings.constants = constants_from(text(options.constants));
  const std::string cache = text(options.cache);
  if (cache.empty())
    settings.cache = CompileCache::default_folder();
  else if (cache != "none")
    settings.cache = cache;
  settings.background = options.background != 0;
  settings.clocks = options.clocks != 0 || environment_variable("ERGOTUNE_CLOCKS") == "1";
  settings.online = options.online;
  if (const std::string bound = environment_variable("ERGOTUNE_ONLINE"); options.online == 0 && !bound.empty()) {
    const Value value = value_from(bound);
    if (!value.is_number()) throw UserError(fmt::format("ERGOTUNE_ONLINE is a bound such as 0.05, not \"{}\"", bound));
    settings.online = value.as_real();
  }
  if (!(settings.online >= 0)) throw UserError("the bound of online tuning is a share of the time, such as 0.05");
  if (options.warn) {
    settings.warn = [warn = options.warn, data = options.data](const std::string& message) {
      warn(message.c_str(), data);
    };
  } else {
    // std::fprintf, since fmt::print would throw if the application has no standard error
    settings.warn = [](const std::string& message) { std::fprintf(stderr, "ergotune: %s\n", message.c_str()); };
  }
  return settings;
}

/// Opens a kernel from `text` as if it were the contents of `file`.
ergotune_kernel* open(const ergotune_options* options, const std::string& text, const std::filesystem::path& file) {
  ergotune_kernel* kernel = nullptr;
  guarded([&] {
    KernelSettings settings = settings_from(options, file.parent_path());
    settings.text = text;
    kernel = new ergotune_kernel{TunedKernel(parse_problem(text, file), std::move(settings))};
    return 0;
  });
  return kernel;
}

}  // namespace

extern "C" {

ergotune_kernel* ergotune_kernel_open(const char* problem_file, const ergotune_options* options) {
  const std::filesystem::path file = text(problem_file);
  const auto contents = read_file(file);
  if (contents) return open(options, *contents, file);
  last_error = fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno));
  return nullptr;
}

ergotune_kernel* ergotune_kernel_open_text(const char* problem, const char* folder, const ergotune_options* options) {
  return open(options, text(problem), std::filesystem::path(text(folder)) / "problem.toml");
}

void ergotune_kernel_close(ergotune_kernel* kernel) { delete kernel; }

int ergotune_kernel_launch(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count) {
  return guarded([&] { return kernel->kernel.launch(queue, {arguments, count}, last_error); });
}

int ergotune_kernel_prepare(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count) {
  return guarded([&] {
    kernel->kernel.prepare(queue, {arguments, count});
    return 0;
  });
}

int ergotune_kernel_reload(ergotune_kernel* kernel) {
  return guarded([&] {
    kernel->kernel.reload();
    return 0;
  });
}

const char* ergotune_kernel_why(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments,
                                size_t count) {
  const int failed = guarded([&] {
    last_answer = kernel->kernel.why(queue, {arguments, count});
    return 0;
  });
  return failed ? nullptr : last_answer.c_str();
}

const char* ergotune_kernel_signature(ergotune_kernel* kernel) { return kernel->kernel.signature().c_str(); }

const char* ergotune_error(void) { return last_error.c_str(); }

}  // extern "C"

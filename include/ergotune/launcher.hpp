// Launches tuned kernels from C++ applications. Link libergotune-launcher; nothing else of ergotune is needed.
//
//   ergotune::launcher::Kernel add("vector_add.toml");
//   add(queue, n, a, b, c);             // replaces setting the arguments and launching
//   std::cout << add.why(queue, n, a, b, c);
#pragma once

#include <functional>
#include <initializer_list>
#include <iomanip>
#include <iterator>
#include <limits>
#include <locale>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ergotune/launcher.h"

namespace ergotune::launcher {

/// A launcher call failed. code() is the driver's error code, or -1000 for a mistake of the caller.
class LaunchError : public std::runtime_error {
 public:
  LaunchError(const std::string& message, int code) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// The options of ergotune_options; empty strings, false and 0 select the defaults.
struct Options {
  std::string backend, kernel, wisdom, constants, objective, cache;
  bool background = false;
  std::function<void(const std::string&)> warn;
  bool clocks = false;
  double online = 0;
};

/// Returns `text` as a quoted TOML string. Carriage returns are dropped.
inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (c != '\r')
      result += c;
  }
  return result + "\"";
}

/// Describes a kernel in code instead of a problem file. Expressions may use constants and parameters. Constants and
/// parameters become macros of the source, so the source must not use their names for anything else.
class Builder {
 public:
  /// `language`: "opencl", "cuda" or "hip".
  static Builder from_file(std::string function, const std::string& language, const std::string& file) {
    return Builder(std::move(function), "source." + language + " = " + quoted(file) + "\n");
  }
  static Builder from_text(std::string function, const std::string& language, const std::string& source) {
    return Builder(std::move(function), "source." + language + " = { text = " + quoted(source) + " }\n");
  }
  /// A constant such as a problem size. Tuning uses `value` unless another value is given.
  Builder& constant(const std::string& name, long long value) { return line(constants_, name, std::to_string(value)); }
  /// A parameter and its values; the first value is the default.
  template <class T>
  Builder& tune(const std::string& name, std::initializer_list<T> values) {
    std::string list;
    for (const T& value : values) list += (list.empty() ? "" : ", ") + word(value);
    return line(parameters_, name, "[" + list + "]");
  }
  Builder& restriction(const std::string& condition) {
    restrictions_ += "  " + quoted(condition) + ",\n";
    return *this;
  }
  /// `value`: an expression. If it is the name of a constant, each launch's argument determines the constant's value.
  Builder& scalar(const std::string& name, const std::string& type, const std::string& value) {
    return argument("name = " + quoted(name) + ", type = " + quoted(type) + ", value = " + quoted(value));
  }
  /// `count`: number of elements. `access`: "read", "write" or "read_write".
  Builder& buffer(const std::string& name, const std::string& type, const std::string& count,
                  const std::string& access = "read") {
    return argument("name = " + quoted(name) + ", type = " + quoted(type) + ", count = " + quoted(count) +
                    ", access = " + quoted(access));
  }
  /// OpenCL only: local memory of `count` elements. It is not passed to launches.
  Builder& local_memory(const std::string& name, const std::string& type, const std::string& count) {
    return argument("name = " + quoted(name) + ", type = " + quoted(type) + ", local_count = " + quoted(count));
  }
  /// Number of blocks in each dimension. Alternatively global(): number of work items, rounded up to whole blocks.
  Builder& grid(std::initializer_list<std::string> sizes) { return dimensions("grid", sizes); }
  Builder& global(std::initializer_list<std::string> sizes) { return dimensions("global", sizes); }
  Builder& block(std::initializer_list<std::string> sizes) { return dimensions("block", sizes); }
  Builder& shared_memory_bytes(const std::string& bytes) { return line(launch_, "shared_memory_bytes", quoted(bytes)); }
  Builder& option(const std::string& option) {
    options_ += (options_.empty() ? "" : ", ") + quoted(option);
    return *this;
  }
  /// Returns the text of the equivalent problem file, which `ergotune tune` accepts.
  std::string text() const {
    return "name = " + quoted(function_) + "\n" +
           (restrictions_.empty() ? "" : "restrictions = [\n" + restrictions_ + "]\n") + "\n[constants]\n" +
           constants_ + "\n[parameters]\n" + parameters_ + "\n[kernel]\nfunction = " + quoted(function_) + "\n" +
           source_ + (options_.empty() ? "" : "options = [" + options_ + "]\n") + "arguments = [\n" + arguments_ +
           "]\n\n[kernel.launch]\n" + launch_;
  }

 private:
  Builder(std::string function, std::string source) : function_(std::move(function)), source_(std::move(source)) {}
  template <class T>
  static std::string word(const T& value) {
    if constexpr (std::is_same_v<T, bool>)
      return value ? "true" : "false";
    else if constexpr (std::is_floating_point_v<T>)
      return real(value);
    else if constexpr (std::is_arithmetic_v<T>)
      return std::to_string(value);
    else
      return quoted(value);
  }
  /// Formats a number with the fewest digits that read back as the same number, and with a point or an exponent, since
  /// TOML would otherwise read an integer.
  template <class T>
  static std::string real(T value) {
    std::string text;
    T read = 0;
    for (int digits = std::numeric_limits<T>::digits10; digits <= std::numeric_limits<T>::max_digits10 && read != value;
         ++digits) {
      std::stringstream stream;
      stream.imbue(std::locale::classic());  // the application's locale may use a decimal comma
      stream << std::setprecision(digits) << value;
      text = stream.str();
      stream >> read;
    }
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  Builder& line(std::string& section, const std::string& name, const std::string& value) {
    section += name + " = " + value + "\n";
    return *this;
  }
  Builder& argument(const std::string& entry) {
    arguments_ += "  { " + entry + " },\n";
    return *this;
  }
  Builder& dimensions(const char* key, std::initializer_list<std::string> sizes) {
    std::string list;
    for (const std::string& size : sizes) list += (list.empty() ? "" : ", ") + quoted(size);
    return line(launch_, key, "[" + list + "]");
  }
  std::string function_, source_, constants_, parameters_, restrictions_, arguments_, launch_, options_;
};

/// A tuned kernel. Several threads may call it at the same time.
class Kernel {
 public:
  explicit Kernel(const std::string& problem_file, Options options = {}) {
    open(std::move(options),
         [&](const ergotune_options& plain) { return ergotune_kernel_open(problem_file.c_str(), &plain); });
  }
  /// `folder`: the folder against which relative paths in the description are resolved.
  explicit Kernel(const Builder& builder, Options options = {}, const std::string& folder = ".") {
    open(std::move(options), [&](const ergotune_options& plain) {
      return ergotune_kernel_open_text(builder.text().c_str(), folder.c_str(), &plain);
    });
  }

  /// Queues a launch. Arguments are passed by value: CUdeviceptr, cl_mem, int, float ...; a pointer to device memory
  /// may be given as a CUdeviceptr. Throws LaunchError, also for a floating-point number where the problem has an
  /// integer or a buffer, and for an integer where it has a float32 or float64.
  template <class... Arguments>
  void operator()(void* queue, const Arguments&... arguments) const {
    check_kinds<Arguments...>();
    const ergotune_argument list[] = {{&arguments, sizeof arguments}..., {nullptr, 0}};
    check(ergotune_kernel_launch(kernel_.get(), queue, list, sizeof...(arguments)));
  }
  /// Compiles and loads the code for launches with such scalar arguments, and waits for it. Throws LaunchError.
  template <class... Arguments>
  void prepare(void* queue, const Arguments&... arguments) const {
    check_kinds<Arguments...>();
    const ergotune_argument list[] = {{&arguments, sizeof arguments}..., {nullptr, 0}};
    check(ergotune_kernel_prepare(kernel_.get(), queue, list, sizeof...(arguments)));
  }
  /// Returns the configuration of such launches and the reason for it as a JSON document (ergotune_kernel_why).
  template <class... Arguments>
  std::string why(void* queue, const Arguments&... arguments) const {
    check_kinds<Arguments...>();
    const ergotune_argument list[] = {{&arguments, sizeof arguments}..., {nullptr, 0}};
    const char* text = ergotune_kernel_why(kernel_.get(), queue, list, sizeof...(arguments));
    if (!text) check(-1000);
    return text;
  }
  void reload() const { check(ergotune_kernel_reload(kernel_.get())); }

 private:
  struct Close {
    void operator()(ergotune_kernel* kernel) const { ergotune_kernel_close(kernel); }
  };
  using Warn = std::function<void(const std::string&)>;
  static void check(int code) {
    if (code != 0) throw LaunchError(ergotune_error(), code);
  }
  using Kinds = unsigned long long;
  static constexpr Kinds kInteger = 1, kFloat = 2;
  /// The kinds of the first 32 arguments of a call, two bits each; 0: neither an integer nor a floating-point number.
  template <class... Arguments>
  static constexpr Kinds kinds_of() {
    Kinds kinds = 0;
    int shift = 0;
    ((kinds |= shift >= 64                                                  ? 0
               : std::is_integral_v<Arguments> || std::is_enum_v<Arguments> ? kInteger << shift
               : std::is_floating_point_v<Arguments>                        ? kFloat << shift
                                                                            : 0,
      shift += 2),
     ...);
    return kinds;
  }
  /// The constant kinds of the call are compared with those of the problem in one operation per launch.
  template <class... Arguments>
  void check_kinds() const {
    constexpr Kinds kinds = kinds_of<Arguments...>();
    if ((kinds & refused_) != 0) refuse(kinds & refused_, sizeof...(Arguments));
  }
  /// The type of each argument in the problem.
  std::vector<std::string> types() const {
    std::istringstream words(ergotune_kernel_signature(kernel_.get()));
    return {std::istream_iterator<std::string>(words), {}};
  }
  void refuse(Kinds wrong, std::size_t count) const {
    const auto expected = types();
    if (expected.size() != count) return;  // the launch reports the number of arguments
    std::size_t at = 0;
    while ((wrong >> 2 * at & 3) == 0) ++at;
    throw LaunchError("argument " + std::to_string(at + 1) + " is " +
                          ((wrong >> 2 * at & kFloat) != 0 ? "a floating-point number" : "an integer") +
                          ", and the problem has " + (expected[at] == "*" ? "a buffer" : expected[at]) +
                          "; arguments are counted from 1 after the queue",
                      -1000);
  }
  void note_refused_kinds() {
    int shift = 0;
    for (const std::string& type : types()) {
      if (shift >= 64) break;
      if (type == "float32" || type == "float64")
        refused_ |= kInteger << shift;
      else if (type != "float16" && type.rfind("struct:", 0) != 0)  // cl_half is an integer
        refused_ |= kFloat << shift;
      shift += 2;
    }
  }
  template <class Open>
  void open(Options options, Open open_it) {
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    ergotune_options plain{};
    plain.size = sizeof plain;
    plain.backend = text(options.backend);
    plain.kernel = text(options.kernel);
    plain.wisdom = text(options.wisdom);
    plain.constants = text(options.constants);
    plain.objective = text(options.objective);
    plain.cache = text(options.cache);
    plain.background = options.background ? 1 : 0;
    plain.clocks = options.clocks ? 1 : 0;
    plain.online = options.online;
    if (options.warn) {
      warn_ = std::make_unique<Warn>(std::move(options.warn));
      plain.data = warn_.get();
      plain.warn = [](const char* message, void* data) { (*static_cast<Warn*>(data))(message); };
    }
    kernel_.reset(open_it(plain));
    if (!kernel_) check(-1000);
    note_refused_kinds();
  }
  Kinds refused_ = 0;
  std::unique_ptr<Warn> warn_;  // declared first: the kernel may warn during its destruction
  std::unique_ptr<ergotune_kernel, Close> kernel_;
};

}  // namespace ergotune::launcher

// Compiles C, C++ and Fortran functions to shared objects with the system's compilers (CC, CXX, FC).
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

#include "base/files.hpp"
#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "device/backend.hpp"
#include "device/entries.hpp"
#include "device/host/host_call.hpp"

namespace ergotune::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScratchName = "ergotune-host-";

/// Removes folders of processes that were killed during compilation; they are older than a day.
void remove_leftovers(const fs::path& folder) {
  std::error_code ignored;  // folders of other users cannot be removed
  for (const fs::path& left : left_behind(folder, kScratchName, std::chrono::hours(24))) fs::remove_all(left, ignored);
}

/// A temporary folder that is removed with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code missing;
    const fs::path folder = fs::temp_directory_path(missing);
    static std::once_flag once;
    std::call_once(once, [&] { remove_leftovers(folder); });
    std::string name = (folder / kScratchName).string() + "XXXXXX";
    if (missing || !mkdtemp(name.data()))
      throw UserError(
          fmt::format("no folder for compiling can be made ({}: {}); set TMPDIR to a folder that is there and has room",
                      missing ? "TMPDIR" : name, missing ? missing.message() : std::strerror(errno)));
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void write_source(const std::string& path, const std::string& text) {
  if (const int failure = write_file(path, text); failure != 0)
    throw UserError(
        fmt::format("cannot write {}: {}; make room, or set TMPDIR to another folder", path, std::strerror(failure)));
}

/// Returns the compiler's command from the environment ("ccache gcc-12"), else the default name.
std::vector<std::string> command_of(const char* variable, const char* usual) {
  const std::string text = environment_variable(variable);
  std::istringstream words(text.empty() ? usual : text);
  std::vector<std::string> command;
  for (std::string word; words >> word;) command.push_back(word);
  return command;
}

std::vector<std::string> command_for(Language language) {
  if (language == Language::c) return command_of("CC", "cc");
  if (language == Language::cpp) return command_of("CXX", "c++");
  return command_of("FC", "gfortran");
}

/// Returns the file name extension, by which Fortran compilers choose the form: x.f has fixed form.
const char* suffix_of(const CompileJob& job) {
  if (job.language == Language::c) return "c";
  if (job.language == Language::cpp) return "cpp";
  const std::string ending = fs::path(job.source_name).extension().string();
  return ending == ".f" || ending == ".F" || ending == ".for" ? "F" : "F90";
}

class HostCompiler : public Compiler {
 public:
  Binary compile(const CompileJob& job) override {
    if (job.language != Language::c && job.language != Language::cpp && job.language != Language::fortran)
      throw DeviceError(DeviceFault::unsupported, "the host compiles C, C++ and Fortran only");
    if (job.language == Language::fortran) return compile_fortran(job);
    if (job.language != Language::c) {
      try {
        return compile(job, {});
      } catch (const DeviceError& error) {
        throw_if_call_refused(job, error);
        throw;
      }
    }
    try {
      return compile(job, {});
    } catch (const DeviceError& error) {
      const auto refused = refused_pointers(job, error.what());
      std::set<std::size_t> untyped;
      for (const RefusedPointer& pointer : refused) {
        if (pointer.mismatch)
          throw device::Mismatch(fmt::format("error: {}\n{}", mismatch_message(job, pointer), error.what()),
                                 pointer.argument + 1, error.native_code());
        untyped.insert(pointer.argument);
      }
      if (untyped.empty()) {
        throw_if_call_refused(job, error);
        throw;
      }
      return compile(job, untyped);  // structures and other types that are not compared
    }
  }

  std::string identity() const override {
    std::string text = "host, C with libm | " + device::processor_name();
    for (const Language language : {Language::c, Language::cpp, Language::fortran}) {
      auto command = command_for(language);
      command.emplace_back("--version");
      try {
        const auto result = run_process(command);
        text += " | " + result.out.substr(0, result.out.find('\n'));
      } catch (const NoProcess&) {
        throw;  // another identity would lead to another session
      } catch (const Error&) {
        text += " | none";  // C can be tuned on machines without a Fortran compiler
      }
    }
    return text;
  }

 private:
  /// Throws Mismatch if every error of the compiler is in the generated call.
  static void throw_if_call_refused(const CompileJob& job, const DeviceError& error) {
    std::istringstream lines(error.what());
    std::size_t in_call = 0, errors = 0;
    for (std::string line; std::getline(lines, line);) {
      errors += line.find("error: ") != std::string::npos;
      in_call += line.find("error: ") != std::string::npos && line.find("generated by ergotune") != std::string::npos;
    }
    if (errors == 0 || errors != in_call) return;
    std::string passed;
    for (const ArgumentSignature& argument : job.arguments)
      passed += fmt::format("{}{}{} {}", passed.empty() ? "" : ", ",
                            argument.type_name.empty() ? to_string(argument.type) : argument.type_name,
                            argument.kind == Argument::Kind::buffer ? "*" : "", argument.name);
    throw device::Mismatch(fmt::format("the function {} does not take the problem's arguments ({})\n{}", job.function,
                                       passed, error.what()),
                           0, error.native_code());
  }

  /// Compiles with the arguments checked; without the check if the compiler cannot perform it (another standard, a
  /// private procedure) or if it concerns types that no declaration can name.
  static Binary compile_fortran(const CompileJob& job) {
    const std::string check = check_in_fortran(job);
    std::optional<Binary> binary;
    std::string log;
    int code = 0;
    try {
      binary = compile(job, {}, check);
      log = binary->log;
    } catch (const DeviceError& error) {
      log = error.what();
      code = error.native_code();
      if (!mentions_check(log)) throw;
    }
    if (const std::string message = mismatch_in_check(job, log); !message.empty())
      throw DeviceError(DeviceFault::compile, fmt::format("error: {}\n{}", message, log), code);
    if (binary && !mentions_check(log)) return std::move(*binary);
    return compile(job, {});
  }

  static Binary compile(const CompileJob& job, const std::set<std::size_t>& untyped, const std::string& check = {}) {
    const bool fortran = job.language == Language::fortran;
    ScratchFolder folder;
    const std::string source = folder.file(fmt::format("kernel.{}", suffix_of(job)));
    const std::string object = folder.file("kernel.so");
    std::string text =
        fmt::format("{} 1 \"{}\"\n", fortran ? "#" : "#line", job.source_name.empty() ? source : job.source_name);
    text += job.source;
    text += fortran ? check : call_in_source(job, untyped);
    write_source(source, text);

    std::vector<std::string> command = command_for(job.language);
    for (const char* option : {"-O3", "-fPIC", "-shared"}) command.emplace_back(option);
    if (fortran) command.insert(command.end(), {"-cpp", "-J", folder.file("")});
    for (const auto& [name, value] : job.defines) command.push_back(fmt::format("-D{}={}", name, value));
    for (const auto& include : job.include_folders) command.push_back("-I" + include);
    command.insert(command.end(), job.options.begin(), job.options.end());
    command.insert(command.end(), {"-o", object, source});
    for (const std::string& option : job.options)  // of a library the linker takes what is missing by then
      if (option.starts_with("-l")) command.push_back(option);
    if (job.language == Language::c) command.emplace_back("-lm");  // and its vector functions, as C++ has
    if (fortran) {
      const std::string call = folder.file("call.c"), call_object = folder.file("call.o");
      write_source(call, call_of_fortran(job));
      std::vector<std::string> c_command = command_for(Language::c);
      c_command.insert(c_command.end(), {"-O2", "-fPIC", "-c", "-o", call_object, call});
      run(c_command);
      command.push_back(call_object);
    }
    const std::string log = run(command);
    auto code = read_file(object);
    if (!code) throw Error(fmt::format("cannot read {}: {}", object, std::strerror(errno)));
    return {std::move(*code), kCallEntry, log};
  }

  /// Runs a compiler; returns its warnings and throws its errors.
  static std::string run(const std::vector<std::string>& command) {
    ProcessResult result;
    ProcessOptions options;
    // Compilers need PATH to find their components.
    if (environment_variable("PATH").empty()) options.environment["PATH"] = "/usr/local/bin:/usr/bin:/bin";
    try {
      result = run_process(command, options);
    } catch (const NoProcess& error) {
      throw UserError(
          fmt::format("no compiler can be started ({}): the limit of processes or descriptors is reached (ulimit -u, "
                      "-n), or memory is short",
                      error.what()));
    } catch (const Error& error) {
      throw UserError(
          fmt::format("the compiler \"{}\" cannot be run ({}); set CC, CXX or FC", command.front(), error.what()));
    }
    if (result.ok()) return result.err;
    std::string message = result.err + result.out;
    if (result.signal != 0) message += fmt::format("{} was ended by signal {}", command.front(), result.signal);
    if (message.empty()) message = fmt::format("{} ended with exit code {}", command.front(), result.exit_code);
    for (const char* sign : {"fatal error: cannot execute '", "fatal error: cannot find 'ld'",
                             "error: unable to execute command: Executable"})
      if (message.find(sign) != std::string::npos)
        throw UserError(
            fmt::format("the compiler \"{}\" is not whole here: {}; this is the fault of no configuration, and nothing "
                        "is stored for it: install what it needs, or set CC, CXX or FC",
                        command.front(), message.substr(0, message.find('\n'))));
    throw device::compile_error(message, result.exit_code);
  }
};

}  // namespace
}  // namespace ergotune::host

namespace ergotune::device {

std::unique_ptr<Compiler> make_host_compiler() { return std::make_unique<host::HostCompiler>(); }

}  // namespace ergotune::device

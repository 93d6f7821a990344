// An unmodified program, run with a library of ours in it that talks to this process (capture/messages.hpp).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/messages.hpp"

namespace ergotune::cli {

/// What `ergotune capture` leaves beside a problem file, and `ergotune run` looks for. JSON: kernel, source_hash,
/// options of the program's own kernel.
inline constexpr const char* kCaptureRecord = "capture.json";

struct ProgramEnd {
  /// As a shell has it: 128 + the signal that ended it.
  int exit_code = 0;
  int signal = 0;
};

struct WatchedProgram {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  /// Its standard output goes to standard error: ours is for a document.
  bool output_aside = false;
  /// What a library in it says; the answer, or nothing where none is waited for.
  std::function<capture::Message(const capture::Message&)> answer;
};

/// Runs it to its end, in this terminal: what is typed is for the program, Ctrl-C too, and SIGTERM and SIGHUP are
/// passed on to it. Throws UserError when it cannot be started.
ProgramEnd run_watched(const WatchedProgram& program);

/// The arguments behind the verb's options ("-- PROGRAM ..."). Throws UserError for none, or for an option that is
/// none.
std::vector<std::string> program_arguments(std::vector<std::string> rest, const std::string& verb);

/// One of the libraries for other programs: beside the command, or where it was installed (ERGOTUNE_LAYER_DIR first).
/// Empty where there is none.
std::filesystem::path layer_library(const std::string& interface);

/// Throws UserError for more MiB (--max-memory) than bytes can be counted.
void check_max_memory(std::uint64_t mebibytes);

/// The variables that bring those libraries into a program. `replaces`: launches are replaced, not captured.
/// Throws Error where there is none of them.
std::map<std::string, std::string> layer_environment(bool replaces = false);

/// How the program ended, if not well: a sentence for standard error, or nothing.
std::string description_of(const ProgramEnd& end);

}  // namespace ergotune::cli

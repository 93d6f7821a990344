// Verbs and their options: a thin wrapper of CLI11. Only verb.cpp and manual.cpp include CLI11, since including it
// takes longer to compile than the rest of a file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ergotune::cli {

/// A handle, like Verb: copies refer to the same option. Calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  Option required();
  /// Prints the target's initial value in the help.
  Option show_default();
  /// Keeps the values of all occurrences of the option.
  Option take_all();
  /// The name of its value in the help: "NUMBER".
  Option kind(const std::string& name);
  Option positive();
  /// Accepts an existing file or folder only.
  Option existing_path();
  Option one_of(const std::vector<std::string>& values);

 private:
  CLI::Option* option_;
};

class Verb {
 public:
  /// `used`: the only verb whose options are defined; empty: all.
  explicit Verb(CLI::App& app, std::string used = {}) : app_(&app), used_(std::move(used)) {}
  Verb add_verb(const std::string& name, const std::string& description);
  /// Adds an option. `target` keeps its value if the option is not given, and must outlive the parsing. T: std::string,
  /// int, std::int64_t, std::uint64_t, double, an optional of these, or a vector of strings.
  template <class T>
  Option add_option(const std::string& names, T& target, const std::string& help);
  Option add_flag(const std::string& names, bool& target, const std::string& help);
  void footer(const std::string& text);
  /// The action of the verb, called after the command line is parsed.
  void callback(std::function<void()> action);
  void require_verb();
  /// Sets the heading in the help of sub-verbs that have none yet.
  void group_verbs(const std::string& heading);
  /// Sets the heading in the help of these options ("--seed"); unknown options are ignored.
  void group_options(const std::string& heading, const std::vector<std::string>& options);
  /// Excludes the verb from the help.
  void hide();
  /// Passes everything after "--", or from the first word that is not an option, to rest() unparsed: another program's
  /// arguments.
  void keep_rest();
  std::vector<std::string> rest() const;

 private:
  CLI::App* app_;
  std::string used_;
  bool is_used_ = true;
};

/// Thrown by a callback to end the command with this exit code and without a message.
struct Exit {
  int code;
};

/// Lets `add_verbs` define the verbs, parses the command line and runs the verb's callback. Returns the exit code: 0,
/// or 2 for a wrong command line (help or the error was printed). Throws whatever the callback throws.
int run_command(const std::string& description, const std::function<void(Verb)>& add_verbs, int argc, char** argv);

/// Writes man/man1, bash-completion, zsh and fish files below `folder`, the share/ folder of a prefix. Throws Error if
/// a file cannot be written.
void write_manual(const CLI::App& app, const std::filesystem::path& folder);

}  // namespace ergotune::cli

// Verbs and their options. A thin cover over CLI11, which only verb.cpp and manual.cpp include: CLI11 costs every file
// that sees it more to compile than all the rest of that file.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ergotune::cli {

/// A handle, like Verb: copies mean the same option. The calls chain.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  Option required();
  /// Prints the target's present value in the help.
  Option show_default();
  /// Repeated, the option keeps every value.
  Option take_all();
  /// What the help calls its value: "NUMBER".
  Option kind(const std::string& name);
  Option positive();
  /// A file or a folder.
  Option existing_path();
  Option one_of(const std::vector<std::string>& values);

 private:
  CLI::Option* option_;
};

class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(&app) {}
  Verb add_verb(const std::string& name, const std::string& description);
  /// `target` keeps its value when the option is not given, and must outlive the parsing. T: std::string,
  /// int, std::int64_t, std::uint64_t, double, an optional of these, or a vector of strings.
  template <class T>
  Option add_option(const std::string& names, T& target, const std::string& help);
  Option add_flag(const std::string& names, bool& target, const std::string& help);
  void footer(const std::string& text);
  /// What the verb does, once the command line is read.
  void callback(std::function<void()> action);
  void require_verb();
  /// Another name of the verb.
  void alias(const std::string& name);
  /// The heading in the help of the verbs below this one that have none yet.
  void group_verbs(const std::string& heading);
  /// The heading in the help of these options ("--seed"); those that are absent are ignored.
  void group_options(const std::string& heading, const std::vector<std::string>& options);
  /// Not for people: not in the help.
  void hide();
  /// Everything after "--", or from the first word that is no option on, is kept as it is: another program's.
  void keep_rest();
  std::vector<std::string> rest() const;

 private:
  CLI::App* app_;
};

/// Thrown by a callback: the command ends with this code and says nothing.
struct Exit {
  int code;
};

/// Lets `add_verbs` fill a command, reads the command line and runs the verb's callback. Returns the exit
/// code: 0, or 2 when the command line is wrong (help or the fault was printed); throws what the callback
/// throws.
int run_command(const std::string& description, const std::function<void(Verb)>& add_verbs, int argc, char** argv);

}  // namespace ergotune::cli

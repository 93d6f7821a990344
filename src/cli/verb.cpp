#include "cli/verb.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <type_traits>

#include "ergotune/error.hpp"

namespace ergotune::cli {

Option Option::required() { return Option(*option_->required()); }
Option Option::show_default() { return Option(*option_->capture_default_str()); }
Option Option::take_all() { return Option(*option_->take_all()); }
Option Option::kind(const std::string& name) { return Option(*option_->type_name(name)); }
Option Option::positive() {
  // CLI11's own validator prints the largest double and accepts "nan"
  return Option(*option_->check(CLI::Validator(
      [](std::string& text) {
        const bool positive = CLI::PositiveNumber(text).empty() && !std::isnan(std::strtod(text.c_str(), nullptr));
        return positive ? std::string() : "must be a number greater than 0, not " + text;
      },
      "")));
}
Option Option::existing_path() {
  return Option(*option_->check(CLI::Validator(
      [](std::string& text) { return CLI::ExistingPath(text).empty() ? std::string() : text + " does not exist"; },
      "")));
}
Option Option::one_of(const std::vector<std::string>& values) { return Option(*option_->check(CLI::IsMember(values))); }

Verb Verb::add_verb(const std::string& name, const std::string& description) {
  Verb verb(*app_->add_subcommand(name, description));
  verb.is_used_ = is_used_ && (used_.empty() || name == used_);
  return verb;
}

namespace {

template <class T>
constexpr bool counts = std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::optional<std::uint64_t>>;

/// CLI11 parses "-1" as the largest unsigned number.
const CLI::Validator kNoMinus(
    [](std::string& text) { return text.starts_with('-') ? "must not be negative, not " + text : std::string(); }, "");

/// Stands for every option of the verbs that this command line does not use.
CLI::Option& unused_option() {
  static CLI::App app;
  static CLI::Option& option = *app.add_option("--unused");
  return option;
}

}  // namespace

template <class T>
Option Verb::add_option(const std::string& names, T& target, const std::string& help) {
  if (!is_used_) return Option(unused_option());
  CLI::Option* option = app_->add_option(names, target, help);
  if constexpr (counts<T>) option->check(kNoMinus);
  // One value per occurrence: otherwise it consumes the words after it as well, and the "--" before a program.
  if (names.starts_with('-')) option->allow_extra_args(false);
  return Option(*option);
}
template Option Verb::add_option(const std::string&, std::string&, const std::string&);
template Option Verb::add_option(const std::string&, int&, const std::string&);
template Option Verb::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Verb::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Verb::add_option(const std::string&, double&, const std::string&);
template Option Verb::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option Verb::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option Verb::add_option(const std::string&, std::optional<std::uint64_t>&, const std::string&);
template Option Verb::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option Verb::add_option(const std::string&, std::vector<std::string>&, const std::string&);

Option Verb::add_flag(const std::string& names, bool& target, const std::string& help) {
  return Option(is_used_ ? *app_->add_flag(names, target, help) : unused_option());
}
void Verb::footer(const std::string& text) { app_->footer(text); }
void Verb::callback(std::function<void()> action) { app_->callback(std::move(action)); }
void Verb::require_verb() { app_->require_subcommand(1); }
void Verb::group_verbs(const std::string& heading) {
  for (CLI::App* verb : app_->get_subcommands([](CLI::App* below) { return below->get_group() == "Subcommands"; }))
    verb->group(heading);
}
void Verb::group_options(const std::string& heading, const std::vector<std::string>& options) {
  for (const std::string& name : options)
    if (CLI::Option* option = app_->get_option_no_throw(name)) option->group(heading);
}
void Verb::hide() { app_->group(""); }
void Verb::keep_rest() { app_->prefix_command(); }

namespace {

/// "--" and all after it, for a verb that keeps the rest: CLI11 would change it.
std::vector<std::string> marked_rest;

/// Moves it from `strings` to marked_rest.
void keep_marked_rest(const CLI::App& app, std::vector<std::string>& strings) {
  const auto verbs = app.get_subcommands([&](const CLI::App* verb) {
    return !strings.empty() && verb->get_name() == strings.front() && verb->get_prefix_command();
  });
  if (verbs.empty()) return;
  const auto mark = std::ranges::find(strings, "--");
  marked_rest.assign(mark, strings.end());
  strings.erase(mark, strings.end());
}

}  // namespace

std::vector<std::string> Verb::rest() const {
  std::vector<std::string> rest = app_->remaining();
  rest.insert(rest.end(), marked_rest.begin(), marked_rest.end());
  return rest;
}

namespace {

void refuse_unknown_verb(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->check_name(word)) return;
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  throw UserError(
      fmt::format("there is no verb \"{}\"{}; \"ergotune --help\" lists them", word, suggestion(word, names)));
}

/// The message of a parse error, with the nearest name for an unknown option.
std::string description_of(const CLI::App& whole, const CLI::App& verb, const CLI::Error& error) {
  const auto below = verb.get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); });
  const auto is = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  if (is(CLI::ExitCodes::RequiredError) && !below.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* app : below) names.push_back(app->get_name());
    return fmt::format("a verb is missing: one of {}", fmt::join(names, ", "));
  }
  if (verb.get_prefix_command()) return error.what();  // the options belong to another program
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  // report an unknown option first: otherwise its value is taken for a missing file
  for (const std::string& extra : whole.remaining(true)) {
    if (!extra.starts_with("-") || extra == "-") continue;
    const std::string name = extra.substr(0, extra.find('='));
    std::vector<std::string> near{nearest_name(name, names)};
    if (name.size() == 2) std::erase_if(near = names, [&](const std::string& full) { return full[2] != name[1]; });
    std::erase(near, "");
    return fmt::format("there is no option \"{}\"{}", name,
                       near.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(near, ", ")));
  }
  return error.what();
}

constexpr std::size_t kHelpColumn = 34, kHelpWidth = 100;

/// Breaks lines at blanks so that the right column fits the terminal; existing line breaks stay.
std::string wrapped(const std::string& text) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find_first_of(" \n", from), text.size());
    if (column > 0 && column + 1 + (to - from) > kHelpWidth - kHelpColumn) out += '\n', column = 0;
    if (column > 0) out += ' ', ++column;
    out.append(text, from, to - from);
    column += to - from;
    if (to < text.size() && text[to] == '\n') out += '\n', column = 0;
    from = to + 1;
  }
  return out;
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kHelpColumn); }
  std::string make_option_desc(const CLI::Option* option) const override { return wrapped(option->get_description()); }
  std::string make_subcommand(const CLI::App* verb) const override {
    std::stringstream out;
    CLI::detail::format_help(out, verb->get_display_name(true), wrapped(verb->get_description()), get_column_width());
    return out.str();
  }
};

}  // namespace

int run_command(const std::string& description, const std::function<void(Verb)>& add_verbs, int argc, char** argv) {
  CLI::App app{description};
  app.name("ergotune");
  app.require_subcommand(1);
  app.add_flag("--version")->description("Print the version and the backends that were found");
  app.footer(
      "Examples: ergotune init kernel.cu\n"
      "          ergotune tune gemm.toml --budget 2min\n"
      "\"ergotune VERB --help\" describes a verb.");
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    const CLI::App* verb = failed;
    std::string path;
    while (!verb->get_subcommands().empty()) {
      verb = verb->get_subcommands().front();
      path += verb->get_name() + " ";
    }
    return fmt::format("ergotune: {}\n\"ergotune {}--help\" shows how to use it.\n",
                       description_of(*failed, *verb, error), path);
  });
  app.formatter(std::make_shared<HelpFormatter>());
  std::vector<std::string> strings(argv + 1, argv + argc);
  if (!strings.empty() && strings.front() == "--version") strings.front() = "version";
  if (!strings.empty() && strings.front() == "analyze") strings.front() = "analyse";
  // "ergotune help wisdom why" is "ergotune wisdom why --help"
  if (!strings.empty() && strings.front() == "help") {
    strings.erase(strings.begin());
    strings.push_back("--help");
  }
  const std::string first = strings.empty() ? "--help" : strings.front();
  // Defining all options takes longer than most verbs do; only the manual and an unknown option need them.
  const bool needs_all = first == "manual" || (first.starts_with('-') && first != "--help" && first != "-h");
  add_verbs(Verb(app, needs_all ? "" : first));
  std::string folder;
  CLI::App* manual = app.add_subcommand("manual", "Write man pages and shell completion")->group("");
  manual->add_option("FOLDER", folder, "The share/ folder of a prefix")->required();
  manual->callback([&] { write_manual(app, folder); });
  if (!strings.empty()) refuse_unknown_verb(app, strings.front());
  keep_marked_rest(app, strings);
  std::ranges::reverse(strings);  // CLI11 expects the reverse order
  try {
    app.parse(strings);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Exit& exit) {
    return exit.code;
  }
  return 0;
}

}  // namespace ergotune::cli

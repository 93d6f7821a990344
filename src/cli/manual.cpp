#include "cli/verb.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/text.hpp"

namespace ergotune::cli {
namespace {

struct Page {
  const CLI::App* verb;
  std::string path;  ///< "ergotune wisdom why"
};

bool is_shown(const CLI::App* verb) { return !verb->get_group().empty(); }

void add_pages(const CLI::App& verb, const std::string& path, std::vector<Page>& pages) {
  pages.push_back({&verb, path});
  for (const CLI::App* below : verb.get_subcommands(is_shown)) add_pages(*below, path + " " + below->get_name(), pages);
}

std::vector<std::string> verbs_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* below : verb.get_subcommands(is_shown)) names.push_back(below->get_name());
  return names;
}

std::vector<const CLI::Option*> options_of(const CLI::App& verb) {
  return verb.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

/// Applies the replacements one after the other: put escaping of the escape character first.
std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& replacements) {
  for (const auto& [from, to] : replacements) text = CLI::detail::find_and_replace(std::move(text), from, to);
  return text;
}

/// Escapes text for roff, in which lines that start with "." or "'" are requests.
std::string roff(const std::string& text) {
  return replaced(text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
}

std::string man_page(const Page& page) {
  const CLI::App& verb = *page.verb;
  const std::string name = replaced(page.path, {{" ", "-"}});
  std::string out = fmt::format(
      ".TH {} 1 \"\" \"ergotune {}\" \"ergotune\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n",
      replaced(name, {{"-", "\\-"}}), ERGOTUNE_VERSION, roff(name), roff(verb.get_description()), roff(page.path));
  const auto verbs = verb.get_subcommands(is_shown);
  for (const CLI::Option* option : options_of(verb))
    if (option->get_positional()) out += fmt::format("{}\n", roff(option->get_name(true)));
  out += verbs.empty() ? "[\\fIoptions\\fR]\n" : "\\fIverb\\fR [\\fIoptions\\fR]\n";
  for (const std::string& group : verb.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : options_of(verb))
      if (option->get_group() == group && !option->get_positional())
        entries += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(option->get_name(false, true)),
                               option->get_expected_max() == 0 ? "" : " \\fI" + roff(option->get_type_name()) + "\\fR",
                               roff(option->get_description()));
    if (!entries.empty()) out += fmt::format(".SH \"{}\"\n{}", group, entries);
  }
  if (!verbs.empty()) out += ".SH VERBS\n";
  for (const CLI::App* below : verbs)
    out +=
        fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(name + "-" + below->get_name()), roff(below->get_description()));
  if (!verb.get_footer().empty()) out += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", roff(verb.get_footer()));
  return out + ".SH \"EXIT STATUS\"\n0: there is an answer; 1: there is none; 2: the input is wrong.\n";
}

/// The names of a verb's options and sub-verbs.
std::vector<std::string> completions_of(const CLI::App& verb) {
  std::vector<std::string> names = verbs_of(verb);
  for (const CLI::Option* option : options_of(verb))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// Completes the names that can follow each verb, and files; zsh uses the same file through bashcompinit.
std::string bash_completion(const std::vector<Page>& pages) {
  std::string out = R"(_ergotune() {
  local path=ergotune names i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${COMP_WORDS[i]}" in
)";
  for (const Page& page : pages)
    if (page.verb->get_parent()) out += fmt::format("      \"{}\")\n        path=\"{}\" ;;\n", page.path, page.path);
  out += "    esac\n  done\n  case \"$path\" in\n";
  for (const Page& page : pages)
    out += fmt::format("    \"{}\")\n      names=\"{}\" ;;\n", page.path, fmt::join(completions_of(*page.verb), " "));
  return out + R"(  esac
  COMPREPLY=($(compgen -W "$names" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _ergotune ergotune
)";
}

std::string fish_completion(const std::vector<Page>& pages) {
  const auto quoted = [](const std::string& text) {
    return "'" + replaced(text, {{"\\", "\\\\"}, {"'", "\\'"}, {"\n", " "}}) + "'";
  };
  std::string out;
  for (const Page& page : pages) {
    std::vector<std::string> conditions;
    const auto parts = split(page.path, ' ');
    for (std::size_t i = 1; i < parts.size(); ++i) conditions.push_back("__fish_seen_subcommand_from " + parts[i]);
    const auto verbs = verbs_of(*page.verb);
    if (!verbs.empty()) conditions.push_back(fmt::format("not __fish_seen_subcommand_from {}", fmt::join(verbs, " ")));
    const std::string when =
        fmt::format("complete -c ergotune -n {}", quoted(fmt::format("{}", fmt::join(conditions, "; and "))));
    for (const CLI::App* below : page.verb->get_subcommands(is_shown))
      out += fmt::format("{} -f -a {} -d {}\n", when, below->get_name(), quoted(below->get_description()));
    for (const CLI::Option* option : options_of(*page.verb))
      for (const std::string& name : option->get_lnames())
        out += fmt::format("{} -l {}{} -d {}\n", when, name, option->get_expected_max() == 0 ? "" : " -r",
                           quoted(option->get_description()));
  }
  return out;
}

}  // namespace

void write_manual(const CLI::App& app, const std::filesystem::path& folder) {
  std::vector<Page> pages;
  add_pages(app, "ergotune", pages);
  for (const auto* name :
       {"man/man1", "bash-completion/completions", "zsh/site-functions", "fish/vendor_completions.d"})
    std::filesystem::create_directories(folder / name);
  for (const Page& page : pages)
    write_named_file(folder / "man/man1" / (replaced(page.path, {{" ", "-"}}) + ".1"), man_page(page));
  const std::string bash = bash_completion(pages);
  write_named_file(folder / "bash-completion/completions/ergotune", bash);
  write_named_file(folder / "zsh/site-functions/_ergotune",
                   "#compdef ergotune\nautoload -U +X bashcompinit && bashcompinit\n" + bash +
                       "_bash_complete -o default -F _ergotune\n");
  write_named_file(folder / "fish/vendor_completions.d/ergotune.fish", fish_completion(pages));
}

}  // namespace ergotune::cli

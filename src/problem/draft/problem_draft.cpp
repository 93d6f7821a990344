#include "problem/draft/problem_draft.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "base/files.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "problem/draft/draft_parts.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/draft/structures.hpp"
#include "problem/files/includes.hpp"

namespace ergotune {
namespace draft {
namespace {

std::string text_of(const std::filesystem::path& file) {
  if (auto text = read_file(file)) return *std::move(text);
  throw UserError(fmt::format("{}: cannot be read", file.string()));
}

/// Returns a path as a problem file in `folder` writes it.
std::string from_problem(const std::filesystem::path& folder, const std::filesystem::path& path) {
  if (path.is_absolute() && folder.is_relative()) return path.generic_string();
  const auto whole = [](const std::filesystem::path& one) { return std::filesystem::absolute(one).lexically_normal(); };
  const std::filesystem::path start = folder.empty() ? "." : folder;
  return (folder.is_absolute() ? whole(path).lexically_relative(whole(folder)) : path.lexically_relative(start))
      .generic_string();
}

std::string quoted(const std::vector<std::string>& list) { return fmt::format("[\"{}\"]", fmt::join(list, "\", \"")); }

std::string head(const std::string& kernel, const std::vector<std::string>& restrictions) {
  const std::string text = fmt::format(
      "#:schema problem.schema.json\n"
      "# A first problem file for {}, written by \"ergotune init\"; each CHECK marks a guess.\n"
      "# Editors complete it after: ergotune schema > problem.schema.json\n"
      "name = \"{}\"\n"
      "objective = \"time\"  # \"energy\" where the device has a sensor: see \"ergotune devices\"\n",
      kernel, kernel);
  std::vector<std::string> list;
  for (const std::string& restriction : restrictions)
    list.push_back(contains(restriction, {"device."})
                       ? fmt::format("{{ expression = \"{}\", class = \"device_limit\" }}", restriction)
                       : fmt::format("\"{}\"", restriction));
  return list.empty() ? text : fmt::format("{}restrictions = [{}]\n", text, fmt::join(list, ", "));
}

/// Whether a restriction holds with the constants and the defaults of the parameters, or has other names.
bool holds_by_default(const std::string& restriction, const ProblemNames& names) {
  static const std::regex kDefault(R"(^(?:\{[^#]*default = |\[)?(-?\d{1,18})\b)");
  Constants values;
  for (const ProblemNames::Pairs* const list : {&names.constants, &names.parameters})
    for (const auto& [name, text] : *list)
      if (std::smatch found; std::regex_search(text, found, kDefault))
        values.insert_or_assign(name, Value(std::stol(found[1].str())));
  const Expression expression = Expression::parse(restriction);
  const bool known = std::ranges::all_of(expression.names(), [&](const auto& name) { return values.contains(name); });
  return !known || expression.evaluate(values).truthy();
}

/// Returns the restrictions that the defaults satisfy. Block sizes that the source does not state get smaller defaults
/// to that end.
std::vector<std::string> satisfied(std::vector<std::string> restrictions, const DraftSource& source,
                                   ProblemNames& names, Guesses& guesses) {
  const auto hold = [&] {
    return std::ranges::all_of(restrictions, [&](const auto& one) { return holds_by_default(one, names); });
  };
  static const std::regex kDefault(R"(default = (\d{1,9}) \})");
  for (auto place = names.parameters.rbegin(); place != names.parameters.rend(); ++place) {
    auto& [name, text] = *place;
    std::smatch found;
    if (source.launch.at != std::string::npos || source.used.contains(name) || hold() ||
        !std::regex_search(text, found, kDefault))
      continue;
    const std::string before = text;
    for (long value = std::stol(found[1].str()) / 2; value > 0 && !hold(); value /= 2)
      text = std::regex_replace(before, kDefault, fmt::format("default = {} }}", value));
    const std::string chosen = text.substr(text.find("default = ") + 10);
    const std::string list = text.substr(0, text.find("default"));
    if (!hold() || ends_of(list, chosen.substr(0, chosen.find(' ')), list.size()).empty()) text = before;
  }
  std::erase_if(restrictions, [&](const std::string& restriction) {
    const bool holds = holds_by_default(restriction, names);
    if (!holds)
      guesses.ask(fmt::format("restrictions: {} seems necessary, but the defaults do not satisfy it", restriction));
    return !holds;
  });
  return restrictions;
}

std::string table(const char* name, const ProblemNames::Pairs& lines) {
  if (lines.empty()) return {};
  std::string text = fmt::format("[{}]\n", name);
  for (const auto& [key, value] : lines) text += fmt::format("{} = {}\n", key, value);
  return text + "\n";
}

/// Returns "outer::inner::" for a kernel in these namespaces of its source.
std::string namespaces_of(const DraftSource& source) {
  static const std::regex kNamespace(R"(\bnamespace\s{1,9}([A-Za-z_][\w:]{0,100})\s{0,9}$)");
  const std::string text = kernel_source::blank_comments(source.text);
  std::size_t begin = 0;
  for (int line = 1; line < source.kernel.line; ++line) begin = text.find('\n', begin) + 1;
  const std::size_t end = std::min(text.find(source.kernel.name, begin), text.size());
  std::vector<std::string> blocks;
  for (std::size_t at = 0; at < end; ++at) {
    if (text[at] == '}' && !blocks.empty()) blocks.pop_back();
    if (text[at] != '{') continue;
    const std::string before = text.substr(at < 150 ? 0 : at - 150, std::min<std::size_t>(at, 150));
    std::smatch found;
    blocks.push_back(std::regex_search(before, found, kNamespace) ? found[1].str() + "::" : std::string());
  }
  return fmt::format("{}", fmt::join(blocks, ""));
}

std::string kernel_table(const DraftSource& source, const std::string& function, const std::string& arguments,
                         const std::filesystem::path& folder) {
  std::string text =
      fmt::format("[kernel]\nfunction = \"{}\"\nsource = \"{}\"\n", function, from_problem(folder, source.file));
  std::vector<std::string> folders;
  for (const std::string& other : source.include_folders()) folders.push_back(from_problem(folder, other));
  if (!folders.empty()) text += "include_folders = " + quoted(folders) + "\n";
  return text + "arguments = [\n" + arguments + "]\n\n";
}

/// Returns [kernel.options]: options of the host compiler, those with which the host program builds the kernel, and
/// macros that are only tested in conditions.
std::string options(const DraftSource& source, const std::vector<std::string>& flags) {
  std::vector<std::string> options;
  if (source.language.for_host) {
    options = {"{{OPTIMISE}}", "-march=native"};
    std::string text = source.text;
    for (const IncludedFile& file : included_files(source.text, source.header_folders)) text += "\n" + file.text;
    if (kernel_source::blank_comments(text).find("pragma omp") != std::string::npos) options.emplace_back("-fopenmp");
  }
  for (const std::string& option : source.build_options)
    if (std::ranges::find(options, option) == options.end()) options.push_back(option);
  for (const std::string& flag : flags) options.push_back("{{" + flag + "}}");
  if (options.empty()) return {};
  return fmt::format("[kernel.options]\n{} = {}\n\n", source.language.key, quoted(options));
}

std::string verification(const DraftArguments& arguments, Guesses& guesses) {
  const std::string text =
      "# Every configuration's outputs are compared with those of the first one. Better: name a reference in\n"
      "# [verification.kernel] or [verification.host_function] (the page \"Measuring\", verification).\n";
  if (arguments.partial.empty()) return text;
  std::vector<std::string> compared;
  for (const auto& [name, as] : arguments.partial) compared.push_back(fmt::format("{} = \"{}\"", name, as));
  return text + fmt::format("[verification]\ncompare = {{ {} }}", fmt::join(compared, ", ")) +
         guesses.check("each block writes a partial result; these are combined over all blocks and compared",
                       "compare") +
         "\n";
}

/// `allocated`: template parameters and macros that the host's allocations multiply by.
ProblemDraft written(const DraftSource& source, const std::filesystem::path& folder,
                     const std::set<std::string>& allocated = {}) {
  Guesses guesses;
  ProblemNames names{source.used, source.kernel.name, types_of(source.outline)};
  names.allocated = allocated;
  const bool for_host = source.language.for_host;
  add_structures(source.all, source.language.key == "opencl", names.types);
  read_parameters(source, names, guesses);
  if (!source.host.empty() && source.launch.at == std::string::npos)
    guesses.ask(
        fmt::format("{}: no {} of {} was {}", source.host.string(), for_host ? "call" : "launch", source.kernel.name,
                    for_host ? fmt::format("found that gives its {} arguments", source.argument_count()) : "found"));
  for (const std::string& message : kernel_source::unfilled_variables(source.text, source.file.string()))
    guesses.ask(message);
  const Geometry geometry = for_host ? Geometry{} : derive_geometry(source, names, guesses);
  const auto flags = add_undefined(source, geometry.factors, names, guesses);
  if (!source.returns_void())
    guesses.ask(
        fmt::format("{} returns its result, which is not verified; let it write to an argument to have it verified",
                    source.kernel.name));
  if (for_host) names.add_parameter("OPTIMISE", "[\"-O2\", \"-O3\"]");
  if (names.parameters.empty())  // all values are fixed in the source
    names.add_parameter(
        names.macro_name("BLOCK_SIZE_X", ""),
        "[" + geometry.block_threads + "]" + guesses.check("nothing can be tuned yet; this parameter changes nothing"));
  const DraftArguments arguments = derive_arguments(source, names, geometry, guesses);
  if (std::set<std::string> all = allocated; !std::ranges::includes(all, arguments.allocated)) {
    all.insert(arguments.allocated.begin(), arguments.allocated.end());
    return written(source, folder, all);
  }
  const std::string used =
      fmt::format("{}{}{}", arguments.lines, geometry.table, fmt::join(geometry.restrictions, " "));
  if (names.substitute && ends_of(used, names.size(0), used.size()).empty()) names.sizes.erase(names.sizes.begin());
  add_sizes(source, geometry, arguments, names, guesses);
  const std::vector<std::string> restrictions = satisfied(geometry.restrictions, source, names, guesses);
  const std::string compared = verification(arguments, guesses);
  return {head(source.kernel.name, restrictions) + guesses.remarks + "\n" + table("constants", names.constants) +
              table("parameters", names.parameters) +
              kernel_table(source, namespaces_of(source) + names.function, arguments.lines, folder) + geometry.table +
              options(source, flags) + compared,
          source.kernel.name, guesses.questions};
}

}  // namespace
}  // namespace draft

std::string note_of_guesses(const std::filesystem::path& problem_file) {
  constexpr std::size_t kNamed = 5;
  const std::vector<std::string> lines = split(read_file(problem_file).value_or(""), '\n');
  std::vector<std::string> named;
  std::size_t marks = 0;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].find(kGuessMark) != std::string::npos && marks++ < kNamed) named.push_back(std::to_string(i + 1));
  if (marks == 0) return {};
  return fmt::format(
      "{} has {} of \"ergotune init\" marked CHECK, in line{} {}{}: correct or confirm each, and remove its mark",
      problem_file.string(), marks == 1 ? "a guess" : fmt::format("{} guesses", marks), marks == 1 ? "" : "s",
      fmt::join(named, ", "), marks > kNamed ? ", ..." : "");
}

bool can_draft_from(const std::filesystem::path& source) { return draft::known_language(source) != nullptr; }

ProblemDraft draft_problem(const std::filesystem::path& source, const std::string& function,
                           const std::filesystem::path& folder, const std::filesystem::path& host,
                           const std::vector<std::filesystem::path>& include_folders) {
  return draft_problem_from_text(draft::text_of(source), source, function, folder,
                                 {host, host.empty() ? std::string() : draft::text_of(host)}, include_folders);
}

ProblemDraft draft_problem_from_text(const std::string& text, const std::filesystem::path& source,
                                     const std::string& function, const std::filesystem::path& folder,
                                     const HostProgram& host,
                                     const std::vector<std::filesystem::path>& include_folders) {
  return draft::written(draft::read_draft_source(text, source, function, host, include_folders), folder);
}

}  // namespace ergotune

// [program].
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

#include "problem/files/toml_sections.hpp"
#include "problem/program.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune::toml_reading {

namespace {

Template template_of(const Table& table, const toml::node& node, const std::string& what) {
  return Template::parse(table.text_of(node, what), table.inside(node));
}

/// A program with its arguments. One string would be for a shell, and there is none.
std::vector<Template> read_words(const Table& table, const toml::node& node, const std::string& what) {
  const toml::array* list = node.as_array();
  if (!list || list->empty()) {
    table.wrong_kind(
        node, what,
        R"(a list of the program and its arguments, ["./app", "--tile={{TILE}}"]; for a shell say ["sh", "-c", "..."])");
  }
  std::vector<Template> words;
  for (const toml::node& word : *list) {
    if (word.is_integer() || word.is_floating_point()) {
      words.push_back(Template::parse(table.value_of(word, what).to_string(), table.place_of(word)));
    } else {
      words.push_back(template_of(table, word, "a word of " + what));
    }
  }
  return words;
}

/// One command, or a list of them.
std::vector<std::vector<Template>> read_build(const Table& table, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (!list || list->empty() || !list->front().is_array()) return {read_words(table, node, "\"build\"")};
  std::vector<std::vector<Template>> steps;
  for (const toml::node& step : *list)
    steps.push_back(read_words(table, step, fmt::format("step {} of \"build\"", steps.size() + 1)));
  return steps;
}

/// name = "text", or name = { from = "file" }.
std::vector<ProgramFile> read_files(const Table& table, const std::filesystem::path& folder) {
  std::vector<ProgramFile> files;
  for (const Entry& entry : table.entries()) {
    const std::filesystem::path name = std::filesystem::path(entry.key).lexically_normal();
    if (name.empty() || name.is_absolute() || *name.begin() == "..")
      throw UserError(
          fmt::format("\"{}\" must be the name of a file inside the folder that it is written in", entry.key),
          entry.place);
    ProgramFile file{name.string(), {}};
    if (!entry.node->is_table()) {
      file.text = template_of(table, *entry.node, fmt::format("file \"{}\"", entry.key));
    } else {
      const Table inner = table.table(entry);
      inner.allow({"from"});
      const std::filesystem::path from = folder / inner.text("from", "the file with {{parameters}} that it is made of");
      const std::string text = read_text_file(from, "the file", inner.place_of(*inner.find("from")));
      file.text = Template::parse(text, {from.string(), 1, 1});
    }
    files.push_back(std::move(file));
  }
  return files;
}

/// `groups` in parentheses there have to be; -1: any number.
void check_pattern(const std::string& pattern, int groups, const std::string& what, const SourcePlace& place) {
  constexpr std::size_t kLongest = 500;  // the standard library's compiler goes as deep as parentheses do
  if (pattern.size() > kLongest) throw UserError(fmt::format("{} is longer than {} characters", what, kLongest), place);
  try {
    const std::regex regex(pattern);
    if (groups < 0 || static_cast<int>(regex.mark_count()) == groups) return;
    throw UserError(
        fmt::format("{} has {} groups in parentheses and needs one, around the number, as in 'rate: ([0-9.]+)'; "
                    "write (?:...) for those that only hold together",
                    what, regex.mark_count()),
        place);
  } catch (const std::regex_error& error) {
    throw UserError(
        fmt::format("{} is no regular expression: {}; in TOML, write patterns in single quotes", what, error.what()),
        place);
  }
}

std::map<std::string, std::string> read_output(const Table& table) {
  std::map<std::string, std::string> output;
  for (const Entry& entry : table.entries()) {
    check_identifier(entry.key, "quantity", entry.place);
    const QuantityInfo* info = quantity_info(entry.key);
    const bool counted = info && info->producer != Producer::device && info->producer != Producer::sensor &&
                         info->producer != Producer::program;
    if (counted)
      throw UserError(
          fmt::format("\"{}\" is a quantity of kernels; give what the program prints another name", entry.key),
          entry.place);
    const std::string what = fmt::format("the pattern of \"{}\"", entry.key);
    const std::string pattern = table.text_of(*entry.node, what);
    check_pattern(pattern, 1, what, table.inside(*entry.node));
    output[entry.key] = pattern;
  }
  return output;
}

void read_comparison(const Table& table, const std::filesystem::path& folder, Program& program) {
  if (!table.has("reference")) {
    for (const char* key : {"file", "absolute_tolerance", "relative_tolerance"})
      if (table.has(key))
        throw UserError(
            fmt::format("\"{}\" in {} needs \"reference\", the file with what is right", key, table.title()),
            table.key_place(key));
    return;
  }
  ProgramComparison compare;
  compare.reference = folder / table.text("reference", "the file with what is right");
  if (!std::filesystem::is_regular_file(compare.reference))
    throw UserError(fmt::format("\"{}\" is no file that can be read", compare.reference.string()),
                    table.place_of(*table.find("reference")));
  if (const toml::node* file = table.find("file")) compare.file = template_of(table, *file, "\"file\"");
  for (const auto& [key, member] : {std::pair{"absolute_tolerance", &ProgramComparison::absolute_tolerance},
                                    std::pair{"relative_tolerance", &ProgramComparison::relative_tolerance}}) {
    compare.*member = table.optional_number(key);
    if ((compare.*member).value_or(0) < 0)
      throw UserError(fmt::format("\"{}\" must not be negative", key), table.place_of(*table.find(key)));
  }
  program.compare = std::move(compare);
}

/// 'pattern', ["command", ...], or a table of both and of a file's reference.
void read_check(const Table& parent, const toml::node& node, const std::filesystem::path& folder, Program& program) {
  if (node.is_string()) {
    program.check_pattern = parent.text_of(node, "\"check\"");
    return check_pattern(program.check_pattern, -1, "\"check\"", parent.inside(node));
  }
  if (node.is_array()) {
    program.check_command = read_words(parent, node, "\"check\"");
    return;
  }
  if (!node.is_table())
    parent.wrong_kind(node, "\"check\"",
                      "a pattern, a command as a list, or a table with command, pattern, file and reference");
  const Table table = parent.table(node, "[program.check]");
  table.allow({"command", "pattern", "file", "reference", "absolute_tolerance", "relative_tolerance"});
  if (const toml::node* command = table.find("command"))
    program.check_command = read_words(table, *command, "\"command\"");
  if (const toml::node* pattern = table.find("pattern")) {
    program.check_pattern = table.text_of(*pattern, "\"pattern\"");
    check_pattern(program.check_pattern, -1, "\"pattern\"", table.inside(*pattern));
  }
  read_comparison(table, folder, program);
}

std::map<int, std::string> read_exit_status(const Table& table) {
  std::map<int, std::string> statuses;
  for (const Entry& entry : table.entries()) {
    int code = 0;
    const char* end = entry.key.data() + entry.key.size();
    const auto [rest, error] = std::from_chars(entry.key.data(), end, code);
    if (error != std::errc() || rest != end || code < 1 || code > 255)
      throw UserError(fmt::format("\"{}\" is no exit code; they go from 1 to 255 (0 is always ok)", entry.key),
                      entry.place);
    const std::string status = table.text_of(*entry.node, "the status of exit code " + entry.key);
    const auto& names = exit_status_names();
    if (std::find(names.begin(), names.end(), status) == names.end())
      throw UserError(fmt::format("no status \"{}\" for an exit code{}", status, suggestion(status, names)),
                      table.place_of(*entry.node));
    statuses[code] = status;
  }
  return statuses;
}

void read_sources(const Table& table, const std::filesystem::path& folder, Program& program) {
  for (const std::string& name : table.optional_texts("sources")) {
    const std::filesystem::path source = folder / name;
    std::error_code error;
    if (!std::filesystem::exists(source, error))
      throw UserError(fmt::format("\"{}\" of \"sources\" is not there", source.string()),
                      table.place_of(*table.find("sources")));
    program.sources.push_back(source);
  }
}

}  // namespace

std::shared_ptr<const Program> read_program(const Table& table, const std::filesystem::path& folder) {
  table.allow({"command", "environment", "folder", "build", "build_files", "files", "sources", "output", "check",
               "exit_status", "time_limit"});
  Program program;
  program.place = table.place();
  program.command = read_words(
      table, table.require("command", R"(the program and its arguments, ["./app", "--tile={{TILE}}"])"), "\"command\"");
  if (const auto environment = table.optional_table("environment")) {
    for (const Entry& entry : environment->entries()) {
      if (entry.key.empty() || entry.key.find('=') != entry.key.npos)
        throw UserError(fmt::format("\"{}\" cannot be the name of a variable", entry.key), entry.place);
      const Value value =
          environment->value_of(*entry.node, fmt::format("\"{}\" in {}", entry.key, environment->title()));
      const SourcePlace place = entry.node->is_string() ? environment->inside(*entry.node) : entry.place;
      program.environment[entry.key] = Template::parse(value.to_string(), place);
    }
  }
  if (const toml::node* node = table.find("folder")) program.folder = template_of(table, *node, "\"folder\"");
  if (const toml::node* node = table.find("build")) program.build = read_build(table, *node);
  if (const auto files = table.optional_table("build_files")) program.build_files = read_files(*files, folder);
  if (!program.build_files.empty() && program.build.empty())
    throw UserError(
        "\"build_files\" are written before \"build\", and there is none; \"files\" are written before each run",
        table.key_place("build_files"));
  if (const auto files = table.optional_table("files")) program.files = read_files(*files, folder);
  read_sources(table, folder, program);
  if (const auto output = table.optional_table("output")) program.output = read_output(*output);
  if (const toml::node* node = table.find("check")) read_check(table, *node, folder, program);
  if (const auto statuses = table.optional_table("exit_status")) program.exit_status = read_exit_status(*statuses);
  if (const auto limit = table.optional_number("time_limit")) {
    if (!(*limit > 0))
      throw UserError("\"time_limit\" must be greater than 0 s", table.place_of(*table.find("time_limit")));
    program.time_limit = *limit;
  }
  return std::make_shared<const Program>(std::move(program));
}

}  // namespace ergotune::toml_reading

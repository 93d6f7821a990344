// [program].
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

#include "base/hash.hpp"
#include "problem/document/fields.hpp"
#include "problem/program.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune::document {

template <>
const std::vector<Field<Program>>& fields<Program>();
template <>
const std::vector<Field<ProgramComparison>>& fields<ProgramComparison>();

namespace {

using Command = std::vector<Template>;

/// Reads a program with its arguments as a list. A single string is rejected, since no shell would split it.
Command read_command(const Node& node, const std::string& what) {
  if (!node.list() || node.list()->empty()) {
    wrong_kind(
        node, what,
        R"(a list of the program and its arguments, ["./app", "--tile={{TILE}}"]; for a shell write ["sh", "-c", "..."])");
  }
  Command strings;
  for (const Node& word : *node.list()) {
    if (word.is_number())
      strings.push_back(Template::parse(value_of(word, what).to_string(), word.place));
    else
      strings.push_back(template_of(word, "an argument of " + what));
  }
  return strings;
}

Json command_type() {
  Json type = list_type({{"type", {"string", "number"}}});
  type["minItems"] = 1;
  return type;
}

/// Reads one build command or a list of them.
void read_build(const Table&, const Node& node, Program& program) {
  if (!node.list() || node.list()->empty() || !node.list()->front().list()) {
    program.build = {read_command(node, "\"build\"")};
    return;
  }
  for (const Node& step : *node.list())
    program.build.push_back(read_command(step, fmt::format("step {} of \"build\"", program.build.size() + 1)));
}

/// Reads files given as name = "text" or name = { from = "file" }.
std::vector<ProgramFile> read_files(const Table& table) {
  std::vector<ProgramFile> files;
  for (const Entry& entry : table.entries()) {
    const std::filesystem::path name = std::filesystem::path(entry.key).lexically_normal();
    if (name.empty() || name.is_absolute() || *name.begin() == "..")
      throw UserError(
          fmt::format("\"{}\" must be the name of a file inside the folder that it is written in", entry.key),
          entry.place);
    ProgramFile file{name.string(), {}};
    if (!entry.value.is_table()) {
      file.text = template_of(entry.value, fmt::format("file \"{}\"", entry.key));
    } else {
      const Table inner = table.table(entry);
      inner.allow({"from"});
      const auto from = table.context().folder / inner.text("from", "the file with {{parameters}} that it is made of");
      file.text = Template::parse(read_text_file(from, "the file", inner.find("from")->place), {from.string(), 1, 1});
    }
    files.push_back(std::move(file));
  }
  return files;
}

Json files_type(Schema&) {
  const Json from{{"type", "object"},
                  {"properties", {{"from", string_type()}}},
                  {"required", {"from"}},
                  {"additionalProperties", false}};
  return map_type(any_type({string_type(), from}));
}

Field<Program> files_field(std::string_view name, std::vector<ProgramFile> Program::*member, std::string_view meaning) {
  return field<Program>(
      name, meaning, files_type,
      [=](const Table& at, const Node&, Program& to) { to.*member = read_files(*at.optional_table(name)); },
      [=](const Program& from, Form) {
        Node node(Node::Entries{});
        for (const ProgramFile& file : from.*member) node.set(file.name, Node(file.text.text()));
        return unless_empty(std::move(node));
      });
}

/// Checks a regular expression; with `number`, one group around a number, and one
/// before it around a name if there are several.
void check_pattern(const std::string& pattern, bool number, const std::string& what, const SourcePlace& place) {
  constexpr std::size_t kLongest = 500;  // the standard library's regex compiler recurses for each parenthesis
  if (pattern.size() > kLongest) throw UserError(fmt::format("{} is longer than {} characters", what, kLongest), place);
  try {
    const std::regex regex(pattern);
    if (!number || regex.mark_count() == 1 || regex.mark_count() == 2) return;
    throw UserError(
        fmt::format("{} has {} groups in parentheses and needs one, around the number, as in 'rate: ([0-9.]+)', or "
                    "two, around its name and the number; write (?:...) for those that only hold together",
                    what, regex.mark_count()),
        place);
  } catch (const std::regex_error& error) {
    throw UserError(
        fmt::format("{} is not a regular expression: {}; in TOML, write patterns in single quotes", what, error.what()),
        place);
  }
}

void read_output(const Table& table, Program& program) {
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
    check_pattern(text_of(entry.value, what), true, what, inside(entry.value));
    program.output[entry.key] = entry.value.text();
  }
}

/// Reads the fields of [program.check] that compare a file with a reference; `program` receives the other ones.
void read_comparison(const Table& table, Program& program) {
  if (!table.has("reference")) {
    for (const char* key : {"file", "absolute_tolerance", "relative_tolerance"})
      if (table.has(key))
        throw UserError(
            fmt::format("\"{}\" in {} needs \"reference\", the file with what is right", key, table.title()),
            table.key_place(key));
    return;
  }
  ProgramComparison compare;
  for (const auto& field : fields<ProgramComparison>())
    if (const Node* node = table.find(field.name); node && field.read) field.read(table, *node, compare);
  if (!table.context().trusted && !std::filesystem::is_regular_file(compare.reference))
    throw UserError(fmt::format("\"{}\" is not a file that can be read", compare.reference.string()),
                    table.find("reference")->place);
  program.compare = std::move(compare);
}

/// Reads 'pattern', ["command", ...], or a table with both and a reference file.
void read_check(const Table& parent, const Node& node, Program& program) {
  const auto pattern = [&](const Node& text, const std::string& what) {
    program.check_pattern = text_of(text, what);
    check_pattern(program.check_pattern, false, what, inside(text));
  };
  if (node.is_text()) return pattern(node, "\"check\"");
  if (node.list()) {
    program.check_command = read_command(node, "\"check\"");
    return;
  }
  if (!node.is_table())
    wrong_kind(node, "\"check\"",
               "a pattern, a command as a list, or a table with command, pattern, file and reference");
  const Table table = parent.table(node, "[program.check]");
  table.allow(field_names<ProgramComparison>());
  if (const Node* command = table.find("command")) program.check_command = read_command(*command, "\"command\"");
  if (const Node* text = table.find("pattern")) pattern(*text, "\"pattern\"");
  read_comparison(table, program);
}

Node write_check(const Program& program, Form form) {
  Node node(Node::Entries{});
  node.set("command", Type<Command>::write(program.check_command, form));
  node.set("pattern", write_text(program.check_pattern));
  if (program.compare) {
    const Node compare = write_fields(*program.compare, form);
    for (const Entry& entry : compare.entries()) node.set(entry.key, entry.value);
  }
  return unless_empty(std::move(node));
}

void read_exit_status(const Table& table, Program& program) {
  for (const Entry& entry : table.entries()) {
    int code = 0;
    const char* end = entry.key.data() + entry.key.size();
    const auto [rest, error] = std::from_chars(entry.key.data(), end, code);
    if (error != std::errc() || rest != end || code < 1 || code > 255)
      throw UserError(fmt::format("\"{}\" is not an exit code; they go from 1 to 255 (0 is always ok)", entry.key),
                      entry.place);
    const std::string status = text_of(entry.value, "the status of exit code " + entry.key);
    const auto& names = exit_status_names();
    if (std::ranges::find(names, status) == names.end())
      throw UserError(fmt::format("no status \"{}\" for an exit code{}", status, suggestion(status, names)),
                      entry.value.place);
    program.exit_status[code] = status;
  }
}

Node write_exit_status(const Program& program, Form) {
  Node node(Node::Entries{});
  for (const auto& [code, status] : program.exit_status) node.set(std::to_string(code), status);
  return unless_empty(std::move(node));
}

Json check_type(Schema& schema) {
  return schema.section<ProgramComparison>("check", "[program.check]", {string_type(), command_type()});
}

void read_time_limit(const Table& at, const Node& node, Program& program) {
  program.time_limit = number_of(node, at.what("time_limit"));
  if (!(program.time_limit > 0)) throw UserError("\"time_limit\" must be greater than 0 s", node.place);
}

void read_sources(const Table& table, const Node& node, Program& program) {
  for (const std::string& name : table.texts("sources")) {
    const std::filesystem::path source = table.context().folder / name;
    std::error_code error;
    if (!table.context().trusted && !std::filesystem::exists(source, error))
      throw UserError(fmt::format("\"{}\" of \"sources\" is not there", source.string()), node.place);
    program.sources.push_back(source);
  }
}

void read_environment(const Table& table, Program& program) {
  for (const Entry& entry : table.entries()) {
    if (entry.key.empty() || entry.key.find('=') != entry.key.npos)
      throw UserError(fmt::format("\"{}\" cannot be the name of a variable", entry.key), entry.place);
    const Value value = value_of(entry.value, table.what(entry.key));
    const SourcePlace place = entry.value.is_text() ? inside(entry.value) : entry.place;
    program.environment[entry.key] = Template::parse(value.to_string(), place);
  }
}

// Adds the contents of `top`, a file or a folder with all its files in order of their names. The identity of a program
// consists of contents of files instead of their names.
void add_contents(const std::filesystem::path& top, Node::List& list) {
  std::error_code error;
  if (!std::filesystem::is_directory(top, error)) return list.push_back(contents_of(top));
  std::vector<std::filesystem::path> files;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (auto entry = std::filesystem::recursive_directory_iterator(top, options, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error))
    if (entry->is_regular_file(error)) files.push_back(entry->path());
  std::ranges::sort(files);
  for (const auto& file : files) list.push_back(Node::List{file.lexically_relative(top).string(), contents_of(file)});
}

/// Adds the contents of the executable and of files named in the arguments, also as "--input=data.bin".
void add_named_files(const Command& strings, const std::filesystem::path& folder, Node::List& list) {
  std::error_code error;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    const std::string word = render_without_configuration(strings[i], folder);
    if (word.empty()) continue;
    if (const auto program = i == 0 ? find_program(word, folder) : std::filesystem::path(); !program.empty()) {
      list.push_back(contents_of(program));
      continue;
    }
    for (const std::string& name : {word, word.substr(word.find('=') + 1)}) {  // npos + 1 is 0
      if (name.empty() || !std::filesystem::is_regular_file(folder / name, error)) continue;
      list.push_back(contents_of(folder / name));
      break;
    }
  }
}

}  // namespace

template <>
const std::vector<Field<ProgramComparison>>& fields<ProgramComparison>() {
  using T = ProgramComparison;
  static const std::vector<Field<T>> table{
      written<T>("command", "A command that must end with 0; it sees the output in the file {{run}}/stdout",
                 command_type()),
      written<T>("pattern", "A regular expression that must match a line of the output", string_type()),
      field<T>("reference", &T::reference, "A file with what is right"),
      field<T>("file", &T::file, "The file that is compared with it", {.otherwise = "the standard output"}),
      field<T>("absolute_tolerance", &T::absolute_tolerance, "Numbers in both may differ by so much",
               {.otherwise = "every byte counts"}),
      field<T>("relative_tolerance", &T::relative_tolerance, "The same, relative to the reference",
               {.otherwise = "every byte counts"})};
  return table;
}

template <>
const std::vector<Field<Program>>& fields<Program>() {
  using T = Program;
  static const std::vector<Field<T>> table{
      field<T>("command", R"(The program and its arguments, ["./app", "--tile={{TILE}}"])", command_type(),
               [](const Table&, const Node& node, T& to) { to.command = read_command(node, "\"command\""); },
               field<T>("command", &T::command, "").write, {.required = true}),
      table_field<T>("environment", "Variables that are added to ergotune's own for the run",
                     Type<std::map<std::string, Value>>::type, read_environment,
                     field<T>("environment", &T::environment, "").write),
      field<T>("folder", &T::folder, "Where it runs",
               {.otherwise = "where it was built, else beside the problem file"}),
      field<T>("build", "A command, or a list of them, that runs once for each different text of it",
               any_type({command_type(), list_type(command_type())}), read_build,
               field<T>("build", &T::build, "").write),
      files_field("build_files", &T::build_files,
                  "Files that are written before the build: a text, or { from = \"file\" }"),
      files_field("files", &T::files, "Files that are written before each run: a text, or { from = \"file\" }"),
      field<T>("sources", "Files and folders that determine results too", strings_type(), read_sources,
               field<T>("sources", &T::sources, "").write, {.incidental = true}),
      table_field<T>(
          "output",
          "Quantities by name: a regular expression with one group, the number; with two, name and number of several",
          map_type(string_type()), read_output, field<T>("output", &T::output, "").write),
      field<T>("check", "When a run is right: a pattern, a command, or a table", check_type, read_check, write_check),
      table_field<T>("exit_status", "Statuses by exit code", map_type(choice_type(exit_status_names())),
                     read_exit_status, write_exit_status),
      field<T>("time_limit", "Time that one run may take (s)", Json{{"type", "number"}, {"exclusiveMinimum", 0}},
               read_time_limit,
               [](const T& from, Form) { return from.time_limit > 0 ? Node(from.time_limit) : Node(); },
               {.otherwise = "time_limit of [tune]"})};
  return table;
}

std::shared_ptr<const Program> read_program(const Table& table) {
  Program program;
  program.place = table.place();
  read_fields(table, program);
  if (!program.build_files.empty() && program.build.empty())
    throw UserError(
        "\"build_files\" are written before \"build\", and there is none; \"files\" are written before each run",
        table.key_place("build_files"));
  return std::make_shared<const Program>(std::move(program));
}

Node write(const Program& program, const std::filesystem::path& folder, Form form) {
  Node node = write_fields(program, form, form != Form::identity ? program.place : SourcePlace{});
  if (form != Form::identity) return node;
  Node::List contents;
  add_named_files(program.command, folder, contents);
  for (const Command& step : program.build) add_named_files(step, folder, contents);
  add_named_files(program.check_command, folder, contents);
  for (const auto& source : program.sources) add_contents(source, contents);
  node.set("contents", std::move(contents));
  return node;
}

Json program_type(Schema& schema) { return schema.section<Program>("program", "[program]"); }

}  // namespace ergotune::document

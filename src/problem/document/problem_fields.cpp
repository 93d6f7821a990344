// Complete problems: TOML and JSON files, documents for workers and stores, and the identity by which sessions are
// found.
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/json_text.hpp"
#include "problem/checks.hpp"
#include "problem/code_names.hpp"
#include "problem/document/fields.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/program.hpp"

namespace ergotune {

namespace document {

/// Version of documents, to be increased when they change. Documents of other versions are rejected, and their sessions
/// are not found.
constexpr std::int64_t kVersion = 2;

namespace {

/// Checks that the file describes exactly one object of tuning: [kernel], [kernels] or [program].
void check_shape(const Table& root) {
  root.at_most_one_of({"kernel", "kernels", "program"});
  if (root.has("program")) {
    for (const char* key : {"buffers", "workload", "verification"})
      if (root.has(key))
        throw UserError(
            fmt::format("[{}] is for kernels; a [program] is checked by its \"check\" and has no buffers", key),
            root.key_place(key));
  }
  const auto check_names_in = [](const Table& constants) {
    for (const Entry& entry : constants.entries()) check_identifier(entry.key, "constant", entry.place);
  };
  if (const auto constants = root.optional_table("constants")) check_names_in(*constants);
  if (const auto devices = root.optional_table("constants_for"))
    for (const Entry& entry : devices->entries()) check_names_in(devices->table(entry));
  if (!root.has("kernels") && !(root.has("program") && root.has("execution")))
    root.require("parameters", "a table [parameters] with what is tuned");
}

bool wants_space_only(const Table& root) {
  const Node* node = root.find("space_only");
  return node && boolean_of(*node, root.what("space_only"));
}

void read_kernels(const Table& root, Problem& problem) {
  if (root.has("kernels") || root.has("workload")) return read_workload(root, problem);
  Kernel& kernel = problem.kernel();
  if (const auto table = root.optional_table("program")) {
    problem.program = read_program(*table);
    problem.verification.kind = Verification::Kind::none;
    kernel.function = literal_template(problem.name);
  } else if (const auto table = root.optional_table("kernel")) {
    kernel = read_kernel(*table);
    resolve_buffers(root, problem.kernels);
  } else if (root.context().modelled) {
    if (!root.context().trusted) kernel.function = Template::parse(problem.name);
  } else {
    // A space to explore needs no kernel yet, but then the file says so: a forgotten [kernel] is a mistake.
    root.require("kernel", "a table [kernel] with function, source and arguments");
  }
}

void read_problem(const Table& root, ProblemFile& problem) {
  root.allow(field_names<ProblemFile>());
  const bool trusted = root.context().trusted;
  if (!trusted) check_shape(root);
  for (const Field<ProblemFile>& field : fields<ProblemFile>()) {
    const Node* node = root.find(field.name);
    if (node && field.read) field.read(root, *node, problem);
    if (field.name == "kernel") read_kernels(root, problem);  // reads [kernel], [kernels] or [program]
  }
  move_objective_from_tune(root, problem);
  if (!trusted && problem.parameters.empty() && problem.execution_parameters.empty())
    throw UserError("[parameters] is empty: there is nothing to tune", root.key_place("parameters"));
}

bool is_single_kernel(const Problem& problem) { return !problem.program && !problem.has_named_kernels(); }

bool is_space_only(const Problem& problem) { return is_single_kernel(problem) && problem.kernel().sources.empty(); }

Node write_kernels(const Problem& problem, Form form) {
  Node node(Node::Entries{});
  if (problem.has_named_kernels())
    for (const Kernel& kernel : problem.kernels) node.set(kernel.name, write(kernel, form));
  return unless_empty(std::move(node));
}

Node write_program(const Problem& problem, Form form) {
  return problem.program ? write(*problem.program, folder_of_problem(problem.file), form) : Node();
}

Json kernel_type(Schema& schema) { return schema.section<Kernel>("kernel", "[kernel] and [kernels.NAME]"); }

}  // namespace

template <>
const std::vector<Field<Problem>>& fields<Problem>() {
  using T = Problem;
  constexpr Options kAside{.incidental = true};
  constexpr Options kByPrograms{.incidental = true, .by_programs = true};
  static const std::vector<Field<T>> table = [&] {
    std::vector<Field<T>> rows{
        written<T>("$schema", "Where editors find the schema of a JSON file", string_type(), {}, kByPrograms),
        written<T>("ergotune_problem", "Version of a document", Json{{"type", "integer"}}, {}, kByPrograms),
        field<T>("name", &T::name, "The problem's name", {.incidental = true, .otherwise = "the file's"}),
        attribute<T, std::string>("description", "What it is; shown with results", kAside),
        field<T>("input_contents", &T::input_contents, "A hash of what the arguments of a Python function held",
                 kByPrograms),
        written<T>(
            "file", "The file that relative paths start from", string_type(),
            [](const T& from, Form form) { return write_path(from.file, form); }, kByPrograms),
        written<T>("space_only", "The file describes a search space only, and needs no kernel", Type<bool>::type,
                   [](const T& from, Form) { return is_space_only(from) ? Node(true) : Node(); },
                   {.incidental = true, .always = true, .otherwise = "false"}),
        field<T>("constants", &T::constants, "Names with values for expressions, and macros of the kernel"),
        field<T>("constants_for", &T::constants_by_device,
                 "Constants for devices whose name contains the key, a table each"),
        field<T>(
            "parameters", "What is tuned; each becomes a macro of the kernel, and their order is that of the space",
            parameters_type,
            [](const Table& at, const Node&, T& to) {
              to.parameters = read_parameters(*at.optional_table("parameters"), at.has("kernels"));
            },
            [](const T& from, Form form) { return write(from.parameters, form); }),
        field<T>(
            "execution", "What is set on the device while it runs, tuned together with the parameters", execution_type,
            [](const Table& at, const Node&, T& to) {
              to.execution_parameters = read_execution(*at.optional_table("execution"));
            },
            [](const T& from, Form) { return write(from.execution_parameters); }),
        field<T>(
            "restrictions", "Conditions that every configuration meets", restrictions_type,
            [](const Table& at, const Node& node, T& to) { to.restrictions = read_restrictions(at, node); },
            [](const T& from, Form form) { return write(from.restrictions, form); }),
        written<T>("buffers", "Buffers that several kernels share: type, count and fill of each", buffers_type),
        written_if<T>(is_single_kernel,
                      written<T>("kernel", "The kernel", kernel_type,
                                 [](const T& from, Form form) { return write(from.kernel(), form); })),
        written<T>(
            "kernels", "Instead, several kernels by name: the page \"Tune several kernels together\"",
            [](Schema& schema) { return map_type(kernel_type(schema)); }, write_kernels),
        written<T>("workload", "How several kernels run: its steps and parameters of its own", workload_type,
                   write_workload),
        written<T>("program", "Instead, a whole program: the page \"Tune whole programs\"", program_type,
                   write_program),
        field<T>(
            "verification", "How outputs are checked", verification_type,
            [](const Table& at, const Node&, T& to) {
              to.verification = read_verification(*at.optional_table("verification"), to.kernels);
              begin_with_neutral_elements(to.verification, to.kernels);
            },
            [](const T& from, Form form) {
              return from.program ? Node() : write(from.verification, form, from.has_named_kernels());
            })};
    for (Field<T>& row : goal_fields()) rows.push_back(std::move(row));
    rows.push_back(written<T>("places", "Lines and columns in the file, by JSON pointer", Json{{"type", "object"}}, {},
                              kByPrograms));
    return rows;
  }();
  return table;
}

/// All fields of a problem file: those of the problem, and [tune].
template <>
const std::vector<Field<ProblemFile>>& fields<ProblemFile>() {
  static const std::vector<Field<ProblemFile>> table = [] {
    std::vector<Field<ProblemFile>> rows;
    for (const Field<Problem>& row : fields<Problem>())
      rows.push_back({row.name, row.meaning, row.options, row.type, row.read, row.write});
    rows.push_back(tune_field());
    return rows;
  }();
  return table;
}

ProblemFile read_problem(const Node& node, const std::filesystem::path& file, bool trusted) {
  ProblemFile problem;
  problem.file = file;
  if (!trusted) problem.name = file.stem().string();
  if (const Node* from = node.find("file")) problem.file = text_of(*from, "\"file\"");
  Context context;
  context.trusted = trusted;
  if (!trusted) context.folder = folder_of(problem.file);
  const Table root(node, kWholeFile, {file.string(), 0, 0}, context);
  // On simulated devices a model replaces the kernel.
  context.modelled = trusted || root.has("simulation") || wants_space_only(root);
  if (const auto table = root.optional_table("buffers")) context.buffers = read_buffers(*table);
  read_problem(root, problem);
  return problem;
}

}  // namespace document

using namespace document;

ProblemFile load_toml_problem(const std::string& text, const std::filesystem::path& file) {
  ProblemFile problem = read_problem(parse_toml(text, file.string()), file, false);
  check_names(problem);
  return problem;
}

std::string to_json(const ProblemFile& problem) {
  return json_text(to_json(write_fields(problem, Form::file)), 2) + "\n";
}

void set_attributes(Problem& problem, const Attributes& values) { read_attributes(values, kWholeFile, problem); }

std::vector<Step> steps_from(const Problem& problem, const std::string& json) {
  Node root(Node::Entries{});
  root.set("steps", parse_json(json, ""));
  const Context context;
  return read_steps(Table(root, "the workload", {}, context), problem.kernels);
}

ExecutionParameterSpec execution_parameter_from(const std::string& json) {
  const Node root = parse_json(json, "");
  const Context context;
  return read_execution(Table(root, "[execution]", {}, context)).at(0);
}

std::string serialise(const ProblemFile& problem) {
  Node node = write_fields(problem, Form::document);
  Json places = places_of(node, problem.file.string());
  Json json = to_json(std::move(node));
  json["ergotune_problem"] = kVersion;
  json["places"] = std::move(places);
  // A source may hold bytes that are not UTF-8 (a comment in Latin-1); they must not stop a session.
  return json_text(json);
}

ProblemFile deserialise(const std::string& document) {
  Node node = document::parse_json(document, "");
  const Node* version = node.is_table() ? node.find("ergotune_problem") : nullptr;
  if (!version) throw Error("this is not a problem document: it has no version");
  if (!(*version == Node(kVersion)))
    throw Error(fmt::format("this problem document has version {}; this ergotune reads version {}",
                            to_json(*version).dump(), kVersion));
  const Node* file = node.find("file");
  const Node* places = node.find("places");
  const Node copy = places ? *places : Node();
  set_places(node, &copy, file && file->is_text() ? file->text() : "");
  return read_problem(node, {}, true);
}

std::string identity_of(const Problem& problem) {
  Node node = write_fields(problem, Form::identity);
  node.set("identity", kVersion);
  // Distinguishes sessions whose instruction counts are those of machine code.
  if (names_instructions(problem)) node.set("instructions", std::string("machine code"));
  return json_text(to_json(std::move(node)));
}

}  // namespace ergotune

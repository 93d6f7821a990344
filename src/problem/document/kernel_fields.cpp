// [kernel], its arguments, [buffers] and [verification].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

#include "base/half.hpp"
#include "base/hash.hpp"
#include "problem/checks.hpp"
#include "problem/document/fields.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/element_type.hpp"
#include "problem/files/base64.hpp"
#include "problem/files/includes.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune::document {

template <class E>
static std::vector<std::string> names_up_to(E last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.push_back(to_string(static_cast<E>(i)));
  return names;
}
template <>
const std::vector<std::string>& names_of<Language>() {
  static const auto names = names_up_to(Language::fortran);
  return names;
}
template <>
const std::vector<std::string>& names_of<ElementType>() {
  static const auto names = names_up_to(ElementType::float64);
  return names;
}
template <>
const std::vector<std::string>& names_of<Compare>() {
  static const auto names = names_up_to(Compare::sorted);
  return names;
}
template <>
const std::vector<std::string>& names_of<Access>() {
  static const std::vector<std::string> names{"read", "write", "read_write"};
  return names;
}

/// ElementType also accepts aliases ("float"), which are not written.
template <>
struct Type<ElementType> {
  static void read(const Table&, const Node& node, const std::string& what, ElementType& to) {
    const auto known = element_type(text_of(node, what));
    if (!known)
      throw UserError(fmt::format("unknown type \"{}\" of {}{}", node.text(), what,
                                  suggestion(node.text(), names_of<ElementType>())),
                      node.place);
    to = *known;
  }
  static Node write(ElementType from, Form) { return to_string(from); }
  static Json type(Schema&) { return string_type(); }
};

template <>
const std::vector<Field<KernelSource>>& fields<KernelSource>();
template <>
const std::vector<Field<Launch>>& fields<Launch>();
template <>
const std::vector<Field<ergotune::Field>>& fields<ergotune::Field>();
template <>
const std::vector<Field<Fill>>& fields<Fill>();
template <>
const std::vector<Field<Argument>>& fields<Argument>();
template <>
const std::vector<Field<Kernel>>& fields<Kernel>();
template <>
const std::vector<Field<Verification>>& fields<Verification>();

template <>
struct Type<ergotune::Field> {
  static void read(const Table& at, const Node& node, const std::string& what, ergotune::Field& to) {
    read_fields(at.table(node, what), to);
  }
  static Node write(const ergotune::Field& from, Form form) { return write_fields(from, form); }
  static Json type(Schema& schema) {
    return schema.section<ergotune::Field>("member", "fields: the members of a structure");
  }
};

// Sources.
namespace {

bool on_host(Language language) { return language >= Language::c; }

Language language_named(const std::string& name, const SourcePlace& place) {
  const auto& names = names_of<Language>();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<Language>(found - names.begin());
  const bool cpp = name == "c++" || name == "cxx";
  throw UserError(fmt::format("unknown language \"{}\"{}", name, suggestion(cpp ? "cpp." : name, names)), place);
}

Language language_of_file(const std::filesystem::path& file, const SourcePlace& place) {
  static const std::map<std::string, Language> kEndings{
      {".cubin", Language::cuda},  {".ptx", Language::cuda},  {".fatbin", Language::cuda}, {".cu", Language::cuda},
      {".cuh", Language::cuda},    {".cl", Language::opencl}, {".hip", Language::hip},     {".c", Language::c},
      {".cpp", Language::cpp},     {".cc", Language::cpp},    {".cxx", Language::cpp},     {".f90", Language::fortran},
      {".F90", Language::fortran}, {".f", Language::fortran}, {".f03", Language::fortran}, {".f08", Language::fortran}};
  const auto found = kEndings.find(file.extension().string());
  if (found != kEndings.end()) return found->second;
  throw UserError(fmt::format("the ending of \"{}\" names no language; name it: source = {{ opencl = \"{}\" }}",
                              file.string(), file.string()),
                  place);
}

void add_include_folder(KernelSource& source, const std::filesystem::path& folder) {
  const auto absolute = std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal();
  auto& folders = source.include_folders;
  if (std::ranges::find(folders, absolute) == folders.end()) folders.push_back(absolute);
}

KernelSource source_from_file(const std::string& name, std::optional<Language> language,
                              const std::filesystem::path& folder, const SourcePlace& place) {
  KernelSource source;
  source.file = (folder / name).lexically_normal();
  source.language = language ? *language : language_of_file(source.file, place);
  source.text = read_text_file(source.file, "source", place);
  source.file = std::filesystem::absolute(source.file);
  add_include_folder(source, source.file.parent_path());
  return source;
}

KernelSource read_source(const Table& parent, const Entry& entry) {
  const Language language = language_named(entry.key, entry.place);
  const auto& folder = parent.context().folder;
  if (entry.value.is_text()) return source_from_file(entry.value.text(), language, folder, entry.value.place);
  const Table table = parent.table(entry);
  // a document has both the text and the path from which it was read
  const bool complete = table.has("include_folders");
  if (!complete) table.at_most_one_of({"file", "text", "code"});
  if (table.has("text") || table.has("code")) {
    KernelSource source;
    read_fields(table, source);
    source.language = language;
    if (!complete) add_include_folder(source, folder);
    return source;
  }
  table.allow(field_names<KernelSource>());
  const std::string file = table.text("file", "the source file (or \"text\": the source itself)");
  return source_from_file(file, language, folder, table.find("file")->place);
}

std::vector<KernelSource> read_sources(const Table& kernel) {
  const Node& node =
      kernel.require("source", "a file such as \"gemm.cl\", or a table by language: { opencl = \"gemm.cl\" }");
  const auto& folder = kernel.context().folder;
  std::vector<KernelSource> sources;
  if (node.is_table()) {
    const Table table = *kernel.optional_table("source");
    for (const Entry& entry : table.entries()) sources.push_back(read_source(table, entry));
  } else if (node.list()) {
    for (const Node& item : *node.list())
      sources.push_back(source_from_file(text_of(item, "a source"), std::nullopt, folder, item.place));
  } else {
    sources.push_back(source_from_file(text_of(node, kernel.what("source")), std::nullopt, folder, node.place));
  }
  if (sources.empty()) throw UserError(fmt::format("{} has no source", kernel.title()), node.place);
  for (KernelSource& source : sources)
    for (const std::string& path : kernel.texts("include_folders")) add_include_folder(source, folder / path);
  return sources;
}

/// Returns what determines results: the text of a source and the files that it includes, without comments.
Node identity_of(const KernelSource& source, const std::vector<std::string>& options) {
  Node node(Node::Entries{});
  const bool compiled = is_compiled_code(source.text);
  const auto text_of = [&](const std::string& text) {
    return content_hash(compiled || source.language == Language::fortran ? text : without_comments(text));
  };
  node.set("text", text_of(source.text));
  if (compiled) return node;
  std::vector<std::string> folders;
  for (const auto& folder : include_folders_of(source)) folders.push_back(folder.string());
  Node::List included;
  for (const auto& [name, text, path] : files_in_use(source.text, std::move(folders), options))
    included.push_back(Node::List{name, is_compiled_code(text) ? content_hash(text) : text_of(text)});
  if (!included.empty()) node.set("included", std::move(included));
  return node;
}

Node write_sources(const Kernel& kernel, Form form) {
  Node node(Node::Entries{});
  std::vector<const KernelSource*> sources;
  for (const KernelSource& source : kernel.sources) sources.push_back(&source);
  // a device uses the first source in a language that it compiles, so that only the order within a language matters
  if (form == Form::identity)
    std::ranges::stable_sort(sources, [](const auto* a, const auto* b) { return a->language < b->language; });
  for (const KernelSource* source : sources) {
    const std::string language = to_string(source->language);
    if (node.find(language)) continue;
    std::vector<std::string> options;
    for (const auto& [where, list] : kernel.options)
      for (const Template& option : list) options.push_back(option.text());
    Node value = form == Form::identity ? identity_of(*source, options) : write_fields(*source, form, {}, true);
    // marks the folders as known
    if (form != Form::identity && source->include_folders.empty()) value.set("include_folders", Node::List{});
    node.set(language, std::move(value));
  }
  return unless_empty(std::move(node));
}

Json source_type(Schema& schema) {
  const Json one = schema.section<KernelSource>(
      "source",
      "[kernel.source.LANGUAGE]: a source by language, cuda, opencl, hip, c, cpp or fortran, is a file or a table",
      {string_type()});
  Json properties = Json::object();
  for (const std::string& name : names_of<Language>()) properties[name] = one;
  return any_type({string_type(),
                   list_type(string_type()),
                   {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}});
}

}  // namespace

static std::vector<std::uint8_t> bytes_of(const Node& node, const std::string& what) {
  const std::string& text = text_of(node, what);
  try {
    return base64_decode(text);
  } catch (const Error& error) {
    throw UserError(fmt::format("{} is not base64: {}", what, error.what()), node.place);
  }
}

static void read_code(const Table& at, const Node& node, KernelSource& to) {
  const auto bytes = bytes_of(node, at.what("code"));
  to.text.assign(bytes.begin(), bytes.end());
}
static Node write_code(const KernelSource& from, Form) {
  return base64_encode({reinterpret_cast<const std::uint8_t*>(from.text.data()), from.text.size()});
}

template <>
const std::vector<Field<KernelSource>>& fields<KernelSource>() {
  using T = KernelSource;
  static const std::vector<Field<T>> table{
      field<T>("file", &T::file, "The source file"),
      {"text",
       "Instead, the source itself",
       {},
       string_type(),
       field<T>("text", &T::text, "").read,
       [](const T& from, Form) { return is_compiled_code(from.text) ? Node() : Node(from.text); }},
      // compiled code is not valid text in JSON
      written_if<T>(
          [](const T& from) { return is_compiled_code(from.text); },
          field<T>("code", "Compiled code (base64)", string_type(), read_code, write_code, {.by_programs = true})),
      field<T>("include_folders", &T::include_folders, "Every folder for #include", {.by_programs = true})};
  return table;
}

// Launch and options.
namespace {

Field<Launch> dimensions(std::string_view name, std::vector<Expression> Launch::*member, std::string_view meaning) {
  Field<Launch> result = field<Launch>(name, member, meaning);
  result.read = [=, read = result.read](const Table& at, const Node& node, Launch& to) {
    read(at, node, to);
    const std::size_t count = (to.*member).size();
    if (count == 0 || count > 3)
      throw UserError(fmt::format("{} has {} dimensions; a launch has one to three", at.what(name), count), node.place);
  };
  return result;
}

void check_launch(const Kernel& kernel, const Table& table) {
  const bool device_code =
      std::ranges::any_of(kernel.sources, [](const KernelSource& source) { return !on_host(source.language); });
  if (!device_code || table.context().trusted) return;  // a host function contains its own loops
  const SourcePlace place = table.key_place("launch");
  if (kernel.launch.grid.empty() && kernel.launch.global.empty()) {
    throw UserError(
        fmt::format(
            "{} needs \"launch.grid\" (blocks, as CUDA counts) or \"launch.global\" (work items, as OpenCL counts)",
            table.title()),
        place);
  }
  if (kernel.launch.block.empty()) {
    throw UserError(
        fmt::format("{} needs \"launch.block\": threads per block, such as [\"block_size_x\", 1]", table.title()),
        place);
  }
}

void read_options(const Table& kernel, const Node& node, Kernel& to) {
  using List = Type<std::vector<Template>>;
  constexpr const char* kWhat = "a compiler option";
  if (!node.is_table()) return List::read(kernel, node, kWhat, to.options[""]);
  const Table table = *kernel.optional_table("options");
  const auto& sources = to.sources;
  const auto used = [&](const Entry& entry) {
    return std::ranges::any_of(sources, [&](const KernelSource& source) {
      return to_string(source.language) == entry.key || (source.language == Language::cuda && entry.key == "hip");
    });
  };
  const auto& entries = table.entries();
  const bool any_used = std::ranges::any_of(entries, used);
  for (const Entry& entry : entries) {
    // Options for other devices may be given; host languages are interchangeable.
    const bool meant =
        entry.key == "all" || used(entry) || (!on_host(language_named(entry.key, entry.place)) && any_used);
    if (!meant && !sources.empty() && !kernel.context().trusted)
      throw UserError(fmt::format("{} has options for {}, and its source is in {}: they would be used for nothing",
                                  kernel.title(), entry.key, to_string(sources.front().language)),
                      entry.place);
    List::read(table, entry.value, kWhat, to.options[entry.key == "all" ? "" : entry.key]);
  }
}
Node write_options(const Kernel& kernel, Form form) {
  auto options = kernel.options;
  if (auto all = options.extract(""); !all.empty()) options["all"] = std::move(all.mapped());
  return Type<decltype(options)>::write(options, form);
}
Json options_type(Schema&) {
  Json properties{{"all", strings_type()}};
  for (const std::string& name : names_of<Language>()) properties[name] = strings_type();
  return any_type({string_type(), list_type(string_type()),
                   Json{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}});
}

void read_launch(const Table& table, Kernel& kernel) {
  if (!table.context().trusted) table.at_most_one_of({"grid", "global"});
  kernel.launch = {};
  read_fields(table, kernel.launch);
}

}  // namespace

template <>
const std::vector<Field<Launch>>& fields<Launch>() {
  using T = Launch;
  static const std::vector<Field<T>> table{
      dimensions("grid", &T::grid, "Blocks in up to three dimensions, as CUDA counts"),
      dimensions("global", &T::global, "Or work items, as OpenCL counts, rounded up to whole blocks"),
      dimensions("block", &T::block, "Threads per block"),
      field<T>("shared_memory_bytes", &T::shared_memory_bytes, "Dynamic shared memory of CUDA (bytes)"),
      attribute<T, std::string>("description", "What the geometry is; shown with results", {.incidental = true})};
  return table;
}

// Arguments.
namespace {

bool is_integer_type(ElementType type) { return type < ElementType::float16; }

void read_fill(const Table& table, Argument& argument) {
  using Kind = Fill::Kind;
  Fill& fill = argument.fill;
  if (is_integer_type(argument.type)) fill.low = 0, fill.high = 127;
  // Write-only buffers start from zeros, so that elements that were not written are noticed.
  if (argument.access == Access::write) fill.kind = Kind::constant;
  const Node* node = table.find("fill");
  if (!node) return;
  if (node->is_number()) {
    fill.kind = Kind::constant;
    fill.value = node->number();
  } else if (node->is_text()) {
    const std::string& word = node->text();
    if (word != "random" && word != "range") {
      throw UserError(fmt::format("unknown fill \"{}\"{}", word, suggestion(word, {"random", "range"})) +
                          "; or a number, { random = [low, high], seed = n }, { range = [start, step] }, { constant = "
                          "x }, { file = \"data.bin\" }",
                      node->place);
    }
    fill.kind = word == "random" ? Kind::random : Kind::range;
  } else {
    const Table inner = *table.optional_table("fill");
    inner.at_most_one_of({"random", "range", "constant", "file", "data"});
    fill.kind = Kind::random;
    read_fields(inner, fill);
    if (!(fill.low <= fill.high) && !table.context().trusted)
      throw UserError(fmt::format("{} goes from {} down to {}; the lower value comes first", inner.what("random"),
                                  fill.low, fill.high),
                      inner.find("random")->place);
  }
}

/// Makes a field select its kind of fill.
Field<Fill> of_kind(Fill::Kind kind, Field<Fill> field) {
  field.read = [=, read = field.read](const Table& at, const Node& node, Fill& to) {
    to.kind = kind;
    read(at, node, to);
  };
  field.write = [=, write = field.write](const Fill& from, Form form) {
    return from.kind == kind ? write(from, form) : Node();
  };
  return field;
}
/// A field that is a list of two numbers.
Field<Fill> pair_field(std::string_view name, double Fill::*first, double Fill::*second, const char* expected,
                       std::string_view meaning, Options options = {}) {
  return field<Fill>(
      name, meaning, fixed_list_type(number_type(), 2),
      [=](const Table& at, const Node& node, Fill& to) {
        const auto numbers = numbers_of(node, 2, at.what(name), expected);
        to.*first = numbers[0], to.*second = numbers[1];
      },
      [=](const Fill& from, Form) {
        return Node::List{from.*first, from.*second};
      },
      options);
}
void read_seed(const Table& at, const Node& node, Fill& to) {
  to.seed = static_cast<std::uint64_t>(integer_of(node, at.what("seed")));
}
void read_constant(const Table& at, const Node& node, Fill& to) { to.value = number_of(node, at.what("constant")); }
void read_data(const Table& at, const Node& node, Fill& to) {
  to.data = std::make_shared<std::vector<std::uint8_t>>(bytes_of(node, at.what("data")));
}

Node write_fill(const Fill& fill, Form form) {
  if (fill.kind == Fill::Kind::file && form == Form::identity) return contents_of(fill.file);  // as for kind data
  if (fill.kind != Fill::Kind::data || form != Form::identity) return write_fields(fill, form, {}, true);
  if (fill.foreign) return content_hash_of(fill.foreign->bytes, fill.foreign->read);
  std::string_view bytes;
  if (fill.data) bytes = {reinterpret_cast<const char*>(fill.data->data()), fill.data->size()};
  return content_hash(bytes);
}

void refuse_buffer_keys(const Table& table, const std::string& what, const char* has) {
  for (const char* key : {"fill", "access"}) {
    if (!table.has(key)) continue;
    throw UserError(fmt::format("{} is a scalar (it has \"{}\"), so it takes no \"{}\"", what, has, key),
                    table.key_place(key));
  }
}

ElementType read_type(const Table& table, const std::string& what) {
  ElementType type{};
  Type<ElementType>::read(table, table.require("type", "the type of its elements, such as \"float32\""), what, type);
  return type;
}

/// Reads { buffer = "x", access = "write" }, a reference to an entry of [buffers].
Argument read_reference(const Table& table) {
  table.allow({"buffer", "access", "when"});
  const std::string name = table.text("buffer", "the name of a buffer in [buffers]");
  std::vector<std::string> names;
  for (const Argument& buffer : table.context().buffers) {
    names.push_back(buffer.name);
    if (buffer.name != name) continue;
    Argument argument = buffer;
    argument.access = Access::read;
    return argument;
  }
  throw UserError(fmt::format("[buffers] has no \"{}\"{}", name, suggestion(name, names)), table.find("buffer")->place);
}

/// Reads fields = [{ name, type, value }, ...].
void read_members(const Table& table, const Node& node, Argument& argument) {
  if (node.list() && node.list()->empty())
    throw UserError(fmt::format("the structure \"{}\" has no members: \"fields\" is empty", argument.name),
                    table.key_place("fields"));
  if (!node.list())
    wrong_kind(node, fmt::format("\"fields\" of argument \"{}\"", argument.name),
               "a list of tables { name, type, value }, in the order of the structure's members");
  for (const Node& item : *node.list())
    read_fields(
        table.table(item, fmt::format("member {} of argument \"{}\"", argument.fields.size() + 1, argument.name)),
        argument.fields.emplace_back());
}

/// Determines from the keys whether the argument is a structure, a scalar, local memory or a buffer, and reads it.
void read_content(const Table& table, std::size_t position, const std::string& what, Argument& argument) {
  using Kind = Argument::Kind;
  const Node* members = table.find("fields");
  if (members && !table.has("count")) {
    refuse_buffer_keys(table, what, "fields");
    argument.kind = Kind::scalar;
    argument.type_name = table.text("type", "the structure's name in the source, such as \"struct grid\"");
    return read_members(table, *members, argument);
  }
  argument.type = read_type(table, what);
  if (const Node* value = table.find("value")) {
    argument.kind = Kind::scalar;
    argument.value = expression_of(*value, "the value of " + what);
    return refuse_buffer_keys(table, what, "value");
  }
  const Node* local = table.find("local_count");
  argument.kind = local ? Kind::local_memory : Kind::buffer;
  argument.count = expression_of(
      local ? *local
            : table.require(
                  "count",
                  "the number of elements of a buffer (or \"value\" for a scalar, \"local_count\" for local memory)"),
      "the count of " + what);
  if (local) return;
  if (const Node* access = table.find("access"))
    Type<Access>::read(table, *access, table.what("access"), argument.access);
  // Each buffer gets a different default seed, so that random fills differ.
  argument.fill.seed = position + 1;
  read_fill(table, argument);
  if (members) read_members(table, *members, argument);
}

Argument read_argument(const Table& table, std::size_t position) {
  Argument argument;
  if (table.has("buffer")) {
    argument = read_reference(table);
    if (const Node* access = table.find("access"))
      Type<Access>::read(table, *access, table.what("access"), argument.access);
  } else {
    table.allow(field_names<Argument>());
    table.at_most_one_of({"value", "count", "local_count"});
    table.at_most_one_of({"value", "local_count", "fields"});
    argument.name = table.text("name", "what the argument is called");
    read_content(table, position, fmt::format("argument \"{}\"", argument.name), argument);
    if (const Node* seen_as = table.find("seen_as")) argument.seen_as = text_of(*seen_as, table.what("seen_as"));
  }
  argument.place = table.place();
  if (const Node* when = table.find("when"))
    argument.when = expression_of(*when, fmt::format("\"when\" of argument \"{}\"", argument.name));
  return argument;
}

Node write_arguments(const std::vector<Argument>& arguments, Form form) {
  Node::List list;
  for (const Argument& argument : arguments)
    list.push_back(write_fields(argument, form, form != Form::identity ? argument.place : SourcePlace{}, true));
  return list.empty() ? Node() : Node(std::move(list));
}

using Kind = Argument::Kind;
bool is_structure(const Argument& argument) { return argument.kind == Kind::scalar && !argument.fields.empty(); }

Json fill_type(Schema& schema) {
  return schema.section<Fill>("fill", "fill: \"random\", \"range\", a number, or a table with one of",
                              {number_type(), choice_type({"random", "range"}), string_type()});
}
Json argument_type(Schema& schema) {
  return schema.section<Argument>("argument", "arguments: each is a table, in the order of the function's arguments");
}

}  // namespace

template <>
const std::vector<Field<Fill>>& fields<Fill>() {
  using T = Fill;
  using Of = Fill::Kind;
  static const std::vector<Field<T>> table{
      of_kind(Of::random, pair_field("random", &T::low, &T::high, "a list [low, high]",
                                     "Uniform in [low, high); integers in [low, high]",
                                     {.otherwise = "[-1, 1]; integers [0, 127]"})),
      of_kind(Of::random, field<T>("seed", "Seed of the random values", Json{{"type", "integer"}}, read_seed,
                                   [](const T& from, Form) { return Node(static_cast<std::int64_t>(from.seed)); },
                                   {.otherwise = "the argument's position"})),
      of_kind(Of::range, pair_field("range", &T::start, &T::step, "a list [start, step]", "start + i * step")),
      of_kind(Of::constant, field<T>("constant", "One value", number_type(), read_constant,
                                     [](const T& from, Form) { return Node(from.value); })),
      of_kind(Of::file,
              field<T>("file", &T::file, "A file of raw little-endian elements, or NumPy's .npy of the type")),
      of_kind(Of::data, field<T>("data", "The elements themselves (base64)", string_type(), read_data,
                                 [](const T& from, Form) { return Node(base64_encode(contents_of(from))); },
                                 {.by_programs = true}))};
  return table;
}

template <>
const std::vector<Field<ergotune::Field>>& fields<ergotune::Field>() {
  using T = ergotune::Field;
  static const std::vector<Field<T>> table{
      // an address is of the buffer that its name says
      field<T>("name", &T::name,
               "What the member is called; \"&BUFFER\" is the address of an argument that is a buffer, of type "
               "\"uint64\" (OpenCL: only as the one member), in a buffer \"&BUFFER@BYTE\" with its place, and a buffer "
               "that only addresses point to has when = \"False\"",
               {.required = true}),
      field<T>("type", &T::type, "Its type, such as \"float32\"", {.required = true}),
      field<T>("value", &T::value, "A number or an expression; of an address, bytes from the buffer's beginning",
               {.required = true})};
  return table;
}

template <>
const std::vector<Field<Argument>>& fields<Argument>() {
  using T = Argument;
  constexpr auto is_buffer = [](const T& from) { return from.kind == Kind::buffer; };
  constexpr auto is_local = [](const T& from) { return from.kind == Kind::local_memory; };
  constexpr auto is_number = [](const T& from) { return from.kind == Kind::scalar && from.fields.empty(); };
  // read by read_argument(), since the keys of an argument depend on each other
  static const std::vector<Field<T>> table{
      field<T>("name", &T::name, "What the argument is called"),
      written<T>("type",
                 "Type of its elements, such as \"float32\"; of a structure its name in the source, \"struct grid\"",
                 string_type(),
                 [](const T& from, Form) { return Node(is_structure(from) ? from.type_name : to_string(from.type)); },
                 {.otherwise = "required"}),
      written_if<T>(is_number, field<T>("value", &T::value, "Of a scalar: a number or an expression")),
      written_if<T>(is_buffer,
                    field<T>("count", &T::count, "Of a buffer: its number of elements, an expression over constants",
                             {.otherwise = "required"})),
      written_if<T>(is_local,
                    field<T>("local_count", &T::count, "Of dynamic local memory in OpenCL: its number of elements")),
      written_if<T>(
          [](const T& from) { return !from.fields.empty(); },
          field<T>("fields", &T::fields,
                   "Of a structure that is passed by value: its members in their order; of a buffer: the addresses "
                   "of others that it holds")),
      written_if<T>(is_buffer,
                    field<T>("access", &T::access, "How the kernel uses a buffer; written ones are verified")),
      written_if<T>(is_buffer, written<T>("fill", "What a buffer holds before a launch", fill_type,
                                          [](const T& from, Form form) { return write_fill(from.fill, form); },
                                          {.otherwise = "random; 0 where it is only written"})),
      written<T>("buffer", "Instead of the above: the name of a buffer in [buffers]", string_type()),
      field<T>("when", &T::when, "Condition of the configurations to which the argument is passed",
               {.otherwise = "all"}),
      field<T>("seen_as", &T::seen_as, "The type, order and shape that a Python verification sees",
               {.incidental = true, .by_programs = true})};
  return table;
}

std::vector<Argument> read_arguments(const Table& parent, const Node& node) {
  if (!node.list()) wrong_kind(node, "\"arguments\"", "a list of tables, in the order of the kernel's arguments");
  std::vector<Argument> result;
  std::set<std::string> names;
  for (const Node& item : *node.list()) {
    const Table table = parent.table(item, fmt::format("argument {}", result.size() + 1));
    result.push_back(read_argument(table, result.size()));
    if (!names.insert(result.back().name).second && !parent.context().trusted) {
      throw UserError(fmt::format("two arguments are called \"{}\"", result.back().name),
                      table.key_place(table.has("buffer") ? "buffer" : "name"));
    }
  }
  return result;
}

std::vector<Argument> read_buffers(const Table& parent) {
  std::vector<Argument> buffers;
  for (const Entry& entry : parent.entries()) {
    const Table table = parent.table(entry);
    table.allow({"type", "count", "fill"});
    Argument buffer;
    buffer.place = entry.place;
    buffer.name = entry.key;
    const std::string what = fmt::format("buffer \"{}\"", entry.key);
    buffer.type = read_type(table, what);
    buffer.count = expression_of(table.require("count", "the number of its elements"), "the count of " + what);
    buffer.fill.seed = buffers.size() + 1;
    read_fill(table, buffer);
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

Json buffers_type(Schema& schema) {
  return map_type(
      {{"type", "object"},
       {"properties", {{"type", string_type()}, {"count", expression_type(schema)}, {"fill", fill_type(schema)}}},
       {"required", {"type", "count"}},
       {"additionalProperties", false}});
}

void resolve_buffers(const Table& root, std::vector<Kernel>& kernels) {
  const auto buffers = root.optional_table("buffers");
  if (!buffers) return;
  for (const Entry& entry : buffers->entries()) {
    bool used = false, written = false;
    std::vector<Argument*> uses;
    for (Kernel& kernel : kernels) {
      for (Argument& argument : kernel.arguments) {
        if (argument.kind != Argument::Kind::buffer || argument.name != entry.key) continue;
        uses.push_back(&argument);
        used = true;
        written = written || argument.access != Access::read;
      }
    }
    if (!used) throw UserError(fmt::format("no kernel has buffer \"{}\" among its arguments", entry.key), entry.place);
    if (!written || entry.value.find("fill")) continue;
    for (Argument* argument : uses) argument->fill.kind = Fill::Kind::constant;
  }
}

// Kernels.
template <>
const std::vector<Field<Kernel>>& fields<Kernel>() {
  using T = Kernel;
  static const std::vector<Field<T>> table{
      field<T>("function", "The name of the kernel function; of CUDA C++ a name expression, \"gemm<{{TILE}}, float>\"",
               string_type(), field<T>("function", &T::function, "").read,
               [](const T& from, Form) { return Node(from.function.text()); }, {.required = true}),
      field<T>(
          "source", "A file whose ending names the language, a list of them, or a table by language", source_type,
          [](const Table& at, const Node&, T& to) { to.sources = read_sources(at); }, write_sources),
      written<T>("include_folders", "Folders for #include; the source's own is always among them", strings_type()),
      table_field<T>(
          "launch", "The geometry of a launch; not for functions in C, C++ and Fortran",
          [](Schema& schema) { return schema.section<Launch>("launch", "[kernel.launch]"); }, read_launch,
          [](const T& from, Form form) { return unless_empty(write_fields(from.launch, form)); }),
      field<T>("options",
               "Compiler options, as a list or as lists by language (all: for every one); {{expression}} is replaced "
               "by its value",
               options_type, read_options, write_options),
      field<T>(
          "arguments", "The function's arguments in their order",
          [](Schema& schema) { return list_type(argument_type(schema)); },
          [](const Table& at, const Node& node, T& to) { to.arguments = read_arguments(at, node); },
          [](const T& from, Form form) { return write_arguments(from.arguments, form); }),
      written<T>("parameters", "In [kernels.NAME]: parameters of this kernel only", parameters_type),
      written<T>(
          "verification", "In [kernels.NAME]: a reference for this kernel alone, as in [verification]",
          verification_type,
          [](const T& from, Form form) { return from.verification ? write(*from.verification, form, false) : Node(); }),
      attribute<T, std::string>("description", "What it does; shown with results", {.incidental = true})};
  return table;
}

namespace {

/// Reads the verification of one kernel of a workload; its reference takes the kernel's arguments.
std::shared_ptr<Verification> read_own_verification(const Table& table, const Kernel& kernel) {
  const std::string tables = "a table \"kernel\" or \"host_function\" in " + table.title();
  for (const char* key : {"reference", "files"}) {
    if (!table.has(key)) continue;
    throw UserError(fmt::format("\"{}\" belongs in [verification], which looks at what a round leaves; a kernel's own "
                                "verification has a reference: {}",
                                key, tables),
                    table.key_place(key));
  }
  if (!table.has("kernel") && !table.has("host_function"))
    throw UserError(fmt::format("{} has no reference; add {}", table.title(), tables), table.place());
  return std::make_shared<Verification>(read_verification(table, {kernel}));
}

}  // namespace

Kernel read_kernel(const Table& table) {
  const Context& context = table.context();
  std::vector<std::string> keys = field_names<Kernel>();
  std::erase_if(keys, [&](const std::string& key) {
    return key == "arguments" ? context.main && !context.trusted
                              : !context.named && (key == "parameters" || key == "verification");
  });
  table.allow(keys);
  Kernel kernel;
  if (context.main) {
    kernel.launch = context.main->launch;
    kernel.arguments = context.main->arguments;
  }
  if (!context.modelled)
    table.require("source", "a file such as \"gemm.cl\", or a table by language: { opencl = \"gemm.cl\" }");
  for (const Field<Kernel>& field : fields<Kernel>()) {
    if (field.options.required) table.require(field.name, field.meaning);
    const Node* node = table.find(field.name);
    if (node && field.read) field.read(table, *node, kernel);
  }
  if (!context.modelled) check_launch(kernel, table);
  if (const auto own = table.optional_table("verification")) kernel.verification = read_own_verification(*own, kernel);
  return kernel;
}

Node write(const Kernel& kernel, Form form) { return write_fields(kernel, form); }

// Verification.
namespace {

using Check = Verification::Kind;

std::vector<std::string> outputs_of(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) {
    for (const Argument& argument : kernel.arguments) {
      if (argument.kind == Argument::Kind::buffer && argument.access != Access::read) names.push_back(argument.name);
    }
  }
  return names;
}

/// Checks that all names refer to outputs of the kernels.
void check_outputs(const Table& table, const std::vector<Kernel>& kernels) {
  const std::vector<std::string> known = outputs_of(kernels);
  const auto check = [&](const std::string& name, const SourcePlace& place) {
    if (std::ranges::find(known, name) != known.end()) return;
    throw UserError(fmt::format("\"{}\" is not an output of {}{}", name,
                                kernels.size() > 1 ? "the kernels" : "the kernel", suggestion(name, known)),
                    place);
  };
  for (const std::string& name : table.texts("outputs")) check(name, table.key_place("outputs"));
  for (const char* key : {"compare", "files"})
    if (const auto inner = table.optional_table(key))
      for (const Entry& entry : inner->entries()) check(entry.key, entry.place);
}

void check_host_function(const Table& table, const Kernel& reference) {
  for (const KernelSource& source : reference.sources) {
    if (on_host(source.language)) continue;
    throw UserError(
        fmt::format(
            "a host function is written in c, cpp or fortran, not {}; a reference in {} goes in [verification.kernel]",
            to_string(source.language), to_string(source.language)),
        table.key_place("source"));
  }
}

Field<Verification> reference_field(std::string_view name, Check kind, std::string_view meaning) {
  return {name,
          meaning,
          {},
          [](Schema&) {
            return Json{{"$ref", "#/definitions/kernel"}};
          },
          [=](const Table& at, const Node&, Verification& to) {
            const Table table = *at.optional_table(name);
            to.kind = kind;
            to.reference = std::make_shared<Kernel>(read_kernel(table));
            if (kind == Check::host_function && !at.context().trusted) check_host_function(table, *to.reference);
          },
          [=](const Verification& from, Form form) {
            return from.kind == kind && from.reference ? write(*from.reference, form) : Node();
          }};
}

}  // namespace

static void read_reference_word(const Table& at, const Node& node, Verification& to) {
  const std::string& word = text_of(node, at.what("reference"));
  if (word != "none" && word != "first_correct") {
    throw UserError(fmt::format("unknown reference \"{}\"{}; or a table [verification.kernel], "
                                "[verification.host_function] or [verification.files]",
                                word, suggestion(word, {"none", "first_correct"})),
                    node.place);
  }
  to.kind = word == "none" ? Check::none : Check::first_correct;
}

template <>
const std::vector<Field<Verification>>& fields<Verification>() {
  using T = Verification;
  constexpr std::string_view kPerConfiguration =
      "The reference runs for each configuration with its parameters, not once with the defaults";
  constexpr std::string_view kReference =
      "\"first_correct\": all configurations must agree with the first that ran; \"none\": no verification";
  static const std::vector<Field<T>> table{
      field<T>("absolute_tolerance", &T::absolute_tolerance,
               "An output is correct if |x - reference| <= absolute + relative * |reference|",
               {.otherwise = "relative_tolerance times the size of the output's numbers"}),
      field<T>("relative_tolerance", &T::relative_tolerance,
               "The same; whole numbers have to be equal unless one of the two is given"),
      field<T>("outputs", &T::outputs, "The outputs that are compared", {.otherwise = "all"}),
      field<T>("compare", &T::compare, "Outputs that are compared as a whole, by name", {.otherwise = "\"elements\""}),
      field<T>("per_configuration", &T::per_configuration, kPerConfiguration),
      field<T>("reference", kReference, choice_type({"none", "first_correct"}), read_reference_word,
               [](const T& from, Form) { return from.kind == Check::none ? Node(std::string("none")) : Node(); },
               {.otherwise = "\"first_correct\""}),
      reference_field("kernel", Check::kernel, "A reference kernel for the same device"),
      reference_field("host_function", Check::host_function, "A function in C, C++ or Fortran with the same arguments"),
      written_if<T>([](const T& from) { return from.kind == Check::files; },
                    field<T>("files", &T::files, "A file of raw little-endian elements for each output"))};
  return table;
}

void begin_with_neutral_elements(const Verification& verification, std::vector<Kernel>& kernels) {
  for (Kernel& kernel : kernels)
    for (Argument& argument : kernel.arguments) {
      const auto how = verification.compare.find(argument.name);
      Fill& fill = argument.fill;
      if (how == verification.compare.end() || argument.access != Access::write || fill.kind != Fill::Kind::constant ||
          fill.value != 0 || (how->second != Compare::minimum && how->second != Compare::maximum))
        continue;
      fill.value = with_type(argument.type, [&]<class T>(T) {
        constexpr double kGreatestHalf = 65504;
        const bool least = how->second == Compare::maximum;
        if constexpr (std::is_same_v<T, Half>) {
          return least ? -kGreatestHalf : kGreatestHalf;
        } else {
          using Limits = std::numeric_limits<T>;
          if (least) return static_cast<double>(Limits::lowest());
          // of 64-bit integers the greatest number that a double holds
          const auto greatest = static_cast<double>(Limits::max());
          return Limits::digits > 53 && Limits::is_integer ? std::nextafter(greatest, 0.0) : greatest;
        }
      });
    }
}

Verification read_verification(const Table& table, const std::vector<Kernel>& kernels) {
  // A reference for one kernel takes the kernel's arguments; one for several kernels has its own, which name shared
  // buffers.
  Context reference = table.context();
  reference.main = kernels.front().name.empty() ? &kernels.front() : nullptr;
  reference.modelled = reference.trusted;
  reference.named = false;
  table.at_most_one_of({"reference", "kernel", "host_function", "files"});
  Verification verification;
  read_fields(table.with(reference), verification);
  if (table.has("files")) verification.kind = Check::files;
  if (table.context().trusted) return verification;
  check_outputs(table, kernels);
  if (verification.per_configuration && !verification.reference)
    throw UserError(
        "\"per_configuration\" needs [verification.kernel] or [verification.host_function]: a reference that can run "
        "with each configuration's parameters",
        table.key_place("per_configuration"));
  return verification;
}

Node write(const Verification& verification, Form form, bool own_arguments) {
  if (form == Form::identity && verification.kind == Check::none)
    return Node::Entries{{"reference", std::string("none"), {}}};
  Node node = write_fields(verification, form);
  if (own_arguments || form == Form::document) return unless_empty(std::move(node));
  for (Entry& entry : std::get<Node::Entries>(node.data)) {
    if (entry.key != "kernel" && entry.key != "host_function") continue;
    auto& keys = std::get<Node::Entries>(entry.value.data);
    std::erase_if(keys, [](const Entry& key) { return key.key == "arguments"; });
  }
  return unless_empty(std::move(node));
}
Json verification_type(Schema& schema) { return schema.section<Verification>("verification", "[verification]"); }

}  // namespace ergotune::document

namespace ergotune {

void set_attributes(Kernel& kernel, const Attributes& values) { document::read_attributes(values, "[kernel]", kernel); }
void set_attributes(Launch& launch, const Attributes& values) {
  document::read_attributes(values, "[kernel.launch]", launch);
}

}  // namespace ergotune

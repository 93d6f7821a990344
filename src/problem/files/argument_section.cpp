// kernel.arguments and [buffers]: scalars, buffers and how they are filled, local memory.
#include <fmt/format.h>

#include <set>

#include "problem/files/toml_sections.hpp"

namespace ergotune::toml_reading {

namespace {

const std::vector<std::string> kTypeNames{"int8",  "uint8",  "int16",   "uint16",  "int32",  "uint32",
                                          "int64", "uint64", "float16", "float32", "float64"};

bool is_integer_type(ElementType type) { return type < ElementType::float16; }

void read_random(const Table& table, Argument& argument) {
  if (const toml::node* bounds = table.find("random")) {
    const toml::array* pair = bounds->as_array();
    const std::string what = fmt::format("\"random\" in {}", table.title());
    if (!pair || pair->size() != 2) table.wrong_kind(*bounds, what, "a list [low, high]");
    argument.fill.low = table.number_of((*pair)[0], what);
    argument.fill.high = table.number_of((*pair)[1], what);
    if (!(argument.fill.low <= argument.fill.high)) {
      throw UserError(fmt::format("{} goes from {} down to {}; the lower value comes first", what, argument.fill.low,
                                  argument.fill.high),
                      table.place_of(*bounds));
    }
  }
  if (const auto seed = table.optional_integer("seed")) argument.fill.seed = static_cast<std::uint64_t>(*seed);
}

void read_fill_table(const Table& table, Argument& argument, const std::filesystem::path& folder) {
  table.allow({"random", "seed", "range", "constant", "file"});
  table.at_most_one_of({"random", "range", "constant", "file"});
  Fill& fill = argument.fill;
  if (const toml::node* range = table.find("range")) {
    const toml::array* pair = range->as_array();
    const std::string what = fmt::format("\"range\" in {}", table.title());
    if (!pair || pair->size() != 2) table.wrong_kind(*range, what, "a list [start, step]");
    fill.kind = Fill::Kind::range;
    fill.start = table.number_of((*pair)[0], what);
    fill.step = table.number_of((*pair)[1], what);
  } else if (const auto constant = table.optional_number("constant")) {
    fill.kind = Fill::Kind::constant;
    fill.value = *constant;
  } else if (const auto file = table.optional_text("file")) {
    fill.kind = Fill::Kind::file;
    fill.file = (folder / *file).lexically_normal();
  } else {
    fill.kind = Fill::Kind::random;
    read_random(table, argument);
  }
}

void read_fill(const Table& table, Argument& argument, const std::filesystem::path& folder) {
  if (is_integer_type(argument.type)) argument.fill.low = 0, argument.fill.high = 127;
  // What is only written starts from zeros: an unwritten output then shows.
  if (argument.access == Access::write) argument.fill.kind = Fill::Kind::constant;
  const toml::node* node = table.find("fill");
  if (!node) return;
  if (node->is_number()) {
    argument.fill.kind = Fill::Kind::constant;
    argument.fill.value = *node->value<double>();
  } else if (node->is_string()) {
    const std::string word = *node->value<std::string>();
    if (word == "random") {
      argument.fill.kind = Fill::Kind::random;
    } else if (word == "range") {
      argument.fill.kind = Fill::Kind::range;
    } else {
      throw UserError(fmt::format("unknown fill \"{}\"{}", word, suggestion(word, {"random", "range"})) +
                          "; or a number, { random = [low, high], seed = n }, { range = [start, step] }, "
                          "{ constant = x }, { file = \"data.bin\" }",
                      table.place_of(*node));
    }
  } else {
    read_fill_table(table.table({"fill", node, table.key_place("fill")}), argument, folder);
  }
}

Access read_access(const Table& table) {
  const auto word = table.optional_text("access");
  if (!word || *word == "read") return Access::read;
  if (*word == "write") return Access::write;
  if (*word == "read_write") return Access::read_write;
  throw UserError(fmt::format("unknown access \"{}\"{}", *word, suggestion(*word, {"read", "write", "read_write"})),
                  table.place_of(*table.find("access")));
}

void refuse_buffer_keys(const Table& table, const std::string& what, const char* has) {
  for (const char* key : {"fill", "access"}) {
    if (!table.has(key)) continue;
    throw UserError(fmt::format("{} is a scalar (it has \"{}\"), so it takes no \"{}\"", what, has, key),
                    table.key_place(key));
  }
}

ElementType read_type(const Table& table, const std::string& what) {
  const std::string type = table.text("type", "the type of its elements, such as \"float32\"");
  if (const auto known = element_type(type)) return *known;
  throw UserError(fmt::format("unknown type \"{}\" of {}{}", type, what, suggestion(type, kTypeNames)),
                  table.place_of(*table.find("type")));
}

/// { buffer = "x", access = "write" }: the one of that name in [buffers].
Argument read_reference(const Table& table, const std::vector<Argument>& buffers) {
  table.allow({"buffer", "access", "when"});
  const std::string name = table.text("buffer", "the name of a buffer in [buffers]");
  std::vector<std::string> names;
  for (const Argument& buffer : buffers) {
    names.push_back(buffer.name);
    if (buffer.name != name) continue;
    Argument argument = buffer;
    argument.access = read_access(table);
    argument.place = table.place();
    return argument;
  }
  throw UserError(fmt::format("[buffers] has no \"{}\"{}", name, suggestion(name, names)),
                  table.place_of(*table.find("buffer")));
}

/// fields = [{ name, type, value }, ...]: a structure that is passed by value.
void read_fields(const Table& table, const toml::node& node, Argument& argument) {
  argument.kind = Argument::Kind::scalar;
  argument.type_name = table.text("type", "the structure's name in the source, such as \"struct grid\"");
  const toml::array* list = node.as_array();
  if (list && list->empty())
    throw UserError(fmt::format("the structure \"{}\" has no members: \"fields\" is empty", argument.name),
                    table.key_place("fields"));
  if (!list)
    table.wrong_kind(node, fmt::format("\"fields\" of argument \"{}\"", argument.name),
                     "a list of tables { name, type, value }, in the order of the structure's members");
  for (const toml::node& item : *list) {
    const Table member =
        table.table(item, fmt::format("member {} of argument \"{}\"", argument.fields.size() + 1, argument.name));
    member.allow({"name", "type", "value"});
    Field field;
    field.name = member.text("name", "what the member is called");
    const std::string what = fmt::format("member \"{}\" of argument \"{}\"", field.name, argument.name);
    field.type = read_type(member, what);
    field.value = member.expression_of(member.require("value", "a number or an expression"), "the value of " + what);
    argument.fields.push_back(std::move(field));
  }
}

Argument read_argument(const Table& table, std::size_t position, const std::filesystem::path& folder,
                       const std::vector<Argument>& buffers) {
  if (table.has("buffer")) return read_reference(table, buffers);
  table.allow({"name", "type", "value", "count", "local_count", "fields", "fill", "access", "buffer", "when"});
  table.at_most_one_of({"value", "count", "local_count", "fields"});
  Argument argument;
  argument.place = table.place();
  argument.name = table.text("name", "what the argument is called");
  const std::string what = fmt::format("argument \"{}\"", argument.name);
  if (const toml::node* fields = table.find("fields")) {
    refuse_buffer_keys(table, what, "fields");
    read_fields(table, *fields, argument);
    return argument;
  }
  argument.type = read_type(table, what);
  if (const toml::node* value = table.find("value")) {
    argument.kind = Argument::Kind::scalar;
    argument.value = table.expression_of(*value, "the value of " + what);
    refuse_buffer_keys(table, what, "value");
    return argument;
  }
  if (const toml::node* count = table.find("local_count")) {
    argument.kind = Argument::Kind::local_memory;
    argument.count = table.expression_of(*count, "the count of " + what);
    return argument;
  }
  argument.kind = Argument::Kind::buffer;
  argument.count = table.expression_of(
      table.require("count",
                    "the number of elements of a buffer (or \"value\" for a scalar, \"local_count\" for local "
                    "memory)"),
      "the count of " + what);
  argument.access = read_access(table);
  // Buffers filled at random differ from each other without anybody having to say so.
  argument.fill.seed = position + 1;
  read_fill(table, argument, folder);
  return argument;
}

}  // namespace

std::vector<Argument> read_buffers(const Table& parent, const std::filesystem::path& folder) {
  std::vector<Argument> buffers;
  for (const Entry& entry : parent.entries()) {
    const Table table = parent.table(entry);
    table.allow({"type", "count", "fill"});
    Argument buffer;
    buffer.place = entry.place;
    buffer.name = entry.key;
    const std::string what = fmt::format("buffer \"{}\"", entry.key);
    buffer.type = read_type(table, what);
    buffer.count = table.expression_of(table.require("count", "the number of its elements"), "the count of " + what);
    buffer.fill.seed = buffers.size() + 1;
    read_fill(table, buffer, folder);
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

void settle_buffers(const Table& root, std::vector<Kernel>& kernels) {
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
    if (!written || entry.node->as_table()->contains("fill")) continue;
    for (Argument* argument : uses) argument->fill.kind = Fill::Kind::constant;
  }
}

std::vector<Argument> read_arguments(const Table& parent, const toml::node& node, const std::filesystem::path& folder,
                                     const std::vector<Argument>& buffers) {
  const toml::array* list = node.as_array();
  if (!list) parent.wrong_kind(node, "\"arguments\"", "a list of tables, in the order of the kernel's arguments");
  std::vector<Argument> result;
  std::set<std::string> names;
  for (const toml::node& item : *list) {
    const Table table = parent.table(item, fmt::format("argument {}", result.size() + 1));
    result.push_back(read_argument(table, result.size(), folder, buffers));
    if (const toml::node* when = table.find("when"))
      result.back().when = table.expression_of(*when, fmt::format("\"when\" of argument \"{}\"", result.back().name));
    if (!names.insert(result.back().name).second) {
      throw UserError(fmt::format("two arguments are called \"{}\"", result.back().name),
                      table.key_place(table.has("buffer") ? "buffer" : "name"));
    }
  }
  return result;
}

}  // namespace ergotune::toml_reading

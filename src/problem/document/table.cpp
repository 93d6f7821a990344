#include "problem/document/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/files.hpp"

namespace ergotune::document {

// Top-level keys that users may write below a [table] by mistake, where TOML assigns them to that table.
static const std::vector<std::string> kWholeFileKeys{"restrictions", "objective", "observe", "description"};

void Table::allow(const std::vector<std::string>& names) const {
  const auto among = [](const std::vector<std::string>& list, const std::string& key) {
    return std::ranges::find(list, key) != list.end();
  };
  for (const Entry& entry : entries()) {
    if (among(names, entry.key)) continue;
    if (title_ != kWholeFile && among(kWholeFileKeys, entry.key)) {
      throw UserError(
          fmt::format("\"{}\" belongs to the whole file, and here it is in {}: move it above the first [table]",
                      entry.key, title_),
          entry.place);
    }
    throw UserError(fmt::format("unknown key \"{}\" in {}{}", entry.key, title_, suggestion(entry.key, names)),
                    entry.place);
  }
}

void Table::at_most_one_of(const std::vector<std::string>& names) const {
  std::string first;
  for (const Entry& entry : entries()) {
    if (std::ranges::find(names, entry.key) == names.end()) continue;
    if (!first.empty()) {
      throw UserError(fmt::format("{} has both \"{}\" and \"{}\"; keep one of them", title_, first, entry.key),
                      entry.place);
    }
    first = entry.key;
  }
}

SourcePlace Table::key_place(std::string_view key) const {
  for (const Entry& entry : entries())
    if (entry.key == key) return entry.place;
  return place_;
}

std::string Table::what(std::string_view key) const { return fmt::format("\"{}\" in {}", key, title_); }

std::string Table::title_of(std::string_view key) const {
  const Node* node = find(key);
  return node && node->is_table() ? optional_table(key)->title() : what(key);
}

const Node& Table::require(std::string_view key, std::string_view meaning) const {
  if (const Node* node = find(key)) return *node;
  std::string phrase(meaning);
  if (!phrase.empty()) phrase[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(phrase[0])));
  throw UserError(fmt::format("{} needs \"{}\": {}", title_, key, phrase), place_);
}

std::string Table::text(std::string_view key, std::string_view meaning) const {
  return text_of(require(key, meaning), what(key));
}

std::optional<Table> Table::optional_table(std::string_view key) const {
  const Node* node = find(key);
  if (!node) return std::nullopt;
  return table(std::string(key), *node, key_place(key));
}

std::vector<std::string> Table::texts(std::string_view key) const {
  const Node* node = find(key);
  return node ? texts_of(*node, what(key)) : std::vector<std::string>();
}

Table Table::table(const std::string& key, const Node& node, const SourcePlace& place) const {
  std::string title;
  if (title_ == kWholeFile) {
    title = fmt::format("[{}]", key);
  } else if (title_.ends_with(']')) {
    title = fmt::format("{}.{}]", title_.substr(0, title_.size() - 1), key);
  } else {
    title = fmt::format("\"{}\" of {}", key, title_);
  }
  if (!node.is_table()) wrong_kind(node, title, "a table");
  return {node, std::move(title), place, *context_};
}

Table Table::table(const Node& node, const std::string& title) const {
  if (!node.is_table()) wrong_kind(node, title, "a table");
  return {node, title, node.place, *context_};
}

void wrong_kind(const Node& node, const std::string& what, const std::string& expected) {
  throw UserError(fmt::format("{} must be {}, not {}", what, expected, kind_of(node)), node.place);
}

SourcePlace inside(const Node& node) {
  SourcePlace place = node.place;
  // The source text is not available any more; a single-line string begins one character after its quote.
  if (node.is_text() && place.column > 0) ++place.column;
  return place;
}

const std::string& text_of(const Node& node, const std::string& what) {
  if (!node.is_text()) wrong_kind(node, what, "a string");
  return node.text();
}

double number_of(const Node& node, const std::string& what) {
  if (!node.is_number()) wrong_kind(node, what, "a number");
  return node.number();
}

std::int64_t integer_of(const Node& node, const std::string& what) {
  if (!node.is_integer()) wrong_kind(node, what, "an integer");
  return std::get<std::int64_t>(node.data);
}

bool boolean_of(const Node& node, const std::string& what) {
  if (!node.is_boolean()) wrong_kind(node, what, "true or false");
  return std::get<bool>(node.data);
}

std::vector<std::string> texts_of(const Node& node, const std::string& what) {
  if (node.is_text()) return {node.text()};
  if (!node.list()) wrong_kind(node, what, "a string or a list of strings");
  std::vector<std::string> result;
  for (const Node& item : *node.list()) result.push_back(text_of(item, "an entry of " + what));
  return result;
}

Value value_of(const Node& node, const std::string& what) {
  if (node.is_boolean()) return std::get<bool>(node.data);
  if (node.is_integer()) return std::get<std::int64_t>(node.data);
  if (node.is_number()) return node.number();
  if (node.is_text()) return node.text();
  wrong_kind(node, what, "a number, a string, true or false");
}

std::vector<Value> values_of(const Node& node, const std::string& what) {
  if (!node.list()) return {value_of(node, what)};
  std::vector<Value> result;
  for (const Node& item : *node.list()) result.push_back(value_of(item, "a value of " + what));
  return result;
}

Expression expression_of(const Node& node, const std::string& what) {
  if (node.is_text()) return Expression::parse(node.text(), inside(node));
  if (node.is_number() || node.is_boolean()) return Expression::constant(value_of(node, what));
  wrong_kind(node, what, "a number or an expression in quotes");
}

Template template_of(const Node& node, const std::string& what) {
  return Template::parse(text_of(node, what), inside(node));
}

std::vector<double> numbers_of(const Node& node, std::size_t count, const std::string& what, const char* expected) {
  if (!node.list() || node.list()->size() != count) wrong_kind(node, what, expected);
  std::vector<double> numbers;
  for (const Node& item : *node.list()) numbers.push_back(number_of(item, what));
  return numbers;
}

void check_identifier(const std::string& name, const char* what, const SourcePlace& place) {
  const bool letters = std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!name.empty() && letters && !std::isdigit(static_cast<unsigned char>(name[0]))) return;
  throw UserError(
      fmt::format(
          "\"{}\" cannot be the name of a {}: it becomes a macro, so use letters, digits and _, and no digit first",
          name, what),
      place);
}

std::string read_text_file(const std::filesystem::path& file, const std::string& what, const SourcePlace& place) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw UserError(fmt::format("{} {} is a folder, not a file", what, file.string()), place);
  }
  auto text = read_file(file);
  if (!text)
    throw UserError(fmt::format("cannot read the {} {}: it does not exist or is not readable", what, file.string()),
                    place);
  return std::move(*text);
}

}  // namespace ergotune::document

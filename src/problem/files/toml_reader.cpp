#include "problem/files/toml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "space/expression/expression_tokens.hpp"

namespace ergotune::toml_reading {

namespace {

SourcePlace place_at(const std::string& file, const toml::source_region& region) {
  return {file, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

// Keys that are easily written below a [table], which TOML then takes for the table's own.
const std::vector<std::string>& whole_file_keys() {
  static const std::vector<std::string> keys{"restrictions", "objective", "observe", "description"};
  return keys;
}

}  // namespace

std::string kind_of(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (node.is_string()) return fmt::format("the string \"{}\"", excerpt(*node.value<std::string>()));
  if (node.is_boolean()) return *node.value<bool>() ? "true" : "false";
  if (node.is_integer()) return fmt::format("the integer {}", *node.value<std::int64_t>());
  if (node.is_floating_point()) return fmt::format("the number {}", *node.value<double>());
  return "a date or time";
}

Table::Table(const toml::table& table, std::string title, std::string file, SourcePlace place)
    : table_(&table), title_(std::move(title)), file_(std::move(file)), place_(std::move(place)) {}

SourcePlace Table::place_of(const toml::node& node) const { return place_at(file_, node.source()); }

SourcePlace Table::inside(const toml::node& node) const {
  SourcePlace place = place_of(node);
  // The source text is gone by now; a single-line string begins one character after its quote.
  if (node.is_string() && place.column > 0) ++place.column;
  return place;
}

std::vector<Entry> Table::entries() const {
  std::vector<Entry> result;
  for (const auto& [key, node] : *table_) {
    result.push_back({std::string(key.str()), &node, place_at(file_, key.source())});
  }
  std::stable_sort(result.begin(), result.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  return result;
}

void Table::allow(const std::vector<std::string>& names) const {
  for (const Entry& entry : entries()) {
    if (std::find(names.begin(), names.end(), entry.key) != names.end()) continue;
    const auto& whole = whole_file_keys();
    if (title_ != kWholeFile && std::find(whole.begin(), whole.end(), entry.key) != whole.end()) {
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
    if (std::find(names.begin(), names.end(), entry.key) == names.end()) continue;
    if (!first.empty()) {
      throw UserError(fmt::format("{} has both \"{}\" and \"{}\"; keep one of them", title_, first, entry.key),
                      entry.place);
    }
    first = entry.key;
  }
}

const toml::node* Table::find(std::string_view key) const { return table_->get(key); }

SourcePlace Table::key_place(std::string_view key) const {
  const auto found = table_->find(key);
  return found == table_->end() ? place_ : place_at(file_, found->first.source());
}

const toml::node& Table::require(std::string_view key, std::string_view meaning) const {
  if (const toml::node* node = find(key)) return *node;
  throw UserError(fmt::format("{} needs \"{}\": {}", title_, key, meaning), place_);
}

void Table::wrong_kind(const toml::node& node, const std::string& what, const std::string& expected) const {
  throw UserError(fmt::format("{} must be {}, not {}", what, expected, kind_of(node)), place_of(node));
}

std::string Table::text_of(const toml::node& node, const std::string& what) const {
  if (!node.is_string()) wrong_kind(node, what, "a string");
  return *node.value<std::string>();
}

double Table::number_of(const toml::node& node, const std::string& what) const {
  if (!node.is_number()) wrong_kind(node, what, "a number");
  return *node.value<double>();
}

Value Table::value_of(const toml::node& node, const std::string& what) const {
  if (node.is_boolean()) return *node.value<bool>();
  if (node.is_integer()) return *node.value<std::int64_t>();
  if (node.is_floating_point()) return *node.value<double>();
  if (node.is_string()) return *node.value<std::string>();
  wrong_kind(node, what, "a number, a string, true or false");
}

Expression Table::expression_of(const toml::node& node, const std::string& what) const {
  if (node.is_string()) return Expression::parse(*node.value<std::string>(), inside(node));
  if (node.is_number() || node.is_boolean()) return Expression::constant(value_of(node, what));
  wrong_kind(node, what, "a number or an expression in quotes");
}

std::vector<Value> Table::values_of(const toml::node& node, const std::string& what) const {
  std::vector<Value> result;
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) result.push_back(value_of(item, "a value of " + what));
  } else {
    result.push_back(value_of(node, what));
  }
  return result;
}

std::string Table::text(std::string_view key, std::string_view meaning) const {
  return text_of(require(key, meaning), fmt::format("\"{}\" in {}", key, title_));
}

std::optional<std::string> Table::optional_text(std::string_view key) const {
  const toml::node* node = find(key);
  if (!node) return std::nullopt;
  return text_of(*node, fmt::format("\"{}\" in {}", key, title_));
}

std::optional<double> Table::optional_number(std::string_view key) const {
  const toml::node* node = find(key);
  if (!node) return std::nullopt;
  return number_of(*node, fmt::format("\"{}\" in {}", key, title_));
}

std::optional<std::int64_t> Table::optional_integer(std::string_view key) const {
  const toml::node* node = find(key);
  if (!node) return std::nullopt;
  if (!node->is_integer()) wrong_kind(*node, fmt::format("\"{}\" in {}", key, title_), "an integer");
  return *node->value<std::int64_t>();
}

std::optional<bool> Table::optional_boolean(std::string_view key) const {
  const toml::node* node = find(key);
  if (!node) return std::nullopt;
  if (!node->is_boolean()) wrong_kind(*node, fmt::format("\"{}\" in {}", key, title_), "true or false");
  return *node->value<bool>();
}

std::optional<Table> Table::optional_table(std::string_view key) const {
  const toml::node* node = find(key);
  if (!node) return std::nullopt;
  return table({std::string(key), node, key_place(key)});
}

std::vector<std::string> Table::optional_texts(std::string_view key) const {
  const toml::node* node = find(key);
  if (!node) return {};
  const std::string what = fmt::format("\"{}\" in {}", key, title_);
  if (node->is_string()) return {text_of(*node, what)};
  const toml::array* list = node->as_array();
  if (!list) wrong_kind(*node, what, "a string or a list of strings");
  std::vector<std::string> result;
  for (const toml::node& item : *list) result.push_back(text_of(item, "an entry of " + what));
  return result;
}

Table Table::table(const Entry& entry) const {
  std::string title;
  if (title_ == kWholeFile) {
    title = fmt::format("[{}]", entry.key);
  } else if (title_.ends_with(']')) {
    title = fmt::format("{}.{}]", title_.substr(0, title_.size() - 1), entry.key);
  } else {
    title = fmt::format("\"{}\" of {}", entry.key, title_);
  }
  if (!entry.node->is_table()) wrong_kind(*entry.node, title, "a table");
  return {*entry.node->as_table(), std::move(title), file_, entry.place};
}

Table Table::table(const toml::node& node, const std::string& title) const {
  if (!node.is_table()) wrong_kind(node, title, "a table");
  return {*node.as_table(), title, file_, place_of(node)};
}

}  // namespace ergotune::toml_reading

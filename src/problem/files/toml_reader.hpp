// Reading TOML with places: every complaint names file, line and column and says what would be right.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/toml.hpp"
#include "ergotune/error.hpp"
#include "ergotune/space.hpp"

namespace ergotune::toml_reading {

/// Title of the outermost table.
inline constexpr const char* kWholeFile = "the problem file";

/// A key with its value, at the place of the key.
struct Entry {
  std::string key;
  const toml::node* node = nullptr;
  SourcePlace place;
};

/// A table of the file, with its name for messages ("[kernel]"). Cheap to copy; the document must outlive it.
class Table {
 public:
  Table(const toml::table& table, std::string title, std::string file, SourcePlace place);

  const std::string& title() const { return title_; }
  const std::string& file() const { return file_; }
  const SourcePlace& place() const { return place_; }
  SourcePlace place_of(const toml::node& node) const;

  /// The table's entries in the order of the file (toml++ sorts them by name).
  std::vector<Entry> entries() const;
  /// Throws for the first key that is not among `names`, with the nearest of them.
  void allow(const std::vector<std::string>& names) const;
  /// Throws when more than one of `names` is there.
  void at_most_one_of(const std::vector<std::string>& names) const;

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const toml::node* find(std::string_view key) const;
  /// The value, or a UserError saying that `key` is missing and what it should be.
  const toml::node& require(std::string_view key, std::string_view meaning) const;
  SourcePlace key_place(std::string_view key) const;

  // Typed reading; each throws a UserError naming the expected kind when the value is of another.
  std::string text(std::string_view key, std::string_view meaning) const;
  std::optional<std::string> optional_text(std::string_view key) const;
  std::optional<double> optional_number(std::string_view key) const;
  std::optional<std::int64_t> optional_integer(std::string_view key) const;
  std::optional<bool> optional_boolean(std::string_view key) const;
  std::optional<Table> optional_table(std::string_view key) const;
  /// A string or a list of strings.
  std::vector<std::string> optional_texts(std::string_view key) const;

  /// A table inside this one.
  Table table(const Entry& entry) const;
  Table table(const toml::node& node, const std::string& title) const;

  // Reading single nodes.
  std::string text_of(const toml::node& node, const std::string& what) const;
  double number_of(const toml::node& node, const std::string& what) const;
  /// bool, integer, real or string.
  Value value_of(const toml::node& node, const std::string& what) const;
  /// A number, or a string that holds an expression.
  Expression expression_of(const toml::node& node, const std::string& what) const;
  /// A value, or a list of them.
  std::vector<Value> values_of(const toml::node& node, const std::string& what) const;

  /// Place of the first character inside a string's quotes.
  SourcePlace inside(const toml::node& node) const;
  [[noreturn]] void wrong_kind(const toml::node& node, const std::string& what, const std::string& expected) const;

 private:
  const toml::table* table_;
  std::string title_;
  std::string file_;
  SourcePlace place_;
};

/// "a string", "a list" ... of a node, for messages.
std::string kind_of(const toml::node& node);

}  // namespace ergotune::toml_reading

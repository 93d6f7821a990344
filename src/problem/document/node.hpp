// The values of a problem file or document with their places. TOML and JSON are parsed into nodes, and documents are
// written from nodes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/space.hpp"

namespace ergotune::document {

using Json = nlohmann::ordered_json;

struct Entry;

struct Node {
  using List = std::vector<Node>;
  using Entries = std::vector<Entry>;
  /// A value of a kind that no field accepts (such as a date), or, by default, an absent value.
  struct Other {
    std::string kind;
    bool operator==(const Other&) const = default;
  };

  Node() = default;
  template <class T>
  Node(T value, SourcePlace at = {}) : data(std::move(value)), place(std::move(at)) {}

  bool is_absent() const { return std::holds_alternative<Other>(data); }
  bool is_text() const { return std::holds_alternative<std::string>(data); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(data); }
  bool is_boolean() const { return std::holds_alternative<bool>(data); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(data); }
  bool is_table() const { return std::holds_alternative<Entries>(data); }
  /// Returns nullptr if the node is not a list.
  const List* list() const { return std::get_if<List>(&data); }
  const std::string& text() const { return std::get<std::string>(data); }
  double number() const;
  const Entries& entries() const { return std::get<Entries>(data); }
  /// Returns the value of a key, or nullptr if the table does not have it.
  const Node* find(std::string_view key) const;
  /// Adds a key to a table unless `value` is absent.
  void set(std::string key, Node value);

  std::variant<Other, bool, std::int64_t, double, std::string, List, Entries> data;
  SourcePlace place;
};

/// A key of a table with its value.
struct Entry {
  std::string key;
  Node value;
  SourcePlace place;  ///< place of the key
};

/// Compares values; places are ignored.
bool operator==(const Node& a, const Node& b);
bool operator==(const Entry& a, const Entry& b);

/// Parses TOML. Throws UserError with line and column. Tables keep the order of the file.
Node parse_toml(const std::string& text, const std::string& file);
/// Parses JSON. Throws UserError with line and column, also for a duplicate key.
Node parse_json(std::string_view text, const std::string& file);

/// Converts a node to JSON. Infinities and NaN, which JSON lacks, become { "real": "inf" }.
Json to_json(Node node);
/// Returns the places of all nodes of a tree by JSON pointer: [line, column] for places in `file`, else [line, column,
/// file].
Json places_of(const Node& root, const std::string& file);
/// Sets the places of a tree to those that places_of() returned, and clears all others.
void set_places(Node& root, const Node* places, const std::string& file);

/// Converts a value to a node.
Node node_of(const Value& value);

/// Returns "a string", "a list" ... for messages.
std::string kind_of(const Node& node);

}  // namespace ergotune::document

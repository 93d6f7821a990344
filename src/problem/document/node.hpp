// A problem file or document as values with places: what TOML and JSON are read into, and what documents are written
// from.
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
  /// A value that no field takes; the default: no value at all.
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
  /// nullptr for what is no list.
  const List* list() const { return std::get_if<List>(&data); }
  const std::string& text() const { return std::get<std::string>(data); }
  double number() const;
  const Entries& entries() const { return std::get<Entries>(data); }
  /// The value of a key; nullptr where it is not.
  const Node* find(std::string_view key) const;
  /// Adds a key to a table, unless there is no value.
  void set(std::string key, Node value);

  std::variant<Other, bool, std::int64_t, double, std::string, List, Entries> data;
  SourcePlace place;
};

/// A key of a table with its value.
struct Entry {
  std::string key;
  Node value;
  SourcePlace place;  ///< of the key
};

/// The same values, wherever they were written.
bool operator==(const Node& a, const Node& b);
bool operator==(const Entry& a, const Entry& b);

/// Parses; throws UserError with line and column. Tables keep the order of the file.
Node parse_toml(const std::string& text, const std::string& file);
/// The same; a key that is there twice is refused.
Node parse_json(std::string_view text, const std::string& file);

/// JSON has no infinities and no NaN: they become { "real": "inf" }.
Json to_json(Node node);
/// The places of a tree by JSON pointer, as [line, column] in `file` or [line, column, file].
Json places_of(const Node& root, const std::string& file);
/// Gives a tree the places that places_of() made, and no others.
void set_places(Node& root, const Node* places, const std::string& file);

/// A value as a node.
Node node_of(const Value& value);

/// "a string", "a list" ... for messages.
std::string kind_of(const Node& node);

}  // namespace ergotune::document

// Reads a table of a problem file. Every error message names file, line and column, and what is expected.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/problem.hpp"
#include "problem/document/node.hpp"

namespace ergotune::document {

/// Title of the top-level table.
inline constexpr const char* kWholeFile = "the problem file";

/// State shared by the readers of a problem's tables.
struct Context {
  std::filesystem::path folder;     ///< folder against which relative paths are resolved
  bool trusted = false;             ///< a document written by serialise(), which was checked when it was first read
  bool modelled = false;            ///< [simulation] or space_only: source and launch may be missing
  std::vector<Argument> buffers{};  ///< the buffers declared in [buffers]
  const Kernel* main = nullptr;     ///< kernel whose arguments and other fields a reference inherits; may be null
  bool named = false;               ///< a kernel of [kernels.NAME], which may have parameters of its own
};

/// A table with its title for messages ("[kernel]"). Cheap to copy; does not own the node and the context.
class Table {
 public:
  Table(const Node& node, std::string title, SourcePlace place, const Context& context)
      : node_(&node), title_(std::move(title)), place_(std::move(place)), context_(&context) {}
  Table with(const Context& context) const { return {*node_, title_, place_, context}; }

  const std::string& title() const { return title_; }
  const SourcePlace& place() const { return place_; }
  const Context& context() const { return *context_; }

  const Node::Entries& entries() const { return node_->entries(); }
  /// Throws UserError for the first key that is not in `names`, and suggests the nearest name.
  void allow(const std::vector<std::string>& names) const;
  /// Throws UserError if more than one of `names` is present.
  void at_most_one_of(const std::vector<std::string>& names) const;

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const Node* find(std::string_view key) const { return node_->find(key); }
  /// Returns the value of `key`. Throws UserError if it is missing; the message describes it by `meaning` (a phrase,
  /// whose first letter may be a capital).
  const Node& require(std::string_view key, std::string_view meaning) const;
  SourcePlace key_place(std::string_view key) const;
  /// Returns "\"key\" in [table]" for messages.
  std::string what(std::string_view key) const;
  /// Like what(); for a value that is a table, its title.
  std::string title_of(std::string_view key) const;

  // Typed access. Each throws UserError that names the expected kind if the value is of another kind.
  std::string text(std::string_view key, std::string_view meaning) const;
  std::optional<Table> optional_table(std::string_view key) const;
  /// Returns a string or a list of strings as a list; empty if the key is absent.
  std::vector<std::string> texts(std::string_view key) const;

  /// Returns a nested table.
  Table table(const Entry& entry) const { return table(entry.key, entry.value, entry.place); }
  Table table(const std::string& key, const Node& node, const SourcePlace& place) const;
  Table table(const Node& node, const std::string& title) const;

 private:
  const Node* node_;
  std::string title_;
  SourcePlace place_;
  const Context* context_;
};

// Conversion of single nodes; `what` names the node in messages. They throw UserError for a node of the wrong kind.
const std::string& text_of(const Node& node, const std::string& what);
double number_of(const Node& node, const std::string& what);
std::int64_t integer_of(const Node& node, const std::string& what);
bool boolean_of(const Node& node, const std::string& what);
std::vector<std::string> texts_of(const Node& node, const std::string& what);
/// Accepts a boolean, an integer, a real number or a string.
Value value_of(const Node& node, const std::string& what);
/// Accepts a value or a list of values.
std::vector<Value> values_of(const Node& node, const std::string& what);
/// Accepts a number, or a string with an expression.
Expression expression_of(const Node& node, const std::string& what);
Template template_of(const Node& node, const std::string& what);
/// Accepts a list of `count` numbers; `expected` describes it in the message: "a list [low, high]".
std::vector<double> numbers_of(const Node& node, std::size_t count, const std::string& what, const char* expected);

/// Returns the place of the first character of a string, after its quote.
SourcePlace inside(const Node& node);
[[noreturn]] void wrong_kind(const Node& node, const std::string& what, const std::string& expected);

/// Throws UserError for a name that cannot be the name of a macro.
void check_identifier(const std::string& name, const char* what, const SourcePlace& place);
/// Returns the contents of a text file. Throws UserError at `place` if it cannot be read.
std::string read_text_file(const std::filesystem::path& file, const std::string& what, const SourcePlace& place);

}  // namespace ergotune::document

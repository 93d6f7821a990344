// Reading a table of a problem file: every message gives file, line and column and what would be right.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/problem.hpp"
#include "problem/document/node.hpp"

namespace ergotune::document {

/// Title of the outermost table.
inline constexpr const char* kWholeFile = "the problem file";

/// What is known while a problem is read.
struct Context {
  std::filesystem::path folder;     ///< where relative paths begin
  bool trusted = false;             ///< a document that serialise() wrote: it was checked when it was read first
  bool modelled = false;            ///< [simulation] or space_only: neither source nor launch is needed
  std::vector<Argument> buffers{};  ///< those of [buffers]
  const Kernel* main = nullptr;     ///< a reference takes the arguments, and whatever it leaves out, from this one
  bool named = false;               ///< [kernels.NAME]: may have parameters of its own
};

/// A table with its name for messages ("[kernel]"). Cheap to copy; node and context must outlive it.
class Table {
 public:
  Table(const Node& node, std::string title, SourcePlace place, const Context& context)
      : node_(&node), title_(std::move(title)), place_(std::move(place)), context_(&context) {}
  Table with(const Context& context) const { return {*node_, title_, place_, context}; }

  const std::string& title() const { return title_; }
  const SourcePlace& place() const { return place_; }
  const Context& context() const { return *context_; }

  const Node::Entries& entries() const { return node_->entries(); }
  /// Throws for the first key that is not among `names`, with the nearest of them.
  void allow(const std::vector<std::string>& names) const;
  /// Throws when more than one of `names` is there.
  void at_most_one_of(const std::vector<std::string>& names) const;

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const Node* find(std::string_view key) const { return node_->find(key); }
  /// The value, or a UserError saying that `key` is missing and what it should be (a phrase, of which the first letter
  /// may be a capital).
  const Node& require(std::string_view key, std::string_view meaning) const;
  SourcePlace key_place(std::string_view key) const;
  /// "\"key\" in [table]", for messages.
  std::string what(std::string_view key) const;
  /// The same; of a table its title.
  std::string title_of(std::string_view key) const;

  // Typed reading; each throws a UserError naming the expected kind when the value is of another.
  std::string text(std::string_view key, std::string_view meaning) const;
  std::optional<Table> optional_table(std::string_view key) const;
  /// A string or a list of strings; none where the key is not there.
  std::vector<std::string> texts(std::string_view key) const;

  /// A table inside this one.
  Table table(const Entry& entry) const { return table(entry.key, entry.value, entry.place); }
  Table table(const std::string& key, const Node& node, const SourcePlace& place) const;
  Table table(const Node& node, const std::string& title) const;

 private:
  const Node* node_;
  std::string title_;
  SourcePlace place_;
  const Context* context_;
};

// Reading single nodes; `what` names them in messages.
const std::string& text_of(const Node& node, const std::string& what);
double number_of(const Node& node, const std::string& what);
std::int64_t integer_of(const Node& node, const std::string& what);
bool boolean_of(const Node& node, const std::string& what);
std::vector<std::string> texts_of(const Node& node, const std::string& what);
/// bool, integer, real or string.
Value value_of(const Node& node, const std::string& what);
/// A value, or a list of them.
std::vector<Value> values_of(const Node& node, const std::string& what);
/// A number, or a string that holds an expression.
Expression expression_of(const Node& node, const std::string& what);
Template template_of(const Node& node, const std::string& what);
/// A list of `count` numbers; `expected` as "a list [low, high]".
std::vector<double> numbers_of(const Node& node, std::size_t count, const std::string& what, const char* expected);

/// Place of the first character inside a string's quotes.
SourcePlace inside(const Node& node);
[[noreturn]] void wrong_kind(const Node& node, const std::string& what, const std::string& expected);

/// Throws for a name that cannot be a macro.
void check_identifier(const std::string& name, const char* what, const SourcePlace& place);
/// A text file whole; throws a UserError at `place` when it cannot be read.
std::string read_text_file(const std::filesystem::path& file, const std::string& what, const SourcePlace& place);

}  // namespace ergotune::document

#include "problem/document/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>

#include "base/json_text.hpp"
#include "base/toml.hpp"
#include "space/expression/expression_tokens.hpp"

namespace ergotune::document {
namespace {

Node from_toml(const toml::node& node, const std::string& file) {
  const auto place_at = [&](const toml::source_region& region) {
    return SourcePlace{file, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
  };
  const SourcePlace place = place_at(node.source());
  if (node.is_boolean()) return {*node.value<bool>(), place};
  if (node.is_integer()) return {*node.value<std::int64_t>(), place};
  if (node.is_floating_point()) return {*node.value<double>(), place};
  if (node.is_string()) return {*node.value<std::string>(), place};
  if (const toml::array* array = node.as_array()) {
    Node::List list;
    for (const toml::node& item : *array) list.push_back(from_toml(item, file));
    return {std::move(list), place};
  }
  const toml::table* table = node.as_table();
  if (!table) return {Node::Other{"a date or time"}, place};
  Node::Entries entries;
  for (const auto& [key, value] : *table)
    entries.push_back({std::string(key.str()), from_toml(value, file), place_at(key.source())});
  // toml++ sorts entries by name; this restores the order of the file
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  return {std::move(entries), place};
}

/// Iterator over a text that records its position.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  const char& operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

constexpr const char* kInfinite[] = {"nan", "inf", "-inf"};

/// Replaces { "real": "inf" } by the number.
void replace_infinite(Node& node) {
  const auto& entries = node.entries();
  if (entries.size() != 1 || entries[0].key != "real" || !entries[0].value.is_text()) return;
  const std::string word = entries[0].value.text();
  const double infinity = std::numeric_limits<double>::infinity();
  if (word == kInfinite[0]) node.data = std::numeric_limits<double>::quiet_NaN();
  if (word == kInfinite[1]) node.data = infinity;
  if (word == kInfinite[2]) node.data = -infinity;
}

class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  JsonBuilder(std::string_view text, std::string file) : text_(text), file_(std::move(file)), reached_(text.data()) {
    lines_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') lines_.push_back(i + 1);
  }

  Node build() {
    if (const std::size_t deep = too_deep_in_json(text_); deep != std::string_view::npos)
      throw UserError("this is not JSON: nested too deeply", place_at(deep));
    const char* end = text_.data() + text_.size();
    Json::sax_parse(Cursor(text_.data(), &reached_), Cursor(end, &reached_), this);
    return std::move(root_);
  }

  bool null() override { return add({Node::Other{"null"}, before_word()}); }
  bool boolean(bool value) override { return add({value, before_word()}); }
  bool number_integer(std::int64_t value) override { return add({value, before_word()}); }
  bool number_unsigned(std::uint64_t value) override {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return add({static_cast<std::int64_t>(value), before_word()});
    return add({static_cast<double>(value), before_word()});
  }
  bool number_float(double value, const std::string&) override { return add({value, before_word()}); }
  bool string(std::string& value) override { return add({std::move(value), before_string()}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open({Node::Entries{}, place_at(offset() - 1)}); }
  bool start_array(std::size_t) override { return open({Node::List{}, place_at(offset() - 1)}); }
  bool key(std::string& key) override {
    Frame& frame = frames_.back();
    SourcePlace place = before_string();
    if (!frame.keys.insert(key).second) throw UserError(fmt::format("the key \"{}\" is here twice", key), place);
    std::get<Node::Entries>(frame.node.data).push_back({std::move(key), {}, std::move(place)});
    return true;
  }
  bool end_object() override {
    replace_infinite(frames_.back().node);
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // format: "[json.exception.parse_error.101] parse error at line 1, column 2: reason"
    std::string message = error.what();
    if (const auto colon = message.find(": "); colon != std::string::npos) message = message.substr(colon + 2);
    throw UserError(fmt::format("this is not JSON: {}", message), place_at(position > 0 ? position - 1 : 0));
  }

 private:
  struct Frame {
    Node node;
    std::set<std::string> keys;
  };

  std::size_t offset() const { return static_cast<std::size_t>(reached_ - text_.data()); }
  SourcePlace place_at(std::size_t offset) const {
    const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - lines_.begin();
    return {file_, static_cast<int>(line), static_cast<int>(offset - lines_[static_cast<std::size_t>(line) - 1] + 1)};
  }
  /// Returns the place of the string that ends here.
  SourcePlace before_string() const {
    std::size_t at = offset() - 1;
    const auto escaped = [&](std::size_t i) {
      std::size_t slashes = 0;
      while (slashes < i && text_[i - 1 - slashes] == '\\') ++slashes;
      return slashes % 2 == 1;
    };
    do --at;
    while (at > 0 && (text_[at] != '"' || escaped(at)));
    return place_at(at);
  }
  /// Returns the place of the number or literal that ends here; after a number, one more character has been read.
  SourcePlace before_word() const {
    const auto inside = [&](std::size_t i) {
      const char c = text_[i];
      return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+';
    };
    std::size_t at = offset();
    while (at > 0 && !inside(at - 1)) --at;
    while (at > 0 && inside(at - 1)) --at;
    return place_at(at);
  }
  bool add(Node node) {
    if (frames_.empty())
      root_ = std::move(node);
    else if (auto* list = std::get_if<Node::List>(&frames_.back().node.data))
      list->push_back(std::move(node));
    else
      std::get<Node::Entries>(frames_.back().node.data).back().value = std::move(node);
    return true;
  }
  bool open(Node node) {
    frames_.push_back({std::move(node), {}});
    return true;
  }
  bool close() {
    Node node = std::move(frames_.back().node);
    frames_.pop_back();
    return add(std::move(node));
  }

  std::string_view text_;
  std::string file_;
  const char* reached_;
  std::vector<std::size_t> lines_;
  std::vector<Frame> frames_;
  Node root_;
};

std::string pointer_to(const std::string& parent, std::string key) {
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '~') key.replace(i++, 1, "~0");
    if (key[i] == '/') key.replace(i++, 1, "~1");
  }
  return parent + "/" + key;
}

/// Calls `visit(node, pointer)` for each node of a tree; Tree: Node or const Node.
template <class Tree, class Visit>
void walk(Tree& node, const std::string& pointer, const Visit& visit) {
  visit(node, pointer);
  if (auto* list = std::get_if<Node::List>(&node.data)) {
    for (std::size_t i = 0; i < list->size(); ++i) walk((*list)[i], pointer + "/" + std::to_string(i), visit);
  } else if (auto* entries = std::get_if<Node::Entries>(&node.data)) {
    for (auto& entry : *entries) walk(entry.value, pointer_to(pointer, entry.key), visit);
  }
}

}  // namespace

bool operator==(const Node& a, const Node& b) { return a.data == b.data; }
bool operator==(const Entry& a, const Entry& b) { return a.key == b.key && a.value == b.value; }

double Node::number() const {
  return is_integer() ? static_cast<double>(std::get<std::int64_t>(data)) : std::get<double>(data);
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries())
    if (entry.key == key) return &entry.value;
  return nullptr;
}

void Node::set(std::string key, Node value) {
  if (value.is_absent()) return;
  std::get<Entries>(data).push_back({std::move(key), std::move(value), {}});
}

Node parse_toml(const std::string& text, const std::string& file) {
  try {
    check_toml_keys(text, file);
    return from_toml(toml::parse(text, file), file);
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    const auto message = error.description();
    const bool ascii = std::ranges::all_of(message, [](unsigned char c) { return c < 0x80; });
    throw UserError(fmt::format("this is not TOML: {}{}", message,
                                ascii ? "" : "; names and text that are not ASCII stand in quotes"),
                    {file, static_cast<int>(begin.line), static_cast<int>(begin.column)});
  } catch (const UserError& error) {  // an assertion of toml++ does not know its place
    throw UserError(error.message(), error.place().file.empty() ? SourcePlace{file, 0, 0} : error.place());
  }
}

Node parse_json(std::string_view text, const std::string& file) { return JsonBuilder(text, file).build(); }

Json to_json(Node node) {
  if (auto* list = std::get_if<Node::List>(&node.data)) {
    Json json = Json::array();
    for (Node& item : *list) json.push_back(to_json(std::move(item)));
    return json;
  }
  if (auto* entries = std::get_if<Node::Entries>(&node.data)) {
    Json::object_t json;  // constructed directly because operator[] would search all keys
    for (Entry& entry : *entries) json.emplace_back(std::move(entry.key), to_json(std::move(entry.value)));
    return json;
  }
  if (const auto* real = std::get_if<double>(&node.data); real && !std::isfinite(*real))
    return {{"real", kInfinite[std::isnan(*real) ? 0 : *real > 0 ? 1 : 2]}};
  if (node.is_boolean()) return std::get<bool>(node.data);
  if (node.is_integer()) return std::get<std::int64_t>(node.data);
  if (auto* text = std::get_if<std::string>(&node.data)) return std::move(*text);
  return node.is_absent() ? Json() : Json(std::get<double>(node.data));
}

Json places_of(const Node& root, const std::string& file) {
  Json::object_t places;
  walk(root, "", [&](const Node& node, const std::string& pointer) {
    const SourcePlace& place = node.place;
    if (place.file.empty() && place.line == 0 && place.column == 0) return;
    Json json = Json::array({place.line, place.column});
    if (place.file != file) json.push_back(place.file);
    places.emplace_back(pointer, std::move(json));
  });
  return places;
}

void set_places(Node& root, const Node* places, const std::string& file) {
  std::map<std::string_view, SourcePlace> by_pointer;
  if (places && places->is_table()) {
    for (const Entry& entry : places->entries()) {
      const auto* list = entry.value.list();
      if (!list || list->size() < 2 || !(*list)[0].is_integer() || !(*list)[1].is_integer()) continue;
      const bool elsewhere = list->size() > 2 && (*list)[2].is_text();
      by_pointer[entry.key] = {elsewhere ? (*list)[2].text() : file,
                               static_cast<int>(std::get<std::int64_t>((*list)[0].data)),
                               static_cast<int>(std::get<std::int64_t>((*list)[1].data))};
    }
  }
  const auto place_of = [&](const std::string& pointer) {
    const auto found = by_pointer.find(pointer);
    return found == by_pointer.end() ? SourcePlace{} : found->second;
  };
  walk(root, "", [&](Node& node, const std::string& pointer) {
    node.place = place_of(pointer);
    if (!node.is_table()) return;
    for (Entry& entry : std::get<Node::Entries>(node.data)) entry.place = place_of(pointer_to(pointer, entry.key));
  });
}

Node node_of(const Value& value) {
  return std::visit([](const auto& data) { return Node(data); }, value.data());
}

std::string kind_of(const Node& node) {
  if (node.is_table()) return "a table";
  if (node.list()) return "a list";
  if (node.is_text()) return fmt::format("the string \"{}\"", excerpt(node.text()));
  if (node.is_boolean()) return std::get<bool>(node.data) ? "true" : "false";
  if (node.is_integer()) return fmt::format("the integer {}", std::get<std::int64_t>(node.data));
  if (node.is_number()) return fmt::format("the number {}", node.number());
  return std::get<Node::Other>(node.data).kind;
}

}  // namespace ergotune::document

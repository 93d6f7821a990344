#include "problem/draft/kernel_use.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"

namespace ergotune::draft {
namespace {

constexpr const char* kIdentifier = "([A-Za-z_][A-Za-z0-9_]*)";
constexpr std::array<const char*, 3> kAxes{"x", "y", "z"};

/// The first group that matched; nullopt where the pattern is not in the text.
std::optional<std::string> find(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) return std::nullopt;
  for (std::size_t group = 1; group < match.size(); ++group)
    if (match[group].matched) return match[group].str();
  return std::string();
}

bool has(const std::string& text, const std::string& pattern) { return find(text, pattern).has_value(); }

/// "blockIdx.x" and what OpenCL calls it, as a pattern.
std::string block_index(int dimension) {
  return std::string("(?:blockIdx\\s*\\.\\s*") + kAxes[static_cast<std::size_t>(dimension)] +
         "|get_group_id\\s*\\(\\s*" + std::to_string(dimension) + "\\s*\\))";
}

std::string any_index(int dimension) {
  const std::string axis = kAxes[static_cast<std::size_t>(dimension)], number = std::to_string(dimension);
  return "(?:threadIdx|blockIdx)\\s*\\.\\s*" + axis + "\\b|get_(?:global|local|group)_id\\s*\\(\\s*" + number +
         "\\s*\\)";
}

/// From an opening bracket to the one that closes it.
std::string inside_brackets(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '[' || text[at] == '(') ++depth;
    if ((text[at] == ']' || text[at] == ')') && --depth == 0) return text.substr(open + 1, at - open - 1);
  }
  return {};
}

}  // namespace

KernelUse::KernelUse(const std::string& body) {
  // std::regex recurses: neither a run of blanks nor a name may be long
  constexpr std::size_t kLongest = 300;
  std::size_t name = 0;
  for (const char c : body) {
    const bool blank = std::isspace(static_cast<unsigned char>(c));
    name = kernel_source::in_identifier(c) ? name + 1 : 0;
    if (name <= kLongest && !(blank && body_.ends_with(' '))) body_ += blank ? ' ' : c;
  }
  for (std::size_t at = 1; at + 1 < body_.size(); ++at) {
    if (body_[at] != '=' || body_[at + 1] == '=' ||
        std::string("=<>!+-*/%&|^").find(body_[at - 1]) != std::string::npos)
      continue;
    const std::size_t end = body_.find(';', at);
    if (end == std::string::npos || end - at > kLongest) continue;
    std::size_t last = at;
    while (last > 0 && body_[last - 1] == ' ') --last;
    std::size_t first = last;
    while (first > 0 && kernel_source::in_identifier(body_[first - 1])) --first;
    std::string value = body_.substr(at + 1, end - at - 1);
    // int x = get_global_id(0), y = get_global_id(1);
    int open = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '(') ++open;
      if (value[i] == ')') --open;
      if (value[i] == ',' && open == 0) value.resize(i);
    }
    if (first < last) assignments_.emplace_back(body_.substr(first, last - first), trimmed(value));
  }
}

int KernelUse::dimensions() const {
  for (int dimension = 2; dimension > 0; --dimension)
    if (has(body_, any_index(dimension))) return dimension + 1;
  return 1;
}

Position KernelUse::position(int dimension) const {
  Position position;
  const std::string block = block_index(dimension);
  // int row = blockIdx.y * TILE + threadIdx.y;   int i = get_global_id(0);
  for (const auto& [variable, value] : assignments_) {
    if (!has(value, any_index(dimension))) continue;
    if (std::regex_match(value, std::regex("(?:\\([a-z_ ]+\\)\\s*)?" + block))) {
      if (position.variable.empty()) position = {variable, "", "", true};
      continue;
    }
    const bool whole = has(value, block) || has(value, "get_global_id");
    if (!whole) continue;  // a place in the block
    position = {variable, "", "", false};
    if (const auto factor = find(value, "\\)\\s*\\*\\s*([A-Za-z_0-9]+)\\s*$")) position.factor = *factor;
    break;
  }
  std::optional<std::string> macro = find(body_, block + "\\s*\\*\\s*" + kIdentifier);
  if (!macro) macro = find(body_, "\\b" + std::string(kIdentifier) + "\\s*\\*\\s*" + block);
  if (macro && *macro != "blockDim" && !macro->starts_with("get_local_size")) position.block = *macro;
  return position;
}

std::vector<std::string> KernelUse::shared_memory_dimensions() const {
  std::vector<std::string> found;
  std::smatch match;
  if (!std::regex_search(body_, match, std::regex("__shared__|\\b(?:__)?local\\b"))) return found;
  const auto begin = static_cast<std::size_t>(match.position(0));
  const std::string dimensions = body_.substr(begin, std::min<std::size_t>(body_.find(';', begin) - begin, 300));
  const std::regex one("\\[\\s*" + std::string(kIdentifier));
  for (std::sregex_iterator it(dimensions.begin(), dimensions.end(), one), end; it != end; ++it)
    found.push_back((*it)[1].str());
  return found;
}

BufferUse KernelUse::use_of(const std::string& buffer) const {
  BufferUse use;
  for (std::size_t at = 0; (at = body_.find(buffer, at)) != std::string::npos; at += buffer.size()) {
    const std::size_t end = at + buffer.size();
    if ((at > 0 && (kernel_source::in_identifier(body_[at - 1]) || body_[at - 1] == '.')) ||
        (end < body_.size() && kernel_source::in_identifier(body_[end])))
      continue;
    std::size_t next = body_.find_first_not_of(" \t\n", end);
    if (next == std::string::npos || body_[next] != '[') {  // passed on, or the address of its beginning
      use.read = use.written = true;
      continue;
    }
    const std::string index = inside_brackets(body_, next);
    use.indices.emplace_back(trimmed(index));
    next = body_.find_first_not_of(" \t\n", next + index.size() + 2);
    const char c = next == std::string::npos ? ';' : body_[next];
    const char after = next == std::string::npos || next + 1 >= body_.size() ? ';' : body_[next + 1];
    const std::size_t before = body_.find_last_not_of(" \t\n", at - (at > 0 ? 1 : 0));
    const bool by_address = before != std::string::npos && body_[before] == '&';  // atomicAdd(&x[i], ...)
    if (c == '=' && after != '=') {
      use.written = true;
    } else if (by_address || ((c == '+' || c == '-') && after == c) ||
               (after == '=' && std::string("+-*/|&^").find(c) != std::string::npos)) {
      use.read = use.written = true;
    } else {
      use.read = true;
    }
  }
  return use;
}

std::string KernelUse::bound_of(const std::string& variable) const {
  const std::string name = "\\b" + variable + "\\b";
  if (const auto bound = find(body_, name + "\\s*<=?\\s*" + kIdentifier)) return *bound;
  if (const auto bound = find(body_, name + "\\s*>=\\s*" + kIdentifier)) return *bound;  // if (i >= n) return;
  return {};
}

std::string KernelUse::value_of(const std::string& variable) const {
  for (const auto& [name, value] : assignments_)
    if (name == variable) return value;
  return {};
}

bool KernelUse::is_extent(const std::string& scalar) const {
  const std::string name = "\\b" + scalar + "\\b";
  return has(body_, "[<>]=?\\s*" + name) || has(body_, "\\*\\s*" + name) || has(body_, name + "\\s*\\*") ||
         has(body_, "/\\s*" + name);
}

}  // namespace ergotune::draft

#include "problem/draft/kernel_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <set>

#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"
#include "problem/draft/source_text.hpp"

namespace ergotune::draft {
namespace {

constexpr const char* kIdentifier = "([A-Za-z_][A-Za-z0-9_]*)";
constexpr std::array<const char*, 3> kAxes{"x", "y", "z"};

/// Returns the first matching group; nullopt if the pattern does not match.
std::optional<std::string> find(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) return std::nullopt;
  for (std::size_t group = 1; group < match.size(); ++group)
    if (match[group].matched) return match[group].str();
  return std::string();
}

bool has(const std::string& text, const std::string& pattern) { return find(text, pattern).has_value(); }

/// Pattern for "i += 2", "++i" and the like.
std::string changes_of(const std::string& variable) {
  return "\\b" + variable + "\\s*(?:[-+*/|&^%]=|<<=|>>=|\\+\\+|--)|(?:\\+\\+|--)\\s*" + variable + "\\b";
}

/// Pattern for "blockIdx.x" and its OpenCL equivalent.
std::string block_index(int dimension) {
  return std::string("(?:blockIdx\\s*\\.\\s*") + kAxes[static_cast<std::size_t>(dimension)] +
         "|get_group_id\\s*\\(\\s*" + std::to_string(dimension) + "\\s*\\))";
}

/// Pattern for the thread's position in the block.
std::string local_index(const std::string& axis, const std::string& number) {
  return "(?:threadIdx\\s*\\.\\s*" + axis + "\\b|get_local_id\\s*\\(\\s*" + number + "\\s*\\))";
}

std::string local_index(int dimension) {
  return local_index(kAxes[static_cast<std::size_t>(dimension)], std::to_string(dimension));
}

/// Pattern for the number of threads in a block.
std::string size_of_block(int dimension) {
  return std::string("(?:blockDim\\s*\\.\\s*") + kAxes[static_cast<std::size_t>(dimension)] +
         "\\b|get_local_size\\s*\\(\\s*" + std::to_string(dimension) + "\\s*\\))";
}

std::string any_index(int dimension) {
  const std::string axis = kAxes[static_cast<std::size_t>(dimension)], number = std::to_string(dimension);
  return "(?:threadIdx|blockIdx)\\s*\\.\\s*" + axis + "\\b|get_(?:global|local|group)_id\\s*\\(\\s*" + number +
         "\\s*\\)";
}

/// Returns the text between an opening bracket and its counterpart.
std::string inside_brackets(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '[' || text[at] == '(') ++depth;
    if ((text[at] == ']' || text[at] == ')') && --depth == 0) return text.substr(open + 1, at - open - 1);
  }
  return {};
}

/// Returns a text up to a closing parenthesis that it does not open.
std::string up_to_closing(const std::string& text) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth < 0) return text.substr(0, at);
  }
  return text;
}

/// Returns a text without what is between square brackets.
std::string without_indices(const std::string& text) {
  std::string rest;
  int depth = 0;
  for (const char c : text) {
    depth -= c == ']' ? 1 : 0;
    if (depth <= 0) rest += c;
    depth += c == '[' ? 1 : 0;
  }
  return rest;
}

/// The access of vload3(index, buffer) and vstore3(values, index, buffer).
struct VectorAccess {
  std::string buffer, index;  ///< "3 * (index)"
  bool store = false;
};

/// Returns the access whose arguments have the position `at`; nullopt if that is in no such call.
std::optional<VectorAccess> vector_access(const std::string& text, std::size_t at) {
  static const std::regex kFunction(R"(\bv(load|store)(?:_half)?(2|3|4|8|16)(?:_rt[ezpn])? ?$)");
  int depth = 0;
  while (at > 0 && depth < 1) depth += text[--at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
  const std::string before = text.substr(at < 30 ? 0 : at - 30, std::min<std::size_t>(at, 30));
  const std::vector<std::string> list = parts_of(inside_brackets(text, at), ",");
  std::smatch found;
  if (depth < 1 || !std::regex_search(before, found, kFunction)) return std::nullopt;
  const bool store = found[1].str() == "store";
  if (list.size() != (store ? 3 : 2)) return std::nullopt;
  return VectorAccess{list.back(), fmt::format("{} * ({})", found[2].str(), list[list.size() - 2]), store};
}

/// Returns the factors of each term of a sum of products; products of sums are multiplied out.
std::vector<std::vector<std::string>> products_of(const std::string& expression, int depth = 0) {
  std::vector<std::vector<std::string>> products;
  for (const std::string& term : parts_of(without_parentheses(expression), "+")) {
    std::vector<std::vector<std::string>> whole(1);
    for (const std::string& part : parts_of(term, "*")) {
      const std::string factor = without_parentheses(part);
      const bool sum = depth < 3 && (parts_of(factor, "+").size() > 1 || parts_of(factor, "*").size() > 1);
      const auto inner = sum ? products_of(factor, depth + 1) : std::vector<std::vector<std::string>>{{factor}};
      std::vector<std::vector<std::string>> next;
      for (const auto& left : whole)
        for (const auto& right : inner) {
          next.push_back(left);
          next.back().insert(next.back().end(), right.begin(), right.end());
        }
      whole = std::move(next);
    }
    products.insert(products.end(), whole.begin(), whole.end());
  }
  return products;
}

}  // namespace

KernelUse::KernelUse(const std::string& body) {
  // std::regex recurses, so runs of blanks, names and statements must be short
  constexpr std::size_t kLongest = 300, kLongestStatement = 2000;
  std::size_t name = 0, statement = 0;
  for (const char c : body) {
    const bool blank = std::isspace(static_cast<unsigned char>(c));
    name = kernel_source::in_identifier(c) ? name + 1 : 0;
    statement = c == ';' ? 0 : statement + 1;
    if (statement > kLongestStatement) {
      body_ += ';';
      statement = 0;
    }
    if (name <= kLongest && !(blank && body_.ends_with(' '))) body_ += blank ? ' ' : c;
  }
  read_assignments();
  // `int tx = threadIdx.x;` is an alias if tx is assigned only once, and so is `int bs = blockDim.x;`
  const std::regex index_or_size("(?:\\([a-z_ ]+\\)\\s*)?(?:" + local_index("[xyz]", "[012]") +
                                 "|blockDim\\s*\\.\\s*[xyz]|get_local_size\\s*\\(\\s*[012]\\s*\\))");
  // `long base = (long)blockIdx.x * n;` begins the row of a block
  const std::regex row(
      "(?:\\([a-z_ "
      "]+\\)\\s*)?((?:blockIdx\\s*\\.\\s*[xyz]|get_group_id\\s*\\(\\s*[012]\\s*\\))\\s*\\*\\s*[A-Za-z_]\\w*)");
  for (const Assignment& one : std::vector<Assignment>(assignments_)) {
    std::smatch match;
    const bool is_row = std::regex_match(one.value, match, row);
    if ((!is_row && !std::regex_match(one.value, index_or_size)) ||
        std::count_if(assignments_.begin(), assignments_.end(),
                      [&](const Assignment& other) { return other.variable == one.variable; }) != 1 ||
        has(body_, changes_of(one.variable)))
      continue;
    const std::string value = is_row ? match[1].str() : one.value, name = "\\b" + one.variable + "\\b";
    if (is_row)
      body_ = std::regex_replace(body_, std::regex(name + "\\s*=[^;,]*"), "", std::regex_constants::format_first_only);
    body_ = std::regex_replace(body_, std::regex(name), value);
  }
  read_assignments();
}

void KernelUse::read_assignments() {
  constexpr std::size_t kLongest = 300;
  assignments_.clear();
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
    if (first == last) continue;
    std::string before = body_.substr(first > 20 ? first - 20 : 0, std::min<std::size_t>(first, 20));
    for (const char* qualifier : {"__restrict__", "__restrict", "restrict", "const"})
      if (trimmed(before).ends_with(qualifier)) before = before.substr(0, before.rfind(qualifier));
    static const std::regex kStore(R"((?:[^\w>* ]|\belse|\bdo|^) ?\*$)");  // *out = 1;
    const std::string declared(trimmed(before));
    if (std::regex_search(declared, kStore)) continue;
    static const std::regex kReal(R"(\b(?:float|double|half)$)"),
        kRounded(R"(\b(?:floor|ceil|l?rint|l?round|trunc|nearbyint)f? ?\(|\b[0-9]+\.)");
    assignments_.push_back({body_.substr(first, last - first), without_parentheses(value), at, at + 1 + value.size(),
                            declared.ends_with('*'), declared.ends_with('&'),
                            std::regex_search(declared, kReal) || std::regex_search(value, kRounded)});
  }
}

int KernelUse::dimensions() const {
  for (int dimension = 2; dimension > 0; --dimension)
    if (has(body_, any_index(dimension))) return dimension + 1;
  return 1;
}

bool KernelUse::has_blocks(int dimension) const {
  return has(body_, block_index(dimension) + "|get_global_id\\s*\\(\\s*" + std::to_string(dimension) + "\\s*\\)");
}

bool KernelUse::has_threads(int dimension) const {
  return has(body_, local_index(dimension) + "|" + size_of_block(dimension) + "|get_global_id\\s*\\(\\s*" +
                        std::to_string(dimension) + "\\s*\\)");
}

Position KernelUse::position(int dimension) const {
  Position position;
  const std::string block = block_index(dimension), thread = local_index(dimension);
  const std::string global = "get_global_id\\s*\\(\\s*" + std::to_string(dimension) + "\\s*\\)";
  // int row = blockIdx.y * TILE + threadIdx.y;   int i = get_global_id(0);
  for (const Assignment& one : assignments_) {
    const std::string value = without_indices(one.value);  // an element at a position is no position
    if (one.pointer || one.floating || !has(value, any_index(dimension))) continue;
    if (std::regex_match(one.value, std::regex("(?:\\([a-z_ ]+\\)\\s*)?" + block))) {
      if (position.variable.empty()) position = {.variable = one.variable, .of_block = true};
      continue;
    }
    const bool whole = has(value, block) || has(value, global);
    if (!whole) continue;  // a position within the block
    if (auto strided = strided_position(one, dimension)) return *std::move(strided);
    position = {.variable = one.variable};
    if (const auto factor = find(one.value, "\\)\\s*\\*\\s*([A-Za-z_0-9]+)\\s*$")) position.factor = *factor;
    if (const auto factor = find(one.value, "^" + std::string(kIdentifier) + "\\s*\\*\\s*" + global + "$"))
      position.factor = *factor;
    // id = get_global_id(0) * EACH + k, where k counts to EACH
    std::smatch each;
    if (static const std::regex kEach("\\)\\s*\\*\\s*([A-Za-z_0-9]+)\\s*\\+\\s*([A-Za-z_0-9]+)\\s*$");
        std::regex_search(one.value, each, kEach) && std::ranges::count(loop_counters(), each[2].str()) > 0 &&
        std::ranges::count(bounds_of(each[2].str()), each[1].str(), trimmed) > 0)
      position.factor = each[1].str();
    break;
  }
  const std::string factor = factor_of_block(dimension);
  const auto is_size = [](const std::string& name) { return name == "blockDim" || name == "get_local_size"; };
  if (!is_size(factor)) position.block = factor;
  for (int other = 0; other < 3; ++other) {
    if (other == dimension) continue;
    const std::string size = "(?:" + size_of_block(other) + ")";
    if (!factor.empty() && !has_blocks(other) && !added_to_thread(dimension, factor, dimension) &&
        added_to_thread(dimension, is_size(factor) ? size : factor, other)) {
      position.across = other;
      position.block.clear();
    }
    const std::string rows = factor_of_block(other);
    if (!rows.empty() && !is_size(rows) && !has_blocks(dimension) && !added_to_thread(other, rows, other) &&
        added_to_thread(other, rows, dimension))
      position.block = rows;
  }
  if (factor.empty())
    if (const auto number = find(body_, block + "\\s*\\*\\s*([0-9]+)\\b");
        number && added_to_thread(dimension, *number, dimension))
      position.block = *number;
  // for (c = threadIdx.x; c < n; c += BLOCK)
  if (auto stride = find(body_, "=\\s*" + thread + "\\s*;[^;]*;[^;)]*\\+=\\s*" + kIdentifier)) {
    if (*stride == "blockDim" || stride->starts_with("get_")) stride->clear();
    if (position.block.empty()) {
      position.block = *stride;
    } else if (!added_to_thread(dimension, position.block, dimension)) {
      position.threads = *stride;
      position.loops = true;
      return position;
    }
  }
  // for (int j = 0; j < TILE; j += ROWS) ... [threadIdx.y + j]
  const std::regex loops("\\b" + std::string(kIdentifier) + "\\s*\\+=\\s*" + kIdentifier);
  for (std::sregex_iterator it(body_.begin(), body_.end(), loops), end; it != end; ++it)
    if ((*it)[2].str() != "blockDim" && (*it)[2].str() != "get_local_size" &&
        has(body_, thread + "\\s*\\+\\s*" + (*it)[1].str() + "\\b"))
      position.threads = (*it)[2].str();
  if (position.variable.empty() && has(body_, block) && !has(body_, global) &&
      !has(body_, block + "[^;=\\[\\]]*\\+\\s*" + thread))
    position.of_block = true;
  if (position.factor.empty()) position.apart = elements_apart(value_of(position.variable), dimension, position.block);
  return position;
}

std::string KernelUse::elements_apart(const std::string& value, int dimension, const std::string& block) {
  constexpr std::size_t kLongest = 200;
  if (value.size() > kLongest) return {};
  const std::regex index(block_index(dimension)), name("\\w+"), size(size_of_block(dimension));
  for (std::vector<std::string> product : products_of(value)) {
    if (std::erase_if(product, [&](const std::string& f) { return std::regex_match(f, index); }) != 1) continue;
    const auto threads = std::ranges::find_if(
        product, [&](const std::string& f) { return std::regex_match(f, size) || (!block.empty() && f == block); });
    if (product.size() != 2 || threads == product.end()) return {};
    product.erase(threads);
    return std::regex_match(product.front(), name) ? product.front() : std::string();
  }
  return {};
}

std::optional<Position> KernelUse::strided_position(const Assignment& one, int dimension) const {
  constexpr std::size_t kLongest = 200;
  if (one.value.size() > kLongest) return std::nullopt;
  const std::regex block(block_index(dimension)), thread(local_index(dimension)), size(size_of_block(dimension));
  std::vector<std::string> work, step;  // factors of the block's index, and of the counter
  std::size_t threads = 0;
  for (std::vector<std::string>& product : products_of(one.value)) {
    const auto index = std::ranges::find_if(product, [&](const auto& f) { return std::regex_match(f, block); });
    if (index != product.end()) {
      product.erase(index);
      work = product;
    } else if (product.size() == 1 && std::regex_match(product.front(), thread)) {
      ++threads;
    } else if (product.size() == 2 && step.empty()) {
      step = product;
    } else {
      return std::nullopt;
    }
  }
  if (threads != 1 || work.size() != 2 || step.size() != 2) return std::nullopt;
  for (const auto& [counter, stride] : {std::pair(step[0], step[1]), std::pair(step[1], step[0])}) {
    const auto shared = std::ranges::find(work, stride);
    if (shared == work.end() || !std::ranges::all_of(counter, kernel_source::in_identifier)) continue;
    const std::string& factor = work[shared == work.begin() ? 1 : 0];
    const std::vector<std::string> counters = loop_counters(), bounds = bounds_of(counter);
    if (std::ranges::count(counters, counter) == 0 ||
        !std::ranges::any_of(bounds, [&](const std::string& bound) { return trimmed(bound) == factor; }))
      continue;
    return Position{.variable = one.variable,
                    .block = std::regex_match(stride, size) ? "" : stride,
                    .factor = factor,
                    .strided = true};
  }
  return std::nullopt;
}

std::string KernelUse::factor_of_block(int dimension) const {
  const std::string block = block_index(dimension);
  if (const auto behind = find(body_, block + "\\s*\\*\\s*\\(?" + kIdentifier)) return *behind;
  return find(body_, "\\b" + std::string(kIdentifier) + "\\s*\\*\\s*" + block).value_or("");
}

bool KernelUse::added_to_thread(int dimension, const std::string& factor, int of) const {
  const std::string first = "(?:" + block_index(dimension) + "\\s*\\*\\s*\\(?\\s*" + factor + "(?!\\w)\\s*\\)?|\\b" +
                            factor + "\\s*\\*\\s*" + block_index(dimension) + ")";
  const auto added = [&](const std::string& term) {
    return has(body_, term + "\\s*\\+\\s*" + local_index(of)) || has(body_, local_index(of) + "\\s*\\+\\s*" + term);
  };
  return added(first) || std::any_of(assignments_.begin(), assignments_.end(), [&](const Assignment& one) {
           return std::regex_match(one.value, std::regex(first)) && added("\\b" + one.variable + "\\b");
         });
}

std::vector<std::string> KernelUse::shared_memory_dimensions() const {
  std::vector<std::string> found;
  std::smatch match;
  if (!std::regex_search(
          body_, match,
          std::regex("(?:__shared__|\\b(?:__)?local\\b)[A-Za-z0-9_ ]*?" + std::string(kIdentifier) + "\\s*\\[")))
    return found;
  if (!has(body_, "\\b" + match[1].str() + "\\s*(?:\\[[^;\\]]*\\]\\s*)*\\[\\s*" + local_index("[xyz]", "[012]")))
    return found;
  const auto begin = static_cast<std::size_t>(match.position(0));
  const std::string dimensions = body_.substr(begin, std::min<std::size_t>(body_.find(';', begin) - begin, 300));
  const std::regex one("\\[\\s*" + std::string(kIdentifier));
  for (std::sregex_iterator it(dimensions.begin(), dimensions.end(), one), end; it != end; ++it)
    found.push_back((*it)[1].str());
  return found;
}

std::vector<KernelUse::SharedArray> KernelUse::arrays_of_threads(int dimension) const {
  static const std::regex kShared(R"((?:__shared__|\b(?:__)?local\b)([^;()]{0,300});)");
  const std::regex own("^\\s*" + local_index(dimension) + "\\s*(?:\\+\\s*([0-9]{1,6}))?\\s*$");
  const auto indices_at = [this](std::size_t open) {  // "TILE", "33" of "[TILE][33]"
    std::vector<std::string> indices;
    for (; open < body_.size() && body_[open] == '['; open = body_.find_first_not_of(' ', open)) {
      indices.push_back(inside_brackets(body_, open));
      open += indices.back().size() + 2;
    }
    return indices;
  };
  const std::string axis(kAxes[static_cast<std::size_t>(dimension)]);
  std::vector<std::string> limits = bounds_of("threadIdx." + axis);
  for (std::string& limit : bounds_of(fmt::format("get_local_id({})", dimension))) limits.push_back(std::move(limit));
  std::vector<SharedArray> found;
  for (std::sregex_iterator it(body_.begin(), body_.end(), kShared), end; it != end; ++it)
    for (const std::string& declared : parts_of((*it)[1].str(), ",")) {
      const std::size_t bracket = declared.find('[');
      const std::string head(trimmed(declared.substr(0, bracket)));
      std::size_t begin = head.size();
      while (begin > 0 && kernel_source::in_identifier(head[begin - 1])) --begin;
      const std::string name = head.substr(begin);
      std::vector<std::string> lengths;
      for (const std::size_t behind : ends_of(body_, name, bracket == std::string::npos ? 0 : body_.size())) {
        const std::vector<std::string> indices = indices_at(next_character(body_, behind));
        if (lengths.empty()) lengths = indices;  // the first occurrence is the declaration
        std::smatch match;
        for (std::size_t i = 0; i < std::min(indices.size(), lengths.size()); ++i)
          if (std::regex_match(indices[i], match, own) &&
              std::ranges::none_of(limits, [&](const std::string& limit) {  // if (threadIdx.x < 4) sums[threadIdx.x]
                return without_parentheses(std::string(trimmed(limit))) == trimmed(lengths[i]);
              }))
            found.push_back({name, lengths[i], whole_number(match[1].str()).value_or(0)});
      }
    }
  return found;
}

BufferUse KernelUse::use_of(const std::string& buffer, int depth) const {
  BufferUse use;
  const bool reference =
      std::ranges::any_of(assignments_, [&](const Assignment& one) { return one.reference && one.variable == buffer; });
  std::set<std::size_t> renamed;  // where a pointer or a reference is set to the buffer
  for (const Assignment& one : assignments_) {
    std::smatch match;
    if (depth > 3 || !(one.pointer || one.reference) || one.variable == buffer) continue;
    // x   x + row * n   &x[row * n]   (float4*)x   reinterpret_cast<float4*>(x)   of a reference *x   x[row * n].member
    const std::regex pattern("^(?:[A-Za-z_]+<[^>]*>\\s*\\(|\\([^()]*\\))?\\s*([&*]?)\\s*" + buffer + "\\b(.*)$");
    if (!std::regex_search(one.value, match, pattern) || (match[1].str() == "*" && !one.reference)) continue;
    renamed.insert(body_.find(buffer, one.begin + static_cast<std::size_t>(match.position(1))));
    std::string offset(trimmed(match[2].str()));
    if (offset.starts_with('+'))
      offset.erase(0, 1);
    else
      offset = offset.starts_with('[') && (one.reference || match[1].length() > 0) ? inside_brackets(offset, 0)
                                                                                   : std::string();
    offset = trimmed(offset);
    const BufferUse more = use_of(one.variable, depth + 1);
    use.read = use.read || more.read;
    use.written = use.written || more.written;
    use.passed_on = use.passed_on || more.passed_on;
    for (const std::string& index : more.indices)
      use.indices.push_back(offset.empty() ? index : index == "0" ? offset : offset + " + " + index);
  }
  for (std::size_t at = 0; (at = body_.find(buffer, at)) != std::string::npos; at += buffer.size()) {
    const std::size_t end = at + buffer.size();
    const std::string_view before = trimmed(std::string_view(body_).substr(0, at));
    if ((at > 0 && kernel_source::in_identifier(body_[at - 1])) || before.ends_with('.') || before.ends_with("->") ||
        (end < body_.size() && kernel_source::in_identifier(body_[end])))
      continue;
    if (renamed.contains(at) || is_pointer_name(at)) continue;
    const std::size_t next = next_character(body_, end);
    if (reference || body_.compare(next, 2, "->") == 0) {
      use.indices.emplace_back("0");
      add_access(at, end, use);
    } else if (body_.compare(next, 1, "[") == 0) {
      const std::string index = inside_brackets(body_, next);
      use.indices.emplace_back(trimmed(index));
      add_access(at, next + index.size() + 2, use);
    } else if (before.ends_with('*') && body_.compare(next, 2, "++") != 0 && body_.compare(next, 2, "--") != 0) {
      const bool enclosed =
          trimmed(before.substr(0, before.size() - 1)).ends_with('(') && body_.compare(next, 1, ")") == 0;
      use.indices.emplace_back("0");
      add_access(before.size() - 1, enclosed ? next + 1 : end, use);
    } else if (const auto access = vector_access(body_, at); access && access->buffer == buffer) {
      use.indices.push_back(access->index);
      use.read = use.read || !access->store;
      use.written = use.written || access->store;
    } else {  // passed to a function, or the address of its beginning
      use.read = use.written = use.passed_on = true;
    }
  }
  return use;
}

void KernelUse::add_access(std::size_t begin, std::size_t end, BufferUse& use) const {
  constexpr auto kHere = std::regex_constants::match_continuous;
  static const std::regex kMember(R"( ?(?:\.|->) ?[A-Za-z_]\w*)"), kAssigns(R"((?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)");
  std::smatch match;
  for (std::size_t next = next_character(body_, end); next < body_.size(); next = next_character(body_, end)) {
    if (body_[next] == '[')  // an array in a structure
      end = next + inside_brackets(body_, next).size() + 2;
    else if (std::regex_search(body_.begin() + static_cast<long>(end), body_.end(), match, kMember, kHere))
      end += static_cast<std::size_t>(match.length());
    else
      break;
  }
  const std::string_view before = trimmed(std::string_view(body_).substr(0, begin));
  const std::string after = body_.substr(next_character(body_, end), 3);
  const bool assigned = std::regex_search(after, match, kAssigns, kHere);
  const bool by_address = before.ends_with('&') && !before.ends_with("&&");  // atomicAdd(&x[i], ...)
  use.written = use.written || assigned || by_address || before.ends_with("++") || before.ends_with("--");
  use.read = use.read || !assigned || match.length() > 1;
}

KernelUse::ElementUse KernelUse::elements_of(const std::string& buffer) const {
  std::set<std::string> holders{buffer};
  const auto has_holder = [&](const std::string& text) {
    static const std::regex kMember(R"(\.\s?[A-Za-z_])");  // x of blockIdx.x is no variable
    const auto words = kernel_source::identifiers_in(std::regex_replace(without_indices(text), kMember, "._"));
    return std::ranges::any_of(holders, [&](const std::string& holder) { return words.contains(holder); });
  };
  const auto is_array = [&](const std::string& name) {  // int first, last[ROWS];
    return has(body_,
               "(?:^|[;{}]) ?(?!return\\b|else\\b)(?:[A-Za-z_]\\w* ){1,4}(?:[^;(){}]{0,200}, ?)?" + name + " ?\\[");
  };
  for (int level = 0; level < 3; ++level) {  // end = row_begin[row + 1], last = end - 1, rows[k] = last
    for (const Assignment& one : assignments_)
      if (has_holder(one.value)) holders.insert(one.variable);
    for_each_store([&](const std::string& name, const std::string&, const std::string& value) {
      if (!name.empty() && has_holder(value) && is_array(name)) holders.insert(name);
    });
  }
  const auto without_own_counter = [&](const std::string& head) {  // of a loop, which may have a holder's name
    static const std::regex kCounter(R"(^ ?[A-Za-z_][\w ]* ([A-Za-z_]\w*) ?=([^;]*))");
    std::smatch counter;
    if (!std::regex_search(head, counter, kCounter) || has_holder(counter[2].str())) return head;
    return std::regex_replace(head, std::regex("\\b" + counter[1].str() + "\\b"), "_");
  };
  ElementUse use;
  for (std::size_t at = body_.find('['); at != std::string::npos; at = body_.find('[', at + 1)) {
    const std::size_t end = body_.find_last_not_of(' ', at - (at > 0 ? 1 : 0)) + 1;
    std::size_t begin = end;
    while (begin > 0 && kernel_source::in_identifier(body_[begin - 1])) --begin;
    const std::string array = body_.substr(begin, end - begin);
    if (!array.empty() && std::ranges::count(use.indexed, array) == 0 && has_holder(inside_brackets(body_, at)))
      use.indexed.push_back(array);
  }
  for (const char* loop : {"for", "while"})
    for (const std::size_t behind : ends_of(body_, loop, body_.size()))
      if (const std::size_t open = next_character(body_, behind); open < body_.size() && body_[open] == '(')
        use.bounds_loop = use.bounds_loop || has_holder(without_own_counter(inside_brackets(body_, open)));
  return use;
}

bool KernelUse::is_pointer_name(std::size_t at) const {
  return std::any_of(assignments_.begin(), assignments_.end(), [&](const Assignment& one) {
    return (one.pointer || one.reference) && one.begin > at && one.begin <= at + one.variable.size() + 1;
  });
}

std::vector<std::string> KernelUse::bounds_of(const std::string& expression) const {
  std::string name;
  for (const char c : expression)
    name += kernel_source::in_identifier(c) ? std::string(1, c) : c == ' ' ? "\\s*" : std::string("\\") + c;
  return bounds_behind((kernel_source::in_identifier(expression.front()) ? "\\b" : "") + name);
}

std::vector<std::string> KernelUse::bounds_of_block(int dimension) const {
  return bounds_behind(block_index(dimension) + "(?:\\s*\\*\\s*[A-Za-z_0-9]+)?");
}

std::vector<std::string> KernelUse::bounds_behind(const std::string& begin) const {
  const std::regex pattern(begin + "\\s*(?:\\+\\s*[A-Za-z_0-9]+\\s*)?(?:<=?|>=?)([^<>;&|?]+)");
  std::vector<std::string> found;
  for (std::sregex_iterator it(body_.begin(), body_.end(), pattern), end; it != end; ++it)
    found.push_back(up_to_closing((*it)[1].str().substr(0, 200)));
  return found;
}

std::optional<long> KernelUse::largest_value_of(const std::string& variable) const {
  std::optional<long> largest;
  std::size_t count = 0;
  for (const Assignment& one : assignments_) {
    if (one.variable != variable) continue;
    const auto value = whole_number(one.value);
    if (!value) return std::nullopt;
    largest = std::max(largest.value_or(*value), *value);
    ++count;
  }
  return count > 1 && !has(body_, changes_of(variable)) ? largest : std::nullopt;
}

std::vector<std::string> KernelUse::set_from(const std::string& variable) const {
  std::vector<std::string> names;
  for (const Assignment& one : assignments_)
    if (one.variable != variable && !one.pointer && !one.floating && one.value.find('[') == std::string::npos &&
        has(one.value, "\\b" + variable + "\\b"))
      names.push_back(one.variable);
  return names;
}

bool KernelUse::divides(const std::string& variable) const {
  if (variable.empty()) return false;
  if (has(value_of(variable), "[/%]|>>")) return true;
  return std::any_of(assignments_.begin(), assignments_.end(),
                     [&](const Assignment& one) { return is_quotient_of(one, variable); });
}

bool KernelUse::is_quotient_of(const Assignment& one, const std::string& variable) {
  return one.variable != variable && !one.pointer &&
         has(without_indices(one.value), "\\b" + variable + "\\b[ )]*(?:[/%]|>>)");
}

std::string KernelUse::stride_before(const std::string& variable) const {
  return find(body_, "\\*\\s*" + std::string(kIdentifier) + "\\s*\\+\\s*" + variable + "\\b").value_or("");
}

bool KernelUse::thread_loop(int dimension) const {
  return has(body_, "for\\s*\\([^;]*=\\s*" + local_index(dimension) + "[^;]*;[^;]*<");
}

bool KernelUse::loops_over_grid() const {
  const std::string size = "(?:gridDim\\s*\\.\\s*x\\b|get_(?:global_size|num_groups)\\s*\\(\\s*0\\s*\\))";
  return has(body_, "\\+=[^;{}=\\[]{0,200}" + size) || std::ranges::any_of(assignments_, [&](const Assignment& one) {
           return has(one.value, size) && has(body_, "\\+= ?" + one.variable + "\\b");
         });
}

void KernelUse::for_each_store(
    const std::function<void(const std::string&, const std::string&, const std::string&)>& use) const {
  for (std::size_t at = body_.find('='); at != std::string::npos; at = body_.find('=', at + 1)) {
    if (at == 0 || body_.compare(at + 1, 1, "=") == 0 || contains("=<>!", {{&body_[at - 1], 1}})) continue;
    const std::string sign = contains("+-*/%&|^", {{&body_[at - 1], 1}}) ? body_.substr(at - 1, 1) : std::string();
    const std::size_t statement = body_.find_last_of(";{}", at) + 1, end = at - sign.size();
    std::string before = without_indices(body_.substr(statement, std::max(statement, end) - statement));
    before.resize(before.find_last_not_of("[] ") + 1);
    std::size_t begin = before.size();
    while (begin > 0 && kernel_source::in_identifier(before[begin - 1])) --begin;
    const std::string value = body_.substr(at + 1, body_.find(';', at) - at - 1);
    use(before.substr(begin), sign, without_parentheses(up_to_closing(parts_of(value, ",").front())));
  }
}

std::string KernelUse::reduction_into(const std::string& buffer) const {
  static const std::regex kLeast(R"(^(?:std ?:: ?)?f?(min|max)f? ?\()"), kCopy(R"(^[A-Za-z_]\w*(?: ?\[\])*$)");
  std::set<std::string> holders{buffer}, kinds;
  for (int level = 0; level < 4; ++level)  // partial[block] = shared[0], shared[thread] = m
    for_each_store([&](const std::string& name, const std::string& sign, const std::string& value) {
      if (!holders.contains(name)) return;
      const std::string plain = without_indices(value);
      std::smatch call;
      const bool combines = kernel_source::identifiers_in(plain).contains(name);
      if (!sign.empty())
        kinds.insert("sum");
      else if (combines && std::regex_search(plain, call, kLeast) && parts_of(plain, "+-*/?<>").size() == 1)
        kinds.insert(call[1].str());
      else if (combines)
        kinds.insert("sum");
      else if (std::regex_match(plain, kCopy))
        holders.insert(plain.substr(0, plain.find_first_of(" [")));
    });
  return kinds.size() == 1 ? *kinds.begin() : "sum";
}

std::vector<std::string> KernelUse::loop_counters() const {
  static const std::regex kLoop("for\\s*\\([^;=]*\\b" + std::string(kIdentifier) + "\\s*=\\s*0\\s*;");
  std::vector<std::string> names;
  for (std::sregex_iterator it(body_.begin(), body_.end(), kLoop), end; it != end; ++it)
    names.push_back((*it)[1].str());
  return names;
}

std::optional<bool> KernelUse::loop_includes(const std::string& counter, const std::string& bound) const {
  const std::regex name("\\w{1,100}");
  if (!std::regex_match(counter, name) || !std::regex_match(bound, name)) return std::nullopt;
  const auto comparison =
      find(body_, "\\bfor ?\\([^;]{0,200}\\b" + counter + " ?=[^;]{0,200}; ?" + counter + " ?(<=?) ?" + bound + " ?;");
  return comparison ? std::optional(*comparison == "<=") : std::nullopt;
}

bool KernelUse::is_guarded(int dimension, const std::string& variable) const {
  static const std::regex kLimits(R"((?:^|[^<>-])[<>](?![<>])|\b(?:if|while|f?min|f?max|clamp) ?\()");
  const std::regex index(block_index(dimension) + "|get_global_id\\s*\\(\\s*" + std::to_string(dimension) + "\\s*\\)");
  std::set<std::string> names;
  for (std::vector<std::string> open{variable}; !open.empty();) {
    const std::string name = open.back();
    open.pop_back();
    if (name.empty() || !names.insert(name).second) continue;
    for (const std::string& other : set_from(name)) open.push_back(other);
  }
  static const std::regex kBrace("[{}]");
  return std::ranges::any_of(split(std::regex_replace(body_, kBrace, ";"), ';'), [&](const std::string& statement) {
    const auto words = kernel_source::identifiers_in(statement);
    return std::regex_search(statement, kLimits) &&
           (std::regex_search(statement, index) ||
            std::ranges::any_of(names, [&](const auto& name) { return words.contains(name); }));
  });
}

std::optional<int> KernelUse::block_dimension(const std::string& expression) {
  for (int d = 0; d < 3; ++d)
    if (std::regex_match(expression, std::regex(block_index(d)))) return d;
  return std::nullopt;
}

std::optional<int> KernelUse::thread_dimension(const std::string& expression) {
  for (int d = 0; d < 3; ++d)
    if (has(expression, "get_global_id\\s*\\(\\s*" + std::to_string(d)) ||
        (has(expression, block_index(d)) && has(expression, local_index(d))))
      return d;
  return std::nullopt;
}

std::string KernelUse::value_of(const std::string& variable) const {
  for (const Assignment& one : assignments_)
    if (one.variable == variable) return one.value;
  return {};
}

std::vector<std::string> KernelUse::positions() const {
  static const std::regex kIndex("blockIdx|get_(?:global|group)_id");
  std::vector<std::string> values;
  for (const Assignment& one : assignments_)
    if (std::regex_search(one.value, kIndex)) {
      values.push_back(one.value);
      for (const Assignment& other : assignments_)
        if (is_quotient_of(other, one.variable)) values.push_back(other.value);
    }
  return values;
}

bool KernelUse::is_extent(const std::string& scalar) const {
  const std::string name = "\\b" + scalar + "\\b";
  return has(body_, "(?:^|[^<>])[<>]=?\\s*" + name) || has(body_, "\\*\\s*" + name) || has(body_, name + "\\s*\\*") ||
         has(body_, "/\\s*" + name) || has(body_, "[<>]=?\\s*(?:std\\s*::\\s*)?min\\s*\\([^;(){}]*" + name);
}

bool KernelUse::is_step(const std::string& macro) const {
  const std::string name = "\\b" + macro + "\\b", factor = name + " ?\\*|\\* ?" + name;
  const std::regex loop("\\bfor ?\\([^;]{0,200};([^;]{0,200});[^;{]{0,200}\\+= ?" + macro + " ?\\)");
  for (std::sregex_iterator it(body_.begin(), body_.end(), loop), end; it != end; ++it)
    if (!has((*it)[1].str(), factor)) return true;
  return !has(body_, factor) &&
         has(body_, "[;{] ?(?!return\\b|else\\b)(?:[A-Za-z_]\\w* ){1,4}[A-Za-z_]\\w* ?\\[ ?" + name);
}

}  // namespace ergotune::draft
